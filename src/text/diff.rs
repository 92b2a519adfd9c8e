//! Diffs of two texts: as a unified diff, as line counts, and line by line for a preview.
//!
//! Only `\n` ends a line, as in git, so a lone CR or a changed line end shows up. This is the only
//! user of `similar`.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::algorithms::{Capture, Compact, Replace, histogram, myers};
use similar::{DiffOp, DiffTag, DiffableStr as _, group_diff_ops};

// After this time, the diff is correct but not minimal.
const TIME_LIMIT: Duration = Duration::from_millis(500);

// Lines of context around a change.
const AROUND: usize = 3;

/// Numbers of added and removed lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Counts {
    /// Lines only in the new text.
    pub added: usize,
    /// Lines only in the old text.
    pub removed: usize,
}

/// Kind of a line in a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineChange {
    /// In both texts.
    Kept,
    /// Only in the old text.
    Removed,
    /// Only in the new text.
    Added,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// Whether it was kept, removed or added.
    pub change: LineChange,
    /// Line number in the old text, from 1.
    pub old: Option<usize>,
    /// Line number in the new text, from 1.
    pub new: Option<usize>,
    /// Pieces of the line, without its line feed. `true` marks a difference within the line.
    pub pieces: Vec<(bool, String)>,
    /// `true` for a last line without a line end.
    pub unended: bool,
}

/// Returns a unified diff as `git diff` prints it, with three lines of context. Empty for equal
/// texts.
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
        text.push_str(&hunk_header(&a, &b));
        text.push('\n');
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

fn signed(text: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// For an empty range, the header has the line before it.
pub fn hunk_header(old: &Range<usize>, new: &Range<usize>) -> String {
    let side = |lines: &Range<usize>| match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    };
    format!("@@ -{} +{} @@", side(old), side(new))
}

/// Returns the numbers of added and removed lines.
pub fn counts(old: &str, new: &str) -> Counts {
    let (a, b) = (lines(old), lines(new));
    counted(&compare(&a, &b))
}

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Its lines in the old text, from 0.
    pub old: Range<usize>,
    /// Its lines in the new text, from 0.
    pub new: Range<usize>,
    /// Its lines, truncated to the requested number.
    pub lines: Vec<DiffLine>,
}

/// A diff for a preview.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// Numbers of all added and removed lines.
    pub counts: Counts,
    pub hunks: Vec<Hunk>,
    /// Number of lines in hunks that were omitted or truncated.
    pub left_out: usize,
}

/// Returns the hunks for a preview, with differences within lines marked, limited to `most` lines in
/// total.
pub fn difference(old: &str, new: &str, most: usize) -> Difference {
    let (old, new) = (lines(old), lines(new));
    let steps = compare(&old, &new);
    let deadline = Instant::now() + TIME_LIMIT;
    let mut result = Difference {
        counts: counted(&steps),
        ..Difference::default()
    };

    let mut remaining = most;
    for group in group_diff_ops(steps, AROUND) {
        let length: usize = group.iter().map(rows).sum();
        let count = length.min(remaining);
        remaining -= count;
        result.left_out += length - count;
        if count == 0 {
            continue;
        }

        // `flat_map` is lazy, so lines beyond the limit are not compared word by word.
        let changes = group
            .iter()
            .flat_map(|step| preview(step, &old, &new, deadline));
        result.hunks.push(Hunk {
            old: span(&group, DiffOp::old_range),
            new: span(&group, DiffOp::new_range),
            lines: changes.take(count).collect(),
        });
    }

    result
}

fn rows(op: &DiffOp) -> usize {
    match op.tag() {
        DiffTag::Equal => op.new_range().len(),
        _ => op.old_range().len() + op.new_range().len(),
    }
}

fn span(group: &[DiffOp], side: fn(&DiffOp) -> Range<usize>) -> Range<usize> {
    let start = group.first().map_or(0, |op| side(op).start);
    start..group.last().map_or(start, |op| side(op).end)
}

/// Aligns two sequences. Returns the equal ranges `(old, new)`, in order.
pub fn align(old: &[u64], new: &[u64]) -> Vec<(Range<usize>, Range<usize>)> {
    edit_script(StepSearch::Short, old, new, None)
        .iter()
        .filter(|op| op.tag() == DiffTag::Equal)
        .map(|op| (op.old_range(), op.new_range()))
        .collect()
}

/// Returns the ranges `(old, new)` of lines that differ, in order. The lines between them are
/// equal.
pub fn changed(old: &[&str], new: &[&str]) -> Vec<(Range<usize>, Range<usize>)> {
    changed_runs(&compare(old, new))
}

