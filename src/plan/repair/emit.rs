//! Writes a reading as text: the original lines, with the fences that CommonMark needs.

use std::ops::Range;

use super::pass::{ReadingStep, is_indented_like};
use super::reply::ReplyLine;
use super::state::{CloserDeviation, FenceScope, Nesting, RepairEvent};
use crate::plan::line::{Fence, LineKind, indent_of};
use crate::text::fence::{self, columns, dedented};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockSpan {
    /// Line index of the opening fence.
    pub open: usize,
    /// Lines of the content.
    pub body: Range<usize>,
    /// Line index of the closing fence; `None` if missing.
    pub close: Option<usize>,
    pub how: CloserDeviation,
    /// Whether its fences must be rewritten.
    pub anew: bool,
    pub scope: FenceScope,
    /// Where fences are possible in the content.
    pub nesting: Nesting,
}

#[derive(Debug)]
enum RepairEdit {
    Drop,
    Replace(String),
    Insert(String),
    /// Removes this many bytes at the start.
    Dedent(usize),
}

/// Returns the blocks of a reading. Blocks of messages are included only if they need new fences.
pub(super) fn spans(lines: &[ReplyLine<'_>], steps: &[ReadingStep]) -> Vec<BlockSpan> {
    let (mut spans, mut message) = (Vec::new(), Vec::new());
    let (mut open, mut nesting, mut region) = (0, Nesting::Anywhere, 0);
    for step in steps {
        let ends = matches!(
            step.event,
            RepairEvent::Action | RepairEvent::Forgotten(_) | RepairEvent::Unwrap
        );
        let closing = match step.event {
            RepairEvent::Open(_, inside) => {
                (open, nesting) = (step.line, inside);
                None
            }
            RepairEvent::Close(scope, how) => Some((scope, Some(how))),
            RepairEvent::Forgotten(scope) => Some((scope, None)),
            _ => None,
        };

        if let Some((scope, how)) = closing {
            let span = BlockSpan {
                scope,
                nesting,
                ..span(lines, open..step.line, how)
            };
            if scope == FenceScope::Message {
                message.push(span);
            } else {
                spans.push(span);
            }
        }

        if ends {
            flush(lines, region..step.line, &mut message, &mut spans);
            region = step.line;
        }
    }

    flush(lines, region..lines.len(), &mut message, &mut spans);
    spans
}

/// Adds the blocks of a message, unless CommonMark ends the message at the same place as the
/// reading.
fn flush(
    lines: &[ReplyLine<'_>],
    region: Range<usize>,
    message: &mut Vec<BlockSpan>,
    spans: &mut Vec<BlockSpan>,
) {
    if !message.is_empty()
        && !is_closed(lines.get(region.start + 1..region.end).unwrap_or_default())
    {
        spans.append(message);
    }
    message.clear();
}

/// Returns whether CommonMark sees no action and no open fence at the end of these lines.
fn is_closed(lines: &[ReplyLine<'_>]) -> bool {
    let mut open: Option<Fence> = None;
    for line in lines {
        match (line.kind, open) {
            (LineKind::Fence(fence), None) if fence.indent <= 3 => open = Some(fence),
            (LineKind::Fence(fence), Some(outer)) if fence.closes(outer) && fence.indent <= 3 => {
                open = None;
            }
            (LineKind::Action(_), None) => return false,
            _ => {}
        }
    }

    open.is_none()
}

fn span(
    lines: &[ReplyLine<'_>],
    Range { start: open, end }: Range<usize>,
    how: Option<CloserDeviation>,
) -> BlockSpan {
    let trailing = lines[open + 1..end]
        .iter()
        .rev()
        .take_while(|l| l.kind == LineKind::Blank)
        .count();
    // RP7: a missing closing fence goes above the blank lines.
    let body = open + 1..if how.is_some() { end } else { end - trailing };
    let LineKind::Fence(fence) = lines[open].kind else {
        unreachable!("a block opens at a fence")
    };

    let inside = |line: &ReplyLine<'_>| matches!(line.kind, LineKind::Fence(inner) if inner.is_long_enough(fence));
    let ambiguous = lines[body.clone()].iter().any(inside);
    let askew = how.is_some() && matches!(lines[end].kind, LineKind::Fence(f) if f.indent != 0);
    let anew = ambiguous || askew || fence.indent > 0 || how != Some(CloserDeviation::Proper);
    BlockSpan {
        open,
        body,
        close: how.map(|_| end),
        how: how.unwrap_or(CloserDeviation::Proper),
        anew,
        scope: FenceScope::Content,
        nesting: Nesting::Anywhere,
    }
}

pub(super) fn emit(lines: &[ReplyLine<'_>], steps: &[ReadingStep], spans: &[BlockSpan]) -> String {
    let mut edits = Vec::new();
    for step in steps {
        edit(lines, step, &mut edits);
    }

    for span in spans.iter().filter(|span| span.anew) {
        refence(lines, span, &mut edits);
    }

    // Stable, so that the edits of a line keep their order.
    edits.sort_by_key(|(line, _)| *line);
    write(lines, &edits)
}

fn edit(lines: &[ReplyLine<'_>], step: &ReadingStep, edits: &mut Vec<(usize, RepairEdit)>) {
    match step.event {
        RepairEvent::Title => {
            // Everything above the title is dropped, so earlier edits there are obsolete.
            edits.retain(|(line, _)| *line >= step.line);
            edits.extend((0..step.line).map(|line| (line, RepairEdit::Drop)));
            let text = lines[step.line].text;
            if !text[1..].starts_with([' ', '\t']) {
                edits.push((step.line, RepairEdit::Replace(format!("# {}", &text[1..]))));
            }
        }
        RepairEvent::Wrap | RepairEvent::Surplus => edits.push((step.line, RepairEdit::Drop)),
        RepairEvent::Unwrap => {
            edits.extend((step.line..lines.len()).map(|line| (line, RepairEdit::Drop)))
        }
        RepairEvent::Glued => edits.push((step.line, RepairEdit::Insert(String::new()))),
        _ => {}
    }
}

fn refence(lines: &[ReplyLine<'_>], span: &BlockSpan, edits: &mut Vec<(usize, RepairEdit)>) {
    let opener = lines[span.open].text;
    let body = opener.trim_start_matches([' ', '\t']);
    let mark = char::from(body.as_bytes()[0]);
    let own = body.len() - body.trim_start_matches(mark).len();
    let run = lines[span.body.clone()]
        .iter()
        .map(|l| fence::longest_run(l.text, mark))
        .max()
        .unwrap_or(0);
    let fence = String::from(mark).repeat(own.max(run + 1));

    edits.push((
        span.open,
        RepairEdit::Replace(format!("{fence}{}", &body[own..])),
    ));
    let indent = columns(indent_of(opener));
    if indent > 0 && is_indented_like(&lines[span.body.clone()], opener) {
        let dedent = |at: usize| {
            let text = lines[at].text;
            let rest = dedented(text, indent).unwrap_or(text);
            (at, RepairEdit::Dedent(text.len() - rest.len()))
        };
        edits.extend(span.body.clone().map(dedent));
    }

    edits.push(match span.close {
        Some(line) => (line, RepairEdit::Replace(fence)),
        None => (span.body.end, RepairEdit::Insert(fence)),
    });
}

fn write(lines: &[ReplyLine<'_>], edits: &[(usize, RepairEdit)]) -> String {
    let usual = lines
        .iter()
        .map(|l| l.ending)
        .find(|e| !e.is_empty())
        .unwrap_or("\n");
    let mut text = String::new();
    let mut edits = edits.iter().peekable();

    for at in 0..=lines.len() {
        let (mut keep, mut own) = (true, lines.get(at).map_or("", |l| l.text));
        while let Some((_, edit)) = edits.next_if(|(line, _)| *line == at) {
            match edit {
                RepairEdit::Drop => keep = false,
                RepairEdit::Replace(other) => own = other,
                RepairEdit::Dedent(bytes) => own = &own[*bytes..],
                RepairEdit::Insert(line) => {
                    let ended = text.ends_with(['\n', '\r']);
                    // The last line is terminated like that of the reply.
                    let is_terminated = ended || at < lines.len();
                    text.push_str(if ended { "" } else { usual });
                    text.push_str(line);
                    text.push_str(if is_terminated { usual } else { "" });
                }
            }
        }

        if let Some(line) = lines.get(at).filter(|_| keep) {
            text.push_str(own);
            text.push_str(line.ending);
        }
    }

    text
}
