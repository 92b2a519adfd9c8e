//! Differences between two texts: as a unified diff, as numbers, and line by line for a preview.
//!
//! Lines end at `\n` alone, as they do for git, so that a lone CR or a changed line end is seen.
//! The only user of `similar`.

mod steps;
mod words;

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{DiffOp, DiffTag, group_diff_ops};

use steps::{StepSearch, steps};

/// The time after which a difference is settled for that is larger than it had to be.
const TIME_LIMIT: Duration = Duration::from_millis(500);
/// The unchanged lines that a hunk shows around a change.
const AROUND: usize = 3;

/// How many lines come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Counts {
    /// Lines that only the new text has.
    pub added: usize,
    /// Lines that only the old text has.
    pub removed: usize,
}

/// What happens to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineChange {
    /// It stays.
    Kept,
    /// It goes.
    Removed,
    /// It comes.
    Added,
}

/// One line of a preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// What happens to it.
    pub change: LineChange,
    /// Its number in the old text, from 1.
    pub old: Option<usize>,
    /// Its number in the new text, from 1.
    pub new: Option<usize>,
    /// Its text in pieces, without the line feed; `true` marks what differs within the line.
    pub pieces: Vec<(bool, String)>,
    /// It is the last line and has no line end.
    pub unended: bool,
}

/// Returns the difference as `git diff` writes it, with three lines around each change; empty for
/// equal texts.
pub fn unified(old: &str, new: &str, names: (&str, &str)) -> String {
    let (old, new) = (lines(old), lines(new));
    let steps = compare(&old, &new);
    let mut text = String::new();
    if steps.iter().all(|step| step.tag() == DiffTag::Equal) {
        return text;
    }

    text.push_str(&format!("--- {}\n+++ {}\n", names.0, names.1));
    for group in group_diff_ops(steps, AROUND) {
        let (a, b) = (
            span(&group, DiffOp::old_range),
            span(&group, DiffOp::new_range),
        );
        text.push_str(&format!("@@ -{} +{} @@\n", numbers(&a), numbers(&b)));
        for step in &group {
            if step.tag() == DiffTag::Equal {
                signed(&mut text, ' ', &old[step.old_range()]);
            } else {
                signed(&mut text, '-', &old[step.old_range()]);
                signed(&mut text, '+', &new[step.new_range()]);
            }
        }
    }

    text
}

/// Adds lines behind a sign each.
fn signed(text: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// Returns lines of a hunk as its head has them: the first, from 1, and how many unless it is one.
/// Where there are none, the one before them is named.
fn numbers(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    }
}

/// Returns how many lines come and go.
pub fn counts(old: &str, new: &str) -> Counts {
    let (a, b) = (lines(old), lines(new));
    counted(&compare(&a, &b))
}

/// Counts the lines that come and go with the steps of a difference.
fn counted(ops: &[DiffOp]) -> Counts {
    let mut counts = Counts::default();
    for op in ops {
        if op.tag() != DiffTag::Equal {
            counts.removed += op.old_range().len();
            counts.added += op.new_range().len();
        }
    }

    counts
}

/// A run of lines around changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The lines of the old text that it covers, from 0.
    pub old: Range<usize>,
    /// The lines of the new text that it covers, from 0.
    pub new: Range<usize>,
    /// Its lines; without the last ones where fewer were wanted.
    pub lines: Vec<DiffLine>,
}

/// A difference for a preview.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// How many lines come and go.
    pub counts: Counts,
    /// The first hunks.
    pub hunks: Vec<Hunk>,
    /// How many lines the hunks that were left out, or cut off, have.
    pub left_out: usize,
}

/// Returns the hunks for a preview, with what differs inside of changed lines marked.
pub fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    difference(old, new, usize::MAX).hunks
}

