//! Doubts about the cheapest reading: text that could be a remark after a block, a closing fence
//! added next to an almost correct one, a truncated reply.
//!
//! Costs compare readings; these are mistakes that look identical in terms of cost. A doubtful plan
//! is never run, whatever its cost.

use std::ops::Range;

use super::almost_fence::{self, is_nearly_fence};
use super::analysis::Analysis;
use super::cost::MARGIN;
use super::emit::BlockSpan;
use super::event::{CloserDeviation, FenceScope, RepairEvent};
use super::line::{self, Fence, Info, LineKind, ReplyLine};
use super::note::{self, note};
use super::state::Nesting;
use super::token::{Token, TokenKind};
use super::truncation;
use super::{Note, check};
use crate::plan::action::heading::Label;
use crate::plan::spelling;

impl Analysis<'_> {
    /// Returns all doubts, at most one per line.
    pub fn doubts(&self) -> Vec<Note> {
        let mut doubts: Vec<Note> = truncation::truncation_of_reading(self)
            .into_iter()
            .collect();
        doubts.extend(self.spans.iter().filter_map(|span| self.of_block(span)));
        doubts.extend(self.pairs());
        doubts.extend(
            self.best
                .first
                .steps
                .iter()
                .filter_map(|step| match step.event {
                    RepairEvent::SecondPlan => Some(note::second_plan(step.line)),
                    _ => None,
                }),
        );
        doubts.extend(self.surplus());
        // Only without a specific doubt, which is more helpful.
        if doubts.is_empty() {
            doubts.extend(self.rival());
        }

        let mut reported = std::collections::BTreeSet::new();
        doubts.retain(|doubt| reported.insert(doubt.line));
        doubts
    }

    /// Reports where the two best readings differ, if they are about equally likely.
    fn rival(&self) -> Option<Note> {
        let first = &self.best.first;
        let second = self.best.second.as_ref()?;
        let near = second.cost < first.cost + MARGIN;
        near.then(|| note::ambiguity_note(self.lines, first, second))
    }

    fn of_block(&self, span: &BlockSpan) -> Option<Note> {
        let swallowed = note::swallowed(self.lines, span);
        if swallowed.is_some() || span.scope != FenceScope::Content {
            return swallowed;
        }

        self.remarks(span)
            .or_else(|| longer_closer(self.lines, &(span.body.start..span.close?)))
            .or_else(|| self.stray_fence(span))
            .or_else(|| self.closer(span))
            .or_else(|| self.check_trailing_text(span))
            .or_else(|| self.blanks(span))
            .or_else(|| self.opener(span))
    }

    /// Reports that a block can end at its first closing fence, with remarks after it.
    fn remarks(&self, span: &BlockSpan) -> Option<Note> {
        let closer = self.token(span.open)?.complete_until?;
        let end = span.close.unwrap_or(span.body.end);
        if span.nesting == Nesting::Unknown && closer < end {
            return Some(two_ways(closer, end));
        }

        let last = self.last_of_remarks(span, closer)?;
        (span.nesting != Nesting::Anywhere && span.close == Some(closer))
            .then(|| two_ways(closer, last))
    }

    /// Returns the last fence after a block, if all fences up to the next structure could be
    /// content.
    fn last_of_remarks(&self, span: &BlockSpan, closer: usize) -> Option<usize> {
        let opener = self.fence(span.open)?;
        let following = self.tokens.partition_point(|token| token.line <= closer);
        let region = self.tokens[following..].iter().take_while(|token| {
            matches!(
                token.kind,
                TokenKind::Gap(_) | TokenKind::Fence(_) | TokenKind::Title { .. }
            )
        });

        let fences = region.filter_map(|token| match token.kind {
            TokenKind::Fence(fence) => Some((token.line, fence)),
            _ => None,
        });
        let fences: Vec<(usize, Fence)> = fences.collect();
        let is_rival = |fence: &Fence| {
            fence.info == Info::Bare && fence.mark == opener.mark && fence.len >= opener.len
        };

        let pairs =
            fences.len().is_multiple_of(2) && fences.iter().all(|(_, fence)| is_rival(fence));
        fences.last().filter(|_| pairs).map(|(line, _)| *line)
    }

    /// Reports a fence in code that cannot be part of the code.
    fn stray_fence(&self, span: &BlockSpan) -> Option<Note> {
        let opener = self.fence(span.open)?;
        let fences = || {
            span.body
                .clone()
                .filter_map(|at| Some((at, self.fence(at)?)))
        };
        let is_rival = |fence: Fence| fence.mark == opener.mark && fence.len >= opener.len;
        let is_closed = span.close.is_some() && span.how == CloserDeviation::Proper;

        if span.nesting != Nesting::Spans
            || is_closed && !fences().any(|(_, fence)| is_rival(fence))
        {
            return None;
        }

        let is_stray = |at: usize, fence: Fence| {
            let spanned = self.token(at).is_some_and(|token| token.spanned);
            fence.indent <= opener.indent.saturating_add(3) && !spanned
        };
        let (at, _) = fences().find(|&(at, fence)| is_stray(at, fence))?;
        let opened = span.open + 1;

        Some(note(
            at,
            &format!(
                "this fence can end the block that opens at line {opened}, or be a line of it"
            ),
        ))
    }

    /// Reports a missing or malformed closing fence next to an almost correct one.
    fn closer(&self, span: &BlockSpan) -> Option<Note> {
        let opened = span.open + 1;
        let body = || span.body.clone();
        match (span.close, span.how) {
            (Some(_), CloserDeviation::Proper) => None,
            (Some(at), CloserDeviation::OtherMark) => Some(note(
                at,
                &format!(
                    "the block that opens at line {opened} is closed with the other character"
                ),
            )),
            (Some(at), CloserDeviation::Trailing)
                if !almost_fence::is_remark_after_fence(self.lines[at].text) =>
            {
                Some(note(
                    at,
                    &format!(
                        "this closes the block that opens at line {opened}, or is a line of it"
                    ),
                ))
            }
            (close, _) => {
                let near = body().find(|&at| is_nearly_fence(self.lines[at].text));
                let last = || self.last_fence(span).filter(|_| close.is_none());
                let open =
                    || almost_fence::unclosed_fence(self.lines, body()).filter(|_| close.is_none());
                let at = near.or_else(last).or_else(open)?;
                Some(note(
                    at,
                    &format!("this can be meant to close the block that opens at line {opened}"),
                ))
            }
        }
    }

    /// Reports that the last lines of a code block without a closing fence are a sentence, which
    /// could follow the block.
    fn check_trailing_text(&self, span: &BlockSpan) -> Option<Note> {
        if span.close.is_some() || span.nesting == Nesting::Anywhere {
            return None;
        }

        let blank = |at: &usize| self.lines[*at].kind == LineKind::Blank;
        let last = span.body.clone().rev().find(|at| !blank(at))?;
        let above = (span.body.start..last).rev().find(|at| blank(at))?;
        let text = self.lines[above + 1].text;
        let opened = span.open + 1;
        (text.starts_with(char::is_alphabetic) && spelling::is_prose(text)).then(|| {
            note(
                above + 1,
                &format!("this text may belong to the block that opens at line {opened}, whose closing fence is missing"),
            )
        })
    }

    /// Reports more blank lines than usual after a block without a closing fence: they could be its
    /// last lines.
    fn blanks(&self, span: &BlockSpan) -> Option<Note> {
        let label_after = |end: usize| {
            let lines = self.lines[end..].iter();
            let count = lines
                .take_while(|line| line.kind == LineKind::Blank)
                .count();
            let next = self.lines.get(end + count)?;
            Some((matches!(next.kind, LineKind::Label(_)), count))
        };
        let (labelled, count) = label_after(span.body.end).filter(|_| span.close.is_none())?;
        let closed_spans = self
            .spans
            .iter()
            .filter(|other| other.scope == FenceScope::Content);
        let usual = closed_spans
            .filter_map(|other| label_after(other.close? + 1))
            .filter(|(other, _)| *other == labelled)
            .map(|(_, count)| count)
            .max();
        let opened = span.open + 1;

        (count > usual.unwrap_or(if labelled { 0 } else { 2 })).then(|| {
            note(
                span.body.end,
                &format!("the blank lines here can belong to the block that opens at line {opened}, whose closing fence is missing"),
            )
        })
    }

    /// Returns the last line of a content if it is a fence that could close the block.
    fn last_fence(&self, span: &BlockSpan) -> Option<usize> {
        let opener = self.fence(span.open)?;
        let last = span.body.clone().last()?;
        let fence = self.fence(last)?;
        (fence.mark == opener.mark && fence.len >= opener.len).then_some(last)
    }

    /// Reports an opening fence that occurs twice.
    fn opener(&self, span: &BlockSpan) -> Option<Note> {
        let first = self.lines.get(span.body.start)?;
        let same = first.text.trim() == self.lines[span.open].text.trim();
        let why = "the opening fence is repeated; the second can be a slip, or content";
        (same && span.anew && span.body.len() > 1).then(|| note(span.body.start, why))
    }

    /// Reports that only one of FIND and REPLACE leaves a fence open: its closing fence could be
    /// missing.
    fn pairs(&self) -> Vec<Note> {
        let labels = [Label::Find, Label::Replace];
        let mut pairs = Vec::new();
        for pair in self.spans.windows(2) {
            let [find, replace] = pair else { continue };
            if [self.label(find), self.label(replace)] != labels.map(Some) {
                continue;
            }

            let open =
                |span: &BlockSpan| almost_fence::unclosed_fence(self.lines, span.body.clone());
            let (lone, at) = match (open(find), open(replace)) {
                (Some(at), None) => (find, at),
                (None, Some(at)) => (replace, at),
                _ => continue,
            };
            let is_reported = note::swallowed(self.lines, lone).is_some();
            let end = lone
                .close
                .filter(|_| lone.anew && lone.how == CloserDeviation::Proper && !is_reported);
            let inside = at + 1..lone.body.end;
            if let Some(end) = end.filter(|_| !inside.is_empty()) {
                pairs.push(two_closers(end, lone.open));
            }
        }

        pairs
    }

    fn label(&self, span: &BlockSpan) -> Option<Label> {
        let above = self.lines[..span.open].iter().rev();
        let line = above
            .into_iter()
            .find(|line| line.kind != LineKind::Blank)?;
        match line.kind {
            LineKind::Label(label) => Some(label),
            _ => None,
        }
    }

    /// Reports fences that belong to nothing but could close a block, unless they directly follow a
    /// closing fence.
    fn surplus(&self) -> Vec<Note> {
        let steps = &self.best.first.steps;
        let first = steps
            .iter()
            .position(|step| step.event == RepairEvent::Action);
        let mut doubts = Vec::new();

        for pair in steps[first.unwrap_or(steps.len())..].windows(2) {
            let [before, step] = pair else { continue };
            let follows = matches!(before.event, RepairEvent::Close(..) | RepairEvent::Surplus);
            let between = &self.lines[(before.line + 1).min(step.line)..step.line];
            let is_near = follows && between.iter().all(|line| line.kind == LineKind::Blank);
            if step.event == RepairEvent::Surplus && !is_near {
                doubts.push(note(
                    step.line,
                    "this fence belongs to no block, or ends one that begins above",
                ));
            }
        }

        doubts
    }

    fn token(&self, line: usize) -> Option<&Token> {
        let at = self.tokens.binary_search_by_key(&line, |token| token.line);
        at.ok().map(|at| &self.tokens[at])
    }

    fn fence(&self, line: usize) -> Option<line::Fence> {
        match self.lines[line].kind {
            LineKind::Fence(fence) => Some(fence),
            _ => None,
        }
    }
}

