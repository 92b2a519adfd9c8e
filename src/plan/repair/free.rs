//! Classifies lines in any spelling: headings, labels and fields as models write them, and
//! sentences between blocks.

use super::line::{Fence, Info, LineKind, ReplyLine};
use crate::plan::action::heading::Section;
use crate::plan::spelling::{self, name};

/// Classifies lines again, in any spelling.
pub(super) fn classify_any_spelling(lines: &mut [ReplyLine<'_>]) {
    let inside = lines_in_fences(lines);
    let sections: Vec<Section> = (0..lines.len())
        .filter(|&at| !inside[at])
        .filter_map(|at| section_of(lines[at].kind))
        .collect();
    let (mut next_text, mut changes) = ("", Vec::new());

    for at in (0..lines.len()).rev() {
        let line = lines[at];
        if matches!(
            line.kind,
            LineKind::Text | LineKind::List | LineKind::Title { .. }
        ) {
            changes.extend(respelled_kind(line.text, next_text, &sections).map(|kind| (at, kind)));
        }

        if line.kind != LineKind::Blank {
            next_text = line.text;
        }
    }

    // The first heading of level 1 is the title, whatever its text.
    let title = lines
        .iter()
        .position(|line| matches!(line.kind, LineKind::Title { .. }));
    changes
        .into_iter()
        .filter(|(at, _)| Some(*at) != title)
        .for_each(|(at, kind)| lines[at].kind = kind);
    infer_sections(lines, &inside);

    classify_text(lines);
}

/// Returns which lines are inside a fence, assuming that all fences are correct.
fn lines_in_fences(lines: &[ReplyLine<'_>]) -> Vec<bool> {
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
fn respelled_kind(line: &str, next_text: &str, sections: &[Section]) -> Option<LineKind> {
    let label = || name::label(line, next_text).map(LineKind::Label);
    let action = || name::action(line, next_text).map(|heading| LineKind::Action(heading.row));
    let section = || {
        let (found, level) = name::section(line)?;
        (level == 2 || !sections.contains(&found)).then_some(LineKind::Section(found))
    };
    action().or_else(section).or_else(label)
}

/// Treats unknown headings as the sections that belong in their place: the last one above the
/// actions as the action plan, the first one as the rationale.
fn infer_sections(lines: &mut [ReplyLine<'_>], inside: &[bool]) {
    let (mut unknown, mut known_sections) = (Vec::new(), Vec::new());
    for (at, line) in lines.iter().enumerate().filter(|(at, _)| !inside[*at]) {
        match line.kind {
            LineKind::Action(_) => break,
            LineKind::Section(section) => known_sections.push(section),
            LineKind::Text if line.text.starts_with("## ") => unknown.push(at),
            _ => {}
        }
    }

    if !known_sections.contains(&Section::Plan)
        && let Some(at) = unknown.pop()
    {
        lines[at].kind = LineKind::Section(Section::Plan);
    }
    if !known_sections.contains(&Section::Rationale)
        && let Some(&at) = unknown.first()
    {
        lines[at].kind = LineKind::Section(Section::Rationale);
    }
}

/// Classifies fields without bullets as items, and finds sentences.
fn classify_text(lines: &mut [ReplyLine<'_>]) {
    let mut row = None;
    for line in lines {
        match line.kind {
            LineKind::Action(action_row) => row = Some(action_row),
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