/// Like [`changed`], but the result does not depend on the time that it takes. The caller bounds the
/// number of lines.
pub fn changed_without_deadline(old: &[&str], new: &[&str]) -> Vec<(Range<usize>, Range<usize>)> {
    changed_runs(&edit_script(StepSearch::Readable, old, new, None))
}

/// Like [`changed`], for numbers that stand for lines, and minimal.
pub fn changed_numbers(old: &[u64], new: &[u64]) -> Vec<(Range<usize>, Range<usize>)> {
    changed_runs(&edit_script(StepSearch::Short, old, new, None))
}

fn changed_runs(ops: &[DiffOp]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut runs: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for op in ops {
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

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn compare(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let deadline = Instant::now() + TIME_LIMIT;
    edit_script(StepSearch::Readable, old, new, Some(deadline))
}

fn preview(step: &DiffOp, old: &[&str], new: &[&str], deadline: Instant) -> Vec<DiffLine> {
    let (a, b) = (step.old_range(), step.new_range());
    if step.tag() == DiffTag::Equal {
        let same = a.zip(b);
        return same
            .map(|(at, now)| line(LineChange::Kept, Some(at), Some(now), &[(false, old[at])]))
            .collect();
    }

    let [removed, added] = mark_words(&old[a.clone()], &new[b.clone()], Some(deadline));
    let removed = removed.iter().zip(a);
    let added = added.iter().zip(b);
    let removed = removed.map(|(pieces, at)| line(LineChange::Removed, Some(at), None, pieces));
    let added = added.map(|(pieces, at)| line(LineChange::Added, None, Some(at), pieces));
    removed.chain(added).collect()
}

fn line(
    change: LineChange,
    old: Option<usize>,
    new: Option<usize>,
    pieces: &[(bool, &str)],
) -> DiffLine {
    let unended = !pieces.last().is_some_and(|(_, text)| text.ends_with('\n'));
    let mut pieces: Vec<(bool, String)> = pieces
        .iter()
        .map(|&(differs, text)| (differs, text.to_owned()))
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

// Minimum similarity, from 0 to 1, for marking words.
const MIN_SIMILARITY: f32 = 0.5;

/// In bytes, of all lines on one side. Beyond it, words are not marked: splitting megabytes is too slow.
const MAX_MARKED: usize = 128 << 10;

/// Pieces of a line. `true` marks a difference.
type LinePieces<'t> = Vec<(bool, &'t str)>;

/// In bytes. A common beginning this long can fill the screen, so that two lines look the same.
const LONG_START: usize = 60;

struct WordPieces<'t> {
    lines: &'t [&'t str],
    tokens: Vec<&'t str>,
    /// For each word, its line and its range in that line.
    positions: Vec<(usize, Range<usize>)>,
    pieces: Vec<LinePieces<'t>>,
}

/// Splits the lines on both sides into pieces. In dissimilar lines, and in sides larger than
/// [`MAX_MARKED`], only what follows a long common beginning is marked.
fn mark_words<'t>(
    old: &'t [&'t str],
    new: &'t [&'t str],
    deadline: Option<Instant>,
) -> [Vec<LinePieces<'t>>; 2] {
    let size = |lines: &[&str]| lines.iter().map(|line| line.len()).sum::<usize>();
    let is_large = size(old).max(size(new)) > MAX_MARKED;
    if is_large || similarity(old.len().min(new.len()), (old.len(), new.len())) < MIN_SIMILARITY {
        return mark_ends(old, new);
    }

    let (mut old_words, mut new_words) = (WordPieces::of(old), WordPieces::of(new));
    let both = (&old_words.tokens[..], &new_words.tokens[..]);
    let steps = edit_script(StepSearch::Readable, both.0, both.1, deadline);
    let is_same = |step: &&DiffOp| step.tag() == DiffTag::Equal;
    let same = steps
        .iter()
        .filter(is_same)
        .map(|step| step.old_range().len())
        .sum();
    // Almost everything would be marked.
    if similarity(same, (both.0.len(), both.1.len())) < MIN_SIMILARITY {
        return mark_ends(old, new);
    }

    for step in &steps {
        let differs = step.tag() != DiffTag::Equal;
        old_words.add(step.old_range(), differs);
        new_words.add(step.new_range(), differs);
    }
    [old_words.pieces, new_words.pieces]
}

