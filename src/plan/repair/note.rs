//! Level and notes of a repair.

use std::ops::Range;

use super::cost::REPAIR;
use super::emit::BlockSpan;
use super::pass::{BestReadings, ReadingStep, RepairReading};
use super::reply::ReplyLine;
use super::state::{CloserDeviation, RepairEvent};
use super::{Level, Note};
use crate::plan::line::prose::is_prose;
use crate::plan::line::{
    Fence, Info, Label, LineKind, Section, is_listed, key, looks_like_action, name,
};

/// Returns the level of the best reading, given its doubts and whether it changes the text.
pub(super) fn level(best: &BestReadings, doubts: &[Note], changed: bool) -> Level {
    // Text next to the blocks is not changed, so its cost does not count as a repair.
    let is_costly = |step: &ReadingStep| step.cost >= REPAIR && step.event != RepairEvent::Prose;
    match () {
        () if !doubts.is_empty() => Level::Doubtful,
        () if !changed => Level::Clean,
        () if best.first.steps.iter().any(is_costly) => Level::Repaired,
        () => Level::Refenced,
    }
}

/// Returns notes about the repairs of each block, and about structure inside contents.
pub(super) fn notes(
    lines: &[ReplyLine<'_>],
    best: &BestReadings,
    spans: &[BlockSpan],
) -> Vec<Note> {
    let mut notes: Vec<Note> = best
        .first
        .steps
        .iter()
        .filter_map(|step| step_note(lines, step.line, step.event))
        .collect();
    let anew = spans.iter().filter(|span| span.anew);
    notes.extend(anew.map(|span| span_note(lines, span)));
    let open = spans
        .iter()
        .filter(|span| swallowed_by(lines, span).is_none());
    notes.extend(open.filter_map(|span| hidden_action(lines, &span.body)));

    notes
}

pub(super) fn second_plan(at: usize) -> Note {
    note(
        at,
        &format!("the reply has a second plan, at line {}", at + 1),
    )
}

/// Reports the action or pair of an EDIT that a block's new fences would hide permanently.
pub(super) fn swallowed(lines: &[ReplyLine<'_>], span: &BlockSpan) -> Option<Note> {
    let at = swallowed_by(lines, span)?;
    Some(hidden_note(lines, at, &span.body))
}

/// Returns a note for a line index.
pub(super) fn note(at: usize, message: &str) -> Note {
    Note::new(at + 1, message)
}

fn step_note(lines: &[ReplyLine<'_>], at: usize, event: RepairEvent) -> Option<Note> {
    let message = match event {
        RepairEvent::Title if !lines[at].text[1..].starts_with([' ', '\t']) => {
            "add a space after the `#` of the title"
        }
        RepairEvent::Title
            if lines[..at]
                .iter()
                .any(|l| !matches!(l.kind, LineKind::Blank | LineKind::Fence(_))) =>
        {
            "dropped the text before the title"
        }
        RepairEvent::Wrap => "took the whole plan out of its fence",
        RepairEvent::Unwrap if lines[at + 1..].iter().any(|l| l.kind != LineKind::Blank) => {
            "dropped the text after the plan's fence"
        }
        RepairEvent::Surplus => "dropped a fence that closes nothing",
        RepairEvent::Glued => "add a blank line before the label, which the list would swallow",
        _ => return None,
    };
    let mut dropped = lines[at + 1..].iter().map(|line| line.text);
    let is_aside = event == RepairEvent::Unwrap && dropped.any(|text| is_prose(&[text]));
    Some(note(at, message).as_aside(is_aside && follows_command(lines, at)))
}

/// Returns whether the nearest action above a line runs a command or reaches outside otherwise.
fn follows_command(lines: &[ReplyLine<'_>], at: usize) -> bool {
    let row = lines[..at].iter().rev().find_map(|line| match line.kind {
        LineKind::Action(row) => Some(row),
        _ => None,
    });
    row.is_some_and(|row| row.shape.reaches_outside())
}

fn span_note(lines: &[ReplyLine<'_>], span: &BlockSpan) -> Note {
    let opened = span.open + 1;
    match (span.close, span.how) {
        (None, _) => note(
            span.body.end,
            &format!("closed the block that opens at line {opened}; its closing fence was missing"),
        ),
        (Some(at), CloserDeviation::Shorter) => note(
            at,
            &format!("made the closing fence as long as the one that opens at line {opened}"),
        ),
        (Some(at), CloserDeviation::Trailing) => {
            let text = lines[at].text.trim_start().trim_start_matches(['`', '~']);
            let is_aside = is_prose(&[text]) && follows_command(lines, at);
            note(at, "dropped the text behind the closing fence").as_aside(is_aside)
        }
        (Some(at), CloserDeviation::OtherMark) => note(
            at,
            &format!("closed with the character of the fence that opens at line {opened}"),
        ),
        (Some(_), CloserDeviation::Proper) => note(
            span.open,
            "rewrote the fence, so that the fences inside cannot end its block",
        ),
    }
}

/// Warns about an action heading in a content, outside the content's own closed fences.
pub(super) fn hidden_action(lines: &[ReplyLine<'_>], body: &Range<usize>) -> Option<Note> {
    let (mut open, mut hidden) = (None::<Fence>, None);
    for at in body.clone() {
        match (lines[at].kind, open) {
            (LineKind::Action(_), None) => return Some(hidden_note(lines, at, body)),
            (LineKind::Action(_), Some(_)) => hidden = hidden.or(Some(at)),
            (LineKind::Fence(fence), None) if fence.info != Info::Odd => open = Some(fence),
            (LineKind::Fence(fence), Some(outer)) if fence.closes(outer) => {
                (open, hidden) = (None, None);
            }
            _ => {}
        }
    }

    hidden.map(|at| hidden_note(lines, at, body))
}

/// Returns the index of the action, or of the label of an EDIT, that a block's new fences would
/// hide permanently.
fn swallowed_by(lines: &[ReplyLine<'_>], span: &BlockSpan) -> Option<usize> {
    if !span.anew {
        return None;
    }
    let label = || {
        label_above(lines, span.open)?;
        swallowed_label(lines, &span.body)
    };
    swallowed_action(lines, &span.body).or_else(label)
}

pub(super) fn label_above(lines: &[ReplyLine<'_>], open: usize) -> Option<Label> {
    let mut above = lines[..open].iter().rev();
    match above.find(|line| line.kind != LineKind::Blank)?.kind {
        LineKind::Label(label) => Some(label),
        _ => None,
    }
}

/// Returns the index of a label in a content, with a fence below it.
fn swallowed_label(lines: &[ReplyLine<'_>], body: &Range<usize>) -> Option<usize> {
    let mut labels = body
        .clone()
        .filter(|&at| matches!(lines[at].kind, LineKind::Label(_)));
    labels.find(|&at| {
        let next = lines[at + 1..body.end]
            .iter()
            .find(|line| line.kind != LineKind::Blank);
        next.is_some_and(|line| matches!(line.kind, LineKind::Fence(_)))
    })
}

/// Returns the index of an action in a content that is neither in a document's fence nor below an
/// `## Action Plan` of the content itself. New fences around it would hide it from every reader.
pub(super) fn swallowed_action(lines: &[ReplyLine<'_>], body: &Range<usize>) -> Option<usize> {
    let (mut open, mut planned) = (None::<Fence>, false);
    let is_action = |at: usize| {
        matches!(lines[at].kind, LineKind::Action(_))
            || looks_like_action(lines[at].text)
            || is_action_with_fields(&lines[at..body.end])
    };
    for at in body.clone() {
        match (lines[at].kind, open) {
            (LineKind::Section(Section::Plan), None) => planned = true,
            (_, outer)
                if !planned
                    && outer.is_none_or(|outer| outer.info != Info::Document)
                    && is_action(at) =>
            {
                return Some(at);
            }
            (LineKind::Fence(fence), None) if fence.info != Info::Odd => open = Some(fence),
            (LineKind::Fence(fence), Some(outer)) if fence.closes(outer) => open = None,
            _ => {}
        }
    }

    None
}

/// Returns whether the first line is the heading of an action in any spelling, with one of its fields
/// below.
fn is_action_with_fields(lines: &[ReplyLine<'_>]) -> bool {
    let Some((heading, below)) = lines.split_first() else {
        return false;
    };
    if heading.kind == LineKind::Blank {
        return false;
    }
    let next = below.iter().find(|line| line.kind != LineKind::Blank);
    let Some(next) = next.filter(|line| is_listed(line.text)) else {
        return false;
    };
    name::action(heading.text, next.text)
        .is_some_and(|heading| key::field(next.text, Some(heading.row)).is_some())
}

/// Reports a heading or label that was kept as content.
fn hidden_note(lines: &[ReplyLine<'_>], at: usize, body: &Range<usize>) -> Note {
    let kind = if matches!(lines[at].kind, LineKind::Label(_)) {
        "label and its block"
    } else {
        "action's heading; it is not run"
    };
    note(
        at,
        &format!(
            "the content that starts at line {} contains this {kind}",
            body.start + 1
        ),
    )
}

/// Reports where the two best readings differ.
pub(super) fn ambiguity_note(
    lines: &[ReplyLine<'_>],
    first: &RepairReading,
    second: &RepairReading,
) -> Note {
    let doings = |reading: &RepairReading| -> Vec<(usize, RepairEvent)> {
        reading
            .steps
            .iter()
            .filter(|s| !matches!(s.event, RepairEvent::Prose | RepairEvent::Glued))
            .map(|s| (s.line, s.event))
            .collect()
    };
    let (first, second) = (doings(first), doings(second));
    let same = first
        .iter()
        .zip(&second)
        .take_while(|(a, b)| a == b)
        .count();
    let ways: Vec<_> = [first.get(same), second.get(same)]
        .into_iter()
        .flatten()
        .collect();
    let at = ways.iter().map(|step| step.0).min().unwrap_or(0);
    let says: Vec<_> = ways
        .iter()
        .map(|step| {
            format!(
                "line {} {}",
                step.0.min(lines.len() - 1) + 1,
                describe_event(step.1)
            )
        })
        .collect();

    note(
        at.min(lines.len() - 1),
        &format!("the fences can be read in two ways: {}", says.join(", or ")),
    )
}

fn describe_event(event: RepairEvent) -> &'static str {
    match event {
        RepairEvent::Title => "is the title",
        RepairEvent::Wrap => "opens a fence around the plan",
        RepairEvent::Unwrap => "closes the fence around the plan",
        RepairEvent::Action => "is an action of the plan",
        RepairEvent::Open(..) => "opens a block",
        RepairEvent::Close(..) => "closes its block",
        RepairEvent::Forgotten(_) => "follows a block whose closing fence is missing",
        RepairEvent::Surplus => "is a fence too many",
        RepairEvent::SecondPlan => "begins a second plan",
        RepairEvent::Glued | RepairEvent::Prose | RepairEvent::Broken => "belongs to nothing",
    }
}
