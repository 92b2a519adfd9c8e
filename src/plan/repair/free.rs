//! Classifies lines in any spelling: headings, labels and fields as models write them, and
//! sentences between blocks.

use super::line::{Fence, Info, LineKind, ReplyLine};
use crate::plan::action::heading::Section;
use crate::plan::spelling::{self, name};

/// Classifies lines again, in any spelling.
pub(super) fn see(lines: &mut [ReplyLine<'_>]) {
    let inside = inside(lines);
    let known: Vec<Section> = (0..lines.len())
        .filter(|&at| !inside[at])
        .filter_map(|at| section_of(lines[at].kind))
        .collect();
    let (mut below, mut found) = ("", Vec::new());

    for at in (0..lines.len()).rev() {
        let line = lines[at];
        if matches!(
            line.kind,
            LineKind::Text | LineKind::List | LineKind::Title { .. }
        ) {
            found.extend(respelled(line.text, below, &known).map(|kind| (at, kind)));
        }

        if line.kind != LineKind::Blank {
            below = line.text;
        }
    }

    // The first heading of level 1 is the title, whatever its text.
    let title = lines
        .iter()
        .position(|line| matches!(line.kind, LineKind::Title { .. }));
    found
        .into_iter()
        .filter(|(at, _)| Some(*at) != title)
        .for_each(|(at, kind)| lines[at].kind = kind);
    name_sections(lines, &inside);

    see_text(lines);
}

/// Returns which lines are inside a fence, assuming that all fences are correct.
fn inside(lines: &[ReplyLine<'_>]) -> Vec<bool> {
    let mut open = None::<Fence>;
    let is_inside = |line: &ReplyLine<'_>| {
        match (line.kind, open) {
            (LineKind::Fence(fence), None) => open = Some(fence),
            (LineKind::Fence(fence), Some(outer)) if closes(fence, outer) => open = None,
            _ => {}
        }
        open.is_some()
    };
    lines.iter().map(is_inside).collect()
}

fn closes(fence: Fence, outer: Fence) -> bool {
    fence.info == Info::Bare && fence.mark == outer.mark && fence.len >= outer.len
}

/// Returns the kind of a line in another spelling. `known` lists the sections that already have an
/// exact heading.
fn respelled(line: &str, below: &str, known: &[Section]) -> Option<LineKind> {
    let label = || name::label(line, below).map(LineKind::Label);
    let action = || name::action(line, below).map(|heading| LineKind::Action(heading.row));
    let section = || {
        let (found, level) = name::section(line)?;
        (level == 2 || !known.contains(&found)).then_some(LineKind::Section(found))
    };
    action().or_else(section).or_else(label)
}

/// Treats unknown headings as the sections that belong in their place: the last one above the
/// actions as the action plan, the first one as the rationale.
fn name_sections(lines: &mut [ReplyLine<'_>], inside: &[bool]) {
    let (mut unknown, mut known) = (Vec::new(), Vec::new());
    for (at, line) in lines.iter().enumerate().filter(|(at, _)| !inside[*at]) {
        match line.kind {
            LineKind::Action(_) => break,
            LineKind::Section(section) => known.push(section),
            LineKind::Text if line.text.starts_with("## ") => unknown.push(at),
            _ => {}
        }
    }

    if !known.contains(&Section::Plan)
        && let Some(at) = unknown.pop()
    {
        lines[at].kind = LineKind::Section(Section::Plan);
    }
    if !known.contains(&Section::Rationale)
        && let Some(&at) = unknown.first()
    {
        lines[at].kind = LineKind::Section(Section::Rationale);
    }
}

/// Classifies fields without bullets as items, and finds sentences.
fn see_text(lines: &mut [ReplyLine<'_>]) {
    let mut row = None;
    for line in lines {
        match line.kind {
            LineKind::Action(found) => row = Some(found),
            LineKind::Section(_) | LineKind::Title { .. } => row = None,
            LineKind::Text if spelling::is_field(line.text, row) => line.kind = LineKind::List,
            LineKind::Text if spelling::is_prose(line.text) => line.kind = LineKind::Sentence,
            _ => {}
        }
    }
}

fn section_of(kind: LineKind) -> Option<Section> {
    match kind {
        LineKind::Section(section) => Some(section),
        _ => None,
    }
}