/// Reports a closing fence longer than its opening one, with an action before it or after a fence
/// that stays open. Two mistakes could cancel out: a missing closing fence, and one further down
/// that is too long. Or the last line of the content is joined to its closing fence.
pub(super) fn longer_closer(lines: &[ReplyLine<'_>], body: &Range<usize>) -> Option<Note> {
    let detail = if note::swallowed_action(lines, body).is_some() {
        "an action is between them"
    } else {
        almost_fence::unclosed_fence(lines, body.clone())?;
        "a fence between them is never closed"
    };

    let why = format!("this closing fence is longer than its opener, and {detail}");
    check::is_closed_longer(lines, body).then(|| note(body.end, &why))
}

/// Reports that a block can end at either of two lines.
fn two_ways(first: usize, last: usize) -> Note {
    let (first_line, last_line) = (first + 1, last + 1);
    note(
        first,
        &format!(
            "the fences can be read in two ways: line {first_line} closes its block, and a remark with a block of its own follows, or line {last_line} closes it"
        ),
    )
}

/// Reports that a fence can close a block, or something inside a block whose closing fence is
/// missing.
fn two_closers(at: usize, open: usize) -> Note {
    let opened = open + 1;
    note(
        at,
        &format!(
            "this closes the block that opens at line {opened}, or a fence inside of it, and the closing fence is missing"
        ),
    )
}