/// Marks what is between the common beginning and end of two lines in the same place, if that
/// beginning is long. Other lines are one piece.
fn mark_ends<'t>(old: &[&'t str], new: &[&'t str]) -> [Vec<LinePieces<'t>>; 2] {
    let mut sides = [old, new].map(|lines| {
        let whole = |&line: &&'t str| vec![(false, line)];
        lines.iter().map(whole).collect::<Vec<_>>()
    });
    for (at, (one, other)) in old.iter().zip(new).enumerate() {
        let start = common(one.char_indices(), other.char_indices());
        if start < LONG_START {
            continue;
        }
        let [one, other] = [one, other].map(|line| line.split_at(start));
        let backwards = |text: &'t str| {
            let length = text.len();
            text.char_indices()
                .rev()
                .map(move |(at, c)| (length - at - c.len_utf8(), c))
        };
        let end = common(backwards(one.1), backwards(other.1));
        for (side, (start, rest)) in sides.iter_mut().zip([one, other]) {
            let (part, end) = rest.split_at(rest.len() - end);
            let pieces = [(false, start), (true, part), (false, end)];
            side[at] = pieces
                .into_iter()
                .filter(|(_, text)| !text.is_empty())
                .collect();
        }
    }
    sides
}

/// Returns the bytes at which two texts have the same characters.
fn common(
    one: impl Iterator<Item = (usize, char)>,
    other: impl Iterator<Item = (usize, char)>,
) -> usize {
    let same = one.zip(other).take_while(|(one, other)| one == other);
    same.last().map_or(0, |((at, c), _)| at + c.len_utf8())
}

/// Returns the similarity of two sequences, from 0 to 1.
fn similarity(same: usize, lengths: (usize, usize)) -> f32 {
    match lengths.0 + lengths.1 {
        0 => 1.0,
        all => 2.0 * same as f32 / all as f32,
    }
}

impl<'t> WordPieces<'t> {
    fn of(lines: &'t [&'t str]) -> WordPieces<'t> {
        let (mut tokens, mut positions) = (Vec::new(), Vec::new());
        for (number, line) in lines.iter().enumerate() {
            let mut start = 0;
            for word in line.tokenize_unicode_words() {
                tokens.push(word);
                positions.push((number, start..start + word.len()));
                start += word.len();
            }
        }
        WordPieces {
            lines,
            tokens,
            positions,
            pieces: vec![Vec::new(); lines.len()],
        }
    }

    /// Appends words to the pieces of their lines, merged into one piece per line.
    fn add(&mut self, range: Range<usize>, differs: bool) {
        for run in self.positions[range].chunk_by(|a, b| a.0 == b.0) {
            let (Some((line, first)), Some((_, last))) = (run.first(), run.last()) else {
                continue;
            };
            let text = &self.lines[*line][first.start..last.end];
            // Do not mark line ends, which are invisible.
            let (text, end) = text.split_at(text.trim_end_matches(['\r', '\n']).len());
            let pieces = [(differs, text), (false, end)];
            let pieces = pieces.into_iter().filter(|(_, text)| !text.is_empty());
            self.pieces[*line].extend(pieces);
        }
    }
}

// Computes an edit script between two sequences.
//
// Elements are mapped to numbers first. `similar` is generic, and each type of sequence with each
// algorithm adds about 100 kB of code, so only one is instantiated.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepSearch {
    /// Histogram diff, which reads best.
    Readable,
    /// Myers diff, which is minimal.
    Short,
}

/// Returns the edit script. After the deadline it is correct but not minimal.
fn edit_script<T: Eq + Hash + Copy>(
    search: StepSearch,
    old: &[T],
    new: &[T],
    deadline: Option<Instant>,
) -> Vec<DiffOp> {
    let mut numbers = HashMap::new();
    let mut numbered = |sequence: &[T]| -> Vec<u32> {
        let number = |&one: &T| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry(one).or_insert(next)
        };
        sequence.iter().map(number).collect()
    };
    let (old, new) = (numbered(old), numbered(new));
    run_search(search, &old, &new, deadline)
}

fn run_search(
    search: StepSearch,
    old: &[u32],
    new: &[u32],
    deadline: Option<Instant>,
) -> Vec<DiffOp> {
    let mut hook = Compact::new(Replace::new(Capture::new()), old, new);
    let (all_old, all_new) = (0..old.len(), 0..new.len());
    let Ok(()) = match search {
        StepSearch::Readable => {
            histogram::diff_deadline(&mut hook, old, all_old, new, all_new, deadline)
        }
        StepSearch::Short => myers::diff_deadline(&mut hook, old, all_old, new, all_new, deadline),
    };
    hook.into_inner().into_inner().into_ops()
}

#[cfg(test)]
mod tests;
