//! Differences between two texts: as a unified diff, as numbers, and line by line for a preview.
//!
//! Lines end at `\n` alone, as they do for git, so that a lone CR or a changed line end is seen.
//! The only user of `similar`.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, DiffTag, TextDiff, TextDiffConfig};

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
    let (a, b) = (lines(old), lines(new));
    let diff = compare(&a, &b);
    diff.unified_diff()
        .context_radius(AROUND)
        .header(names.0, names.1)
        .to_string()
}

/// Returns how many lines come and go.
pub fn counts(old: &str, new: &str) -> Counts {
    let (a, b) = (lines(old), lines(new));
    counted(compare(&a, &b).ops())
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
    let (a, b) = (lines(old), lines(new));
    let diff = compare(&a, &b);
    let deadline = Instant::now() + TIME_LIMIT;
    let mut found = Difference {
        counts: counted(diff.ops()),
        ..Difference::default()
    };

    let mut left = most;
    for group in diff.grouped_ops(AROUND) {
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
            .flat_map(|op| diff.iter_inline_changes_deadline(op, Some(deadline)));
        found.hunks.push(Hunk {
            old: span(&group, DiffOp::old_range),
            new: span(&group, DiffOp::new_range),
            lines: changes.take(shown).map(|change| line(&change)).collect(),
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
    similar::capture_diff_slices(Algorithm::Myers, old, new)
        .iter()
        .filter(|op| op.tag() == DiffTag::Equal)
        .map(|op| (op.old_range(), op.new_range()))
        .collect()
}

/// Returns the runs of lines that differ, as ranges `(old, new)` in order; the lines between two of
/// them are the same.
pub fn changed(old: &[&str], new: &[&str]) -> Vec<(Range<usize>, Range<usize>)> {
    let diff = compare(old, new);
    let mut runs: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for op in diff.ops() {
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
fn compare<'a>(old: &[&'a str], new: &[&'a str]) -> TextDiff<'a, 'a, str> {
    let mut config = TextDiffConfig::default();
    config
        .algorithm(Algorithm::Histogram)
        .newline_terminated(true)
        .timeout(TIME_LIMIT);
    config.diff_slices(old, new)
}

/// Returns one change as a line of a preview.
fn line(change: &similar::InlineChange<'_, str>) -> DiffLine {
    let mut pieces: Vec<(bool, String)> = change
        .values()
        .iter()
        .map(|&(marked, text)| (marked, text.to_owned()))
        .collect();
    let unended = !pieces.last().is_some_and(|(_, text)| text.ends_with('\n'));
    if let Some((_, text)) = pieces.last_mut().filter(|_| !unended) {
        text.pop();
    }

    pieces.retain(|(_, text)| !text.is_empty());
    DiffLine {
        change: match change.tag() {
            similar::ChangeTag::Equal => LineChange::Kept,
            similar::ChangeTag::Delete => LineChange::Removed,
            similar::ChangeTag::Insert => LineChange::Added,
        },
        old: change.old_index().map(|n| n + 1),
        new: change.new_index().map(|n| n + 1),
        pieces,
        unended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a preview as text: sign, numbers, marked parts in brackets.
    fn preview(old: &str, new: &str) -> String {
        let number = |n: Option<usize>| n.map_or("-".to_owned(), |n| n.to_string());
        let mut out = String::new();
        for line in hunks(old, new).iter().flat_map(|hunk| &hunk.lines) {
            let text: String = line
                .pieces
                .iter()
                .map(|(marked, t)| if *marked { format!("[{t}]") } else { t.clone() })
                .collect();
            let end = if line.unended { " (no line end)" } else { "" };
            out += &format!(
                "{:?} {} {} {text}{end}\n",
                line.change,
                number(line.old),
                number(line.new)
            );
        }
        out
    }

    #[test]
    fn a_unified_diff_is_what_git_writes() {
        let diff = unified("a\nb\nc\n", "a\nx\nc\n", ("a/f.txt", "b/f.txt"));
        assert_eq!(
            diff,
            "--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"
        );
        assert_eq!(unified("a\n", "a\n", ("a", "b")), "");
    }

    #[test]
    fn a_missing_final_line_end_is_said() {
        let diff = unified("a\nb", "a\nb\n", ("a", "b"));
        assert_eq!(
            diff,
            "--- a\n+++ b\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
        );
    }

    #[test]
    fn lines_that_come_and_go_are_counted() {
        assert_eq!(
            counts("a\nb\nc\n", "a\nx\ny\nc\n"),
            Counts {
                added: 2,
                removed: 1
            }
        );
        assert_eq!(
            counts("", "a\nb\n"),
            Counts {
                added: 2,
                removed: 0
            }
        );
        assert_eq!(
            counts("a\r\n", "a\n"),
            Counts {
                added: 1,
                removed: 1
            }
        );
        assert_eq!(counts("a\rb\n", "a\rb\n"), Counts::default());
    }

    #[test]
    fn a_preview_marks_what_differs_inside_a_line() {
        assert_eq!(
            preview(
                "fn a() {\n    let x = one;\n}\n",
                "fn a() {\n    let x = two;\n}"
            ),
            "Kept 1 1 fn a() {\nRemoved 2 - \u{20}   let x = [one];\nRemoved 3 - }\nAdded - 2     let x = [two];\nAdded - 3 } (no line end)\n"
        );
    }

    #[test]
    fn a_preview_has_at_most_so_many_lines_and_says_how_many_more() {
        let old: String = (0..40).map(|n| format!("{n}\n")).collect();
        let new = old.replace("5\n", "five\n").replace("30\n", "thirty\n");
        let shown = |most| {
            let found = difference(&old, &new, most);
            let lengths: Vec<usize> = found.hunks.iter().map(|hunk| hunk.lines.len()).collect();
            (lengths, found.left_out)
        };
        assert_eq!(shown(usize::MAX).1, 0);
        let whole: usize = shown(usize::MAX).0.iter().sum();
        assert_eq!(shown(3), (vec![3], whole - 3));
        assert_eq!(shown(0), (vec![], whole));
    }

    #[test]
    fn aligned_ranges_are_in_order() {
        assert_eq!(
            align(&[1, 2, 3, 4], &[9, 1, 2, 4]),
            [(0..2, 1..3), (3..4, 3..4)]
        );
    }

    #[test]
    fn two_large_texts_with_nothing_in_common_are_compared_in_bounded_time() {
        let text = |seed: usize| {
            (0..20_000)
                .map(|n| format!("{}\n", n * 2 + seed))
                .collect::<String>()
        };
        assert_eq!(
            counts(&text(0), &text(1)),
            Counts {
                added: 20_000,
                removed: 20_000
            }
        );
    }
}
