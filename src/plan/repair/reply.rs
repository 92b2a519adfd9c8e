//! Classifies the lines of a reply for the plan grammar, each with the lines around it.
//!
//! The pass decides whether a line has that role or belongs to the content.

use super::Spelling;
use crate::plan::line::prose::is_prose;
use crate::plan::line::{self, Fence, LineKind, Section, classify_line, key, name};
use crate::text::fence;

#[derive(Debug, Clone, Copy)]
pub(super) struct ReplyLine<'a> {
    /// The line without its ending.
    pub text: &'a str,
    pub ending: &'a str,
    pub kind: LineKind,
}

pub(super) fn read_lines(text: &str, spelling: Spelling) -> Vec<ReplyLine<'_>> {
    let mut lines = Vec::with_capacity(text.len() / 32 + 1);
    lines.extend(fence::split_lines(text).map(|line| ReplyLine {
        text: line.text,
        ending: line.ending,
        kind: classify_line(line.text),
    }));
    classify_labels(&mut lines);
    if spelling == Spelling::Free {
        classify_any_spelling(&mut lines);
    }

    // Structure inside the model's thoughts is not part of the plan.
    let thoughts = thought_lines(&lines);
    lines[..thoughts]
        .iter_mut()
        .for_each(|line| line.kind = LineKind::Text);
    lines
}

/// Classifies a line as a label if only the fence below shows that it is one: `Find`, `- FIND:`.
/// Without a fence it is ordinary text.
fn classify_labels(lines: &mut [ReplyLine<'_>]) {
    for fence in 1..lines.len() {
        if !matches!(lines[fence].kind, LineKind::Fence(_)) {
            continue;
        }

        let above = lines[..fence]
            .iter_mut()
            .rev()
            .find(|line| line.kind != LineKind::Blank);
        let Some(line) = above.filter(|line| matches!(line.kind, LineKind::Text | LineKind::List))
        else {
            continue;
        };

        let (indent, text) = fence::split_indent(line.text);
        // At deeper indentation it is code or a nested item.
        if let Some(label) = line::label(line::unlisted(text)).filter(|_| indent < 4) {
            line.kind = LineKind::Label(label);
        }
    }
}

/// Returns the number of leading lines that contain the model's thoughts, in `<think>` tags.
pub(super) fn thought_lines(lines: &[ReplyLine<'_>]) -> usize {
    let Some(first) = lines.iter().find(|line| !line.text.trim().is_empty()) else {
        return 0;
    };
    let close = match first.text.trim_start() {
        text if text.starts_with("<think>") => "</think>",
        text if text.starts_with("<thinking>") => "</thinking>",
        _ => return 0,
    };
    lines
        .iter()
        .position(|line| line.text.contains(close))
        .map_or(0, |last| last + 1)
}

/// Classifies lines again, in any spelling.
fn classify_any_spelling(lines: &mut [ReplyLine<'_>]) {
    let inside = lines_in_fences(lines);
    let sections: Vec<Section> = (0..lines.len())
        .filter(|&at| !inside[at])
        .filter_map(|at| match lines[at].kind {
            LineKind::Section(section) => Some(section),
            _ => None,
        })
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
            (LineKind::Fence(fence), Some(outer)) if fence.closes(outer) => open = None,
            _ => {}
        }
        open.is_some()
    };
    lines.iter().map(is_inside).collect()
}

/// Returns the kind of a line in another spelling. `sections` lists those that already have an exact
/// heading.
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
            LineKind::Text if key::field(line.text, row).is_some() => line.kind = LineKind::List,
            LineKind::Text if is_prose(&[line.text]) => line.kind = LineKind::Sentence,
            _ => {}
        }
    }
}