/// Returns the hunks for a preview up to so many lines, and how many more there are.
pub fn difference(old: &str, new: &str, most: usize) -> Difference {
    let (old, new) = (lines(old), lines(new));
    let steps = compare(&old, &new);
    let deadline = Instant::now() + TIME_LIMIT;
    let mut found = Difference {
        counts: counted(&steps),
        ..Difference::default()
    };

    let mut left = most;
    for group in group_diff_ops(steps, AROUND) {
        let length: usize = group.iter().map(rows).sum();
        let shown = length.min(left);
        left -= shown;
        found.left_out += length - shown;
        if shown == 0 {
            continue;
        }

        // What is not shown is not compared word by word either.
        let changes = group
            .iter()
            .flat_map(|step| preview(step, (&old, &new), deadline));
        found.hunks.push(Hunk {
            old: span(&group, DiffOp::old_range),
            new: span(&group, DiffOp::new_range),
            lines: changes.take(shown).collect(),
        });
    }

    found
}

/// Returns how many lines of a preview a step of a difference takes.
fn rows(op: &DiffOp) -> usize {
    match op.tag() {
        DiffTag::Equal => op.new_range().len(),
        _ => op.old_range().len() + op.new_range().len(),
    }
}

/// Returns the lines of one side that steps of a difference cover.
fn span(group: &[DiffOp], side: fn(&DiffOp) -> Range<usize>) -> Range<usize> {
    let start = group.first().map_or(0, |op| side(op).start);
    start..group.last().map_or(start, |op| side(op).end)
}

/// Returns which elements of two sequences are paired, as ranges `(old, new)` in order; what is
/// between two of them differs.
pub fn align(old: &[u64], new: &[u64]) -> Vec<(Range<usize>, Range<usize>)> {
    steps(StepSearch::Short, (old, new), None)
        .iter()
        .filter(|op| op.tag() == DiffTag::Equal)
        .map(|op| (op.old_range(), op.new_range()))
        .collect()
}

/// Returns the runs of lines that differ, as ranges `(old, new)` in order; the lines between two of
/// them are the same.
pub fn changed(old: &[&str], new: &[&str]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut runs: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for op in compare(old, new) {
        if op.tag() == DiffTag::Equal {
            continue;
        }
        match runs.last_mut() {
            Some((a, b)) if a.end == op.old_range().start && b.end == op.new_range().start => {
                (a.end, b.end) = (op.old_range().end, op.new_range().end);
            }
            _ => runs.push((op.old_range(), op.new_range())),
        }
    }
    runs
}

/// Returns the lines with their ends.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Compares lines, within the time limit.
fn compare(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let deadline = Instant::now() + TIME_LIMIT;
    steps(StepSearch::Readable, (old, new), Some(deadline))
}

/// Returns the lines of a preview that a step of a difference takes.
fn preview(step: &DiffOp, (old, new): (&[&str], &[&str]), deadline: Instant) -> Vec<DiffLine> {
    let (a, b) = (step.old_range(), step.new_range());
    if step.tag() == DiffTag::Equal {
        let same = a.zip(b).map(|(at, now)| {
            let numbers = (Some(at), Some(now));
            line(LineChange::Kept, numbers, &[(false, old[at])])
        });
        return same.collect();
    }

    let [removed, added] = words::marked(&old[a.clone()], &new[b.clone()], Some(deadline));
    let removed = removed.iter().zip(a);
    let added = added.iter().zip(b);
    let removed = removed.map(|(pieces, at)| line(LineChange::Removed, (Some(at), None), pieces));
    let added = added.map(|(pieces, at)| line(LineChange::Added, (None, Some(at)), pieces));
    removed.chain(added).collect()
}

/// Returns a line of a preview, with its numbers from 0.
fn line(
    change: LineChange,
    (old, new): (Option<usize>, Option<usize>),
    pieces: &[(bool, &str)],
) -> DiffLine {
    let unended = !pieces.last().is_some_and(|(_, text)| text.ends_with('\n'));
    let mut pieces: Vec<(bool, String)> = pieces
        .iter()
        .map(|&(marked, text)| (marked, text.to_owned()))
        .collect();
    if let Some((_, text)) = pieces.last_mut().filter(|_| !unended) {
        text.pop();
    }

    pieces.retain(|(_, text)| !text.is_empty());
    DiffLine {
        change,
        old: old.map(|number| number + 1),
        new: new.map(|number| number + 1),
        pieces,
        unended,
    }
}

#[cfg(test)]
mod tests;
