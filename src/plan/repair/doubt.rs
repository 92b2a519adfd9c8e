//! Doubts about the cheapest reading: text that could be a remark after a block, or a closing fence
//! added next to an almost correct one.
//!
//! Costs compare readings; these are mistakes that look identical in terms of cost. A doubtful plan
//! is never run, whatever its cost.

use std::ops::Range;

use super::Note;
use super::cost::MARGIN;
use super::emit::BlockSpan;
use super::note::{self, note};
use super::pass::{self, BestReadings};
use super::reply::ReplyLine;
use super::state::{CloserDeviation, FenceScope, Nesting, RepairEvent};
use super::token::Token;
use crate::plan::line::prose::is_prose;
use crate::plan::line::{self, Fence, Info, Label, LineKind};

impl Analysis<'_> {
    /// Returns all doubts, with that of a truncated reply, at most one per line.
    pub fn doubts(&self, truncation: Option<Note>) -> Vec<Note> {
        let mut doubts: Vec<Note> = truncation.into_iter().collect();
        doubts.extend(self.spans.iter().filter_map(|span| self.of_block(span)));
        doubts.extend(self.pairs());
        let steps = self.best.first.steps.iter();
        let second_plans = steps.filter(|step| step.event == RepairEvent::SecondPlan);
        doubts.extend(second_plans.map(|step| note::second_plan(step.line)));
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
        let pairs = self.token(closer)?.pairs?;
        let could_close = pairs.shortest.closes(self.fence(span.open)?);
        could_close.then_some(pairs.last)
    }

    /// Reports a fence in code that cannot be part of the code.
    fn stray_fence(&self, span: &BlockSpan) -> Option<Note> {
        let opener = self.fence(span.open)?;
        let fences = || {
            span.body
                .clone()
                .filter_map(|at| Some((at, self.fence(at)?)))
        };
        let is_closed = span.close.is_some() && span.how == CloserDeviation::Proper;

        if span.nesting != Nesting::Spans
            || is_closed && !fences().any(|(_, fence)| fence.is_long_enough(opener))
        {
            return None;
        }

        let is_stray = |at: usize, fence: Fence| {
            let spanned = self.token(at).is_some_and(|token| token.spanned);
            fence.is_aligned(opener) && !spanned
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
                if !is_remark_after_fence(self.lines[at].text) =>
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
                let open = || unclosed_fence(self.lines, body()).filter(|_| close.is_none());
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
        (text.starts_with(char::is_alphabetic) && is_prose(&[text])).then(|| {
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
        fence.is_long_enough(opener).then_some(last)
    }

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
            let above = [find, replace].map(|span| note::label_above(self.lines, span.open));
            if above != labels.map(Some) {
                continue;
            }

            let open = |span: &BlockSpan| unclosed_fence(self.lines, span.body.clone());
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

    /// Reports fences that belong to nothing but could close a block, unless they directly follow a
    /// closing fence; and pairs of them that could show an action.
    fn surplus(&self) -> Vec<Note> {
        let steps = &self.best.first.steps;
        let first = steps
            .iter()
            .position(|step| step.event == RepairEvent::Action);
        let mut doubts: Vec<Note> = self.shown_actions().into_iter().collect();

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

    fn shown_actions(&self) -> Option<Note> {
        let (mut opened, mut action) = (None::<(usize, Fence)>, None);
        for step in &self.best.first.steps {
            match (step.event, opened) {
                (RepairEvent::Action, Some(_)) => action = action.or(Some(step.line)),
                (RepairEvent::Surplus, _) => {
                    let fence = self.fence(step.line)?;
                    let pair = opened
                        .filter(|(_, opener)| fence.closes(*opener))
                        .zip(action);
                    if let Some(((line, _), _)) = pair {
                        let why =
                            "this fence belongs to no block, or begins one that shows an action";
                        return Some(note(line, why));
                    }
                    (opened, action) = (Some((step.line, fence)), None);
                }
                _ => {}
            }
        }
        None
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
        unclosed_fence(lines, body.clone())?;
        "a fence between them is never closed"
    };

    let why = format!("this closing fence is longer than its opener, and {detail}");
    pass::is_closed_longer(lines, body).then(|| note(body.end, &why))
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

#[derive(Clone, Copy)]
pub(super) struct Analysis<'a> {
    pub lines: &'a [ReplyLine<'a>],
    pub tokens: &'a [Token],
    pub best: &'a BestReadings,
    /// Blocks of the best reading.
    pub spans: &'a [BlockSpan],
}

/// Ends of comments and strings. Text after a fence that contains one of these is not a remark.
const CODE_ENDS: [&str; 9] = ["*/", "\"\"\"", "'''", "*)", "-}", "]]", "#>", "=#", "\"#"];

/// Returns whether a line that is not a fence in Markdown was probably meant as one: it has a
/// non-breaking space, too few marks, marks that look alike, an escape, or no line break before it.
pub(super) fn is_nearly_fence(line: &str) -> bool {
    if crate::text::fence::read(line).is_some() {
        return false;
    }

    let is_visible = |c: &char| !(c.is_whitespace() || c.is_control() || is_zero_width(*c));
    let text: String = line.chars().filter(is_visible).collect();
    let bare = text.replace('\\', "");
    let body = bare.trim_start_matches(['>', '-']);
    let alone = |marks: &str, least: usize| {
        let is_mark = |c: char| marks.contains(c);
        body.chars().count() >= least && body.chars().all(is_mark)
    };
    let glued = |mark: &str| {
        let start = line.trim_end().trim_end_matches(&mark[..1]);
        line.trim_end().ends_with(mark) && start.ends_with(|c: char| !c.is_whitespace())
    };

    let starts = line.trim_start().starts_with("```");
    starts
        || alone("`\u{ff40}\u{2cb}\u{2035}\u{1fef}", 1)
        || alone("~\u{ff5e}\u{2dc}\u{223c}", 2)
        || alone("´’‘＇'", 2)
        || glued("```")
        || glued("~~~")
}

fn is_zero_width(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}')
        || matches!(c, '\u{300}'..='\u{36f}')
}

/// Returns whether the text after a closing fence is a remark about it or invisible, and not the
/// end of the content's last line or the language of a block.
pub(super) fn is_remark_after_fence(closer: &str) -> bool {
    let text = text_after_fence(closer);
    let glued = closer
        .trim_start()
        .trim_start_matches(['`', '~'])
        .starts_with(text);
    let is_code = CODE_ENDS.iter().any(|end| text.contains(end));
    let is_word = text.chars().all(char::is_alphanumeric);
    let is_language =
        is_word && (glued || crate::text::language::is_known(text) || line::is_document(text));
    let says = text
        .split(|c: char| !c.is_alphabetic())
        .any(|word| word.chars().count() > 1);

    text.is_empty() || says && !is_code && !is_language
}

pub(super) fn text_after_fence(closer: &str) -> &str {
    let text = closer.trim_start().trim_start_matches(['`', '~']);
    text.trim_matches(|c: char| c.is_whitespace() || is_zero_width(c))
}

/// Returns the fence that a content leaves open, as Markdown parses it.
pub(super) fn unclosed_fence(lines: &[ReplyLine<'_>], body: Range<usize>) -> Option<usize> {
    let mut open: Option<(usize, Fence)> = None;
    for at in body {
        let LineKind::Fence(fence) = lines[at].kind else {
            continue;
        };
        match open {
            None if fence.info != Info::Odd => open = Some((at, fence)),
            Some((_, outer)) if fence.closes(outer) => {
                open = None;
            }
            _ => {}
        }
    }

    open.map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_nearly_a_fence_is_known() {
        for line in [
            "\u{a0}```",
            "\u{200b}````",
            "``",
            "~~",
            "cargo test```",
            "x~~~~",
            "\\`\\`\\`",
            "> ```",
            "- ```",
            "´´´",
            "```### `READ`",
            "’’’",
            "`",
            "\u{ff40}\u{ff40}\u{ff40}",
            "\u{2cb}\u{2cb}\u{2cb}",
            "\u{2035}\u{2035}\u{2035}",
            "``\u{300}`",
        ] {
            assert!(is_nearly_fence(line), "{line:?}");
        }
        for line in [
            "```", "~~~ sh", "use `x`", "a ``b``", "~~gone~~", "---", "", "'a'",
        ] {
            assert!(!is_nearly_fence(line), "{line:?}");
        }
    }

    #[test]
    fn a_remark_behind_a_closer_is_told_from_code_and_from_a_language() {
        for line in [
            "``` (end)",
            "```<!-- end -->",
            "~~~ and no more",
            "``` # done",
            "```\u{a0}",
        ] {
            assert!(is_remark_after_fence(line), "{line:?}");
        }
        for line in [
            "``` */",
            "``` \"\"\"",
            "```);",
            "```rust",
            "```markdown",
            "``` */ fn a() {}",
        ] {
            assert!(!is_remark_after_fence(line), "{line:?}");
        }
    }
}
