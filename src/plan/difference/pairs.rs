//! Expresses a changed text as FIND and REPLACE pairs: one per place, with enough context lines to
//! make each FIND unique.

use std::ops::Range;

use crate::plan::action::edit::Pair;
use crate::text::diff;
use crate::text::edit::apply;

/// Largest text that is compared, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// Pairs per file; beyond that, they are harder to review than the whole file.
const MAX_PAIRS: usize = 64;
/// Runs of changed lines that are processed. Most of them merge into pairs with others.
const MAX_RUNS: usize = 512;
/// Total text of a file's pairs, in bytes.
const MAX_PAIR_TEXT: usize = 256 << 10;
/// Runs with at most this many unchanged lines between them are merged.
const GAP: usize = 2;

/// Bytes that can still be searched for one plan. Bounds the time for files with many similar
/// lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchBudget(pub(super) usize);

/// A run of changed lines, as line ranges of the old and the new text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ChangedRun {
    old: Range<usize>,
    new: Range<usize>,
}

/// The lines of both texts, with their ends.
struct Texts<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    /// Length of the old text.
    old_len: usize,
}

/// Returns the pairs that turn `old` into `new`; `None` if no pairs can, or too many are needed.
pub(super) fn find_pairs(old: &str, new: &str, budget: &mut SearchBudget) -> Option<Vec<Pair>> {
    let is_ended = |text: &str| text.ends_with('\n');
    // The content of a block always ends with a newline, so no pair can add or remove the final
    // one.
    if old.len().max(new.len()) > MAX_TEXT || (is_ended(old) != is_ended(new) && !new.is_empty()) {
        return None;
    }

    let texts = Texts {
        old: old.split_inclusive('\n').collect(),
        new: new.split_inclusive('\n').collect(),
        old_len: old.len(),
    };
    let runs = texts.runs();
    if runs.len() > MAX_RUNS {
        return None;
    }

    let mut placed: Vec<(ChangedRun, Pair)> = Vec::new();
    let mut pending = runs.into_iter().rev().collect::<Vec<_>>();
    while let Some(run) = pending.pop() {
        let pair = texts.find_pair(run, &mut placed, &mut pending, budget)?;
        placed.push(pair);
    }

    let pairs: Vec<Pair> = placed.into_iter().map(|(_, pair)| pair).collect();
    let size: usize = pairs
        .iter()
        .map(|pair| pair.find.len() + pair.replace.len())
        .sum();
    (pairs.len() <= MAX_PAIRS && size <= MAX_PAIR_TEXT).then_some(pairs)
}

impl Texts<'_> {
    /// Returns the runs of changed lines, merging those close to each other.
    fn runs(&self) -> Vec<ChangedRun> {
        let mut runs: Vec<ChangedRun> = Vec::new();
        for (old, new) in diff::changed(&self.old, &self.new) {
            match runs.last_mut() {
                Some(last) if old.start - last.old.end <= GAP => {
                    (last.old.end, last.new.end) = (old.end, new.end);
                }
                _ => runs.push(ChangedRun { old, new }),
            }
        }
        runs
    }

    /// Creates the pair of a run. A run whose context reaches another run is merged with it: the
    /// user can deselect any pair, so no pair can depend on another.
    fn find_pair(
        &self,
        mut run: ChangedRun,
        placed: &mut Vec<(ChangedRun, Pair)>,
        pending: &mut Vec<ChangedRun>,
        budget: &mut SearchBudget,
    ) -> Option<(ChangedRun, Pair)> {
        let mut around = 1;
        loop {
            let lines_above = run.new.start - placed.last().map_or(0, |(last, _)| last.new.end);
            let end = pending.last().map_or(self.old.len(), |next| next.old.start);
            let lines_below = end - run.old.end;
            if around > lines_above
                && let Some((last, _)) = placed.pop()
            {
                run = last.with(&run);
                continue;
            }
            if around > lines_below
                && let Some(next) = pending.pop()
            {
                run = run.with(&next);
                continue;
            }

            let lines = (around.min(lines_above), around.min(lines_below));
            if let Some(pair) = self.pair(&run, lines.0, lines.1, budget) {
                return Some((run, pair));
            }
            if lines == (lines_above, lines_below) || budget.0 == 0 {
                return None;
            }
            // Grows in proportion, so that long runs of similar lines take few searches.
            around += around.div_ceil(4);
        }
    }

    /// Creates a pair with the given number of context lines; `None` if its FIND is not unique or
    /// the replacement is wrong.
    fn pair(
        &self,
        run: &ChangedRun,
        lines_above: usize,
        lines_below: usize,
        budget: &mut SearchBudget,
    ) -> Option<Pair> {
        let head = self.new[run.new.start - lines_above..run.new.start].concat();
        let tail = self.old[run.old.end..run.old.end + lines_below].concat();
        let removed = self.old[run.old.clone()].concat();
        let added = self.new[run.new.clone()].concat();
        let find = ended([&*head, &removed, &tail].concat());
        let replace = ended([&*head, &added, &tail].concat());
        if find.len() + replace.len() > MAX_PAIR_TEXT + self.old_len {
            budget.0 = 0;
        }

        // The text to which the pair applies: earlier pairs are applied, later ones are not.
        let applied = self.new[..run.new.start].concat();
        let suffix = self.old[run.old.end..].concat();
        let text = [&*applied, &removed, &suffix].concat();
        let target = [&*applied, &added, &suffix].concat();
        let is_right = |find: &str, replace: &str| {
            apply(&text, find, replace).is_ok_and(|(after, _)| after == target)
        };
        budget.0 = budget.0.saturating_sub(text.len());

        // The matcher accepts LF in the plan for CRLF in the file. LF is easier to review, so it is
        // used if the result is the same.
        let plain = with_lf(&find, &replace).filter(|(find, replace)| is_right(find, replace));
        let (find, replace) = match plain {
            Some(plain) => plain,
            None if is_right(&find, &replace) => (find, replace),
            None => return None,
        };
        Some(Pair {
            line: 0,
            find,
            replace,
            language: String::new(),
        })
    }
}

impl ChangedRun {
    /// Merges a run with a later one, including the lines between them.
    fn with(&self, lower: &ChangedRun) -> ChangedRun {
        ChangedRun {
            old: self.old.start..lower.old.end,
            new: self.new.start..lower.new.end,
        }
    }
}

/// Returns FIND and REPLACE with LF. `None` if FIND has no CRLF, or a CR is left.
fn with_lf(find: &str, replace: &str) -> Option<(String, String)> {
    let lf = |text: &str| text.replace("\r\n", "\n");
    let plain = (lf(find), lf(replace));
    let has_cr = plain.0.contains('\r') || plain.1.contains('\r');
    (plain.0 != find && !has_cr).then_some(plain)
}

/// Adds a final newline unless the text is empty: the content of a block always has one.
fn ended(text: String) -> String {
    let is_whole = text.is_empty() || text.ends_with('\n');
    if is_whole { text } else { text + "\n" }
}
