//! Classifies the lines of a whole reply: each on its own, then in context.

use super::line::{LineKind, ReplyLine, classify_line};
use super::{Spelling, free};
use crate::plan::action::heading;
use crate::text::fence;

pub(super) fn read_lines(text: &str, spelling: Spelling) -> Vec<ReplyLine<'_>> {
    let read = |l: fence::TextLine<'_>| classify_line(l.text);
    let line = |l| (l, read(l));
    let mut lines = Vec::with_capacity(text.len() / 32 + 1);
    lines.extend(
        fence::split_lines(text)
            .map(line)
            .map(|(l, kind)| ReplyLine {
                text: l.text,
                ending: l.ending,
                kind,
            }),
    );
    classify_labels(&mut lines);
    if spelling == Spelling::Free {
        free::classify_any_spelling(&mut lines);
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
        if let Some(label) = heading::label(heading::unlisted(text)).filter(|_| indent < 4) {
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
