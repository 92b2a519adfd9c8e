//! A changed text as pairs of FIND and REPLACE: one for each place, with as many lines around it as
//! make it the only one.

use std::ops::Range;

use crate::plan::action::edit::Pair;
use crate::text::diff;
use crate::text::edit::apply;

/// The largest text that is said in pairs, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// The most pairs that a person reads in one file.
const MAX_PAIRS: usize = 64;
/// The most runs of changed lines that are looked at; most of them end in one pair with others.
const MAX_RUNS: usize = 512;
/// The most text of all pairs of a file, in bytes.
const MAX_PAIR_TEXT: usize = 256 << 10;
/// Two runs with at most so many lines between them are one place.
const GAP: usize = 2;

/// How many bytes may still be searched for one plan, so that odd files do not take hours.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchBudget(pub(super) usize);

/// Lines that differ: where they are in the old text, and in the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ChangedRun {
    /// In the old text.
    old: Range<usize>,
    /// In the new text.
    new: Range<usize>,
}

/// Two texts, by lines.
struct Texts<'a> {
    /// The old one.
    old: LinedText<'a>,
    /// The new one.
    new: LinedText<'a>,
}

/// A text with the places of its lines.
struct LinedText<'a> {
    /// The text.
    text: &'a str,
    /// Where each line starts, and where the text ends.
    starts: Vec<usize>,
}

/// Returns the pairs that make the new text of the old one; `None` where there are none, or none
/// that a person would read.
pub(super) fn pairs(old: &str, new: &str, budget: &mut SearchBudget) -> Option<Vec<Pair>> {
    let is_ended = |text: &str| text.ends_with('\n');
    if old.len().max(new.len()) > MAX_TEXT || (is_ended(old) != is_ended(new) && !new.is_empty()) {
        return None;
    }

    let texts = Texts {
        old: LinedText::of(old),
        new: LinedText::of(new),
    };
    let runs = texts.runs();
    if runs.len() > MAX_RUNS {
        return None;
    }

    let mut done: Vec<(ChangedRun, Pair)> = Vec::new();
    let mut rest = runs.into_iter().rev().collect::<Vec<_>>();
    while let Some(run) = rest.pop() {
        let pair = texts.place(run, (&mut done, &mut rest), budget)?;
        done.push(pair);
    }

    let pairs: Vec<Pair> = done.into_iter().map(|(_, pair)| pair).collect();
    let size: usize = pairs
        .iter()
        .map(|pair| pair.find.len() + pair.replace.len())
        .sum();
    (pairs.len() <= MAX_PAIRS && size <= MAX_PAIR_TEXT).then_some(pairs)
}

impl Texts<'_> {
    /// Returns the runs of changed lines; those that are close to each other as one.
    fn runs(&self) -> Vec<ChangedRun> {
        let mut runs: Vec<ChangedRun> = Vec::new();
        for (old, new) in diff::changed(&self.old.lines(), &self.new.lines()) {
            match runs.last_mut() {
                Some(last) if old.start - last.old.end <= GAP => {
                    (last.old.end, last.new.end) = (old.end, new.end);
                }
                _ => runs.push(ChangedRun { old, new }),
            }
        }
        runs
    }

    /// Makes the pair of a run. Where the lines around it reach another run, both become one: the
    /// user can leave out any pair, and none may rest on another.
    fn place(
        &self,
        mut run: ChangedRun,
        (done, rest): (&mut Vec<(ChangedRun, Pair)>, &mut Vec<ChangedRun>),
        budget: &mut SearchBudget,
    ) -> Option<(ChangedRun, Pair)> {
        let mut around = 1;
        loop {
            let above = run.new.start - done.last().map_or(0, |(last, _)| last.new.end);
            let end = rest.last().map_or(self.old.count(), |next| next.old.start);
            let below = end - run.old.end;
            if around > above
                && let Some((last, _)) = done.pop()
            {
                run = last.with(&run);
                continue;
            }
            if around > below
                && let Some(next) = rest.pop()
            {
                run = run.with(&next);
                continue;
            }

            let lines = (around.min(above), around.min(below));
            if let Some(pair) = self.pair(&run, lines, budget) {
                return Some((run, pair));
            }
            if lines == (above, below) || budget.0 == 0 {
                return None;
            }
            around += around.div_ceil(4);
        }
    }

    /// Makes a pair with so many lines above and below a run, if it has one place and does what it
    /// is to do.
    fn pair(
        &self,
        run: &ChangedRun,
        (above, below): (usize, usize),
        budget: &mut SearchBudget,
    ) -> Option<Pair> {
        let head = self.new.span(run.new.start - above..run.new.start);
        let tail = self.old.span(run.old.end..run.old.end + below);
        let (gone, come) = (
            self.old.span(run.old.clone()),
            self.new.span(run.new.clone()),
        );
        let find = ended([head, gone, tail].concat());
        let replace = ended([head, come, tail].concat());
        if find.len() + replace.len() > MAX_PAIR_TEXT + self.old.text.len() {
            budget.0 = 0;
        }

        // What is there once the pairs before this one have been applied, and then this one.
        let done = self.new.span(0..run.new.start);
        let text = [done, self.old.span(run.old.start..self.old.count())].concat();
        let rest = self.old.span(run.old.end..self.old.count());
        let is_right = |find: &str, replace: &str| {
            apply(&text, find, replace).is_ok_and(|(after, _)| {
                after
                    .strip_prefix(done)
                    .and_then(|after| after.strip_prefix(come))
                    == Some(rest)
            })
        };
        budget.0 = budget.0.saturating_sub(text.len());

        let unix = |text: &str| text.replace("\r\n", "\n");
        let plain = (unix(&find), unix(&replace));
        let has_cr = plain.0.contains('\r') || plain.1.contains('\r');
        let is_plain = plain.0 != find && !has_cr && is_right(&plain.0, &plain.1);
        let (find, replace) = match is_plain {
            true => plain,
            false if is_right(&find, &replace) => (find, replace),
            false => return None,
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
    /// Returns this run with one below it, and what is between them.
    fn with(&self, below: &ChangedRun) -> ChangedRun {
        ChangedRun {
            old: self.old.start..below.old.end,
            new: self.new.start..below.new.end,
        }
    }
}

impl LinedText<'_> {
    /// Finds the lines of a text.
    fn of(text: &str) -> LinedText<'_> {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
        if starts.last() != Some(&text.len()) {
            starts.push(text.len());
        }
        LinedText { text, starts }
    }

    /// Returns how many lines there are.
    fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns some of its lines, as they are.
    fn span(&self, lines: Range<usize>) -> &str {
        &self.text[self.starts[lines.start]..self.starts[lines.end]]
    }

    /// Returns its lines with their ends.
    fn lines(&self) -> Vec<&str> {
        (0..self.count()).map(|at| self.span(at..at + 1)).collect()
    }
}

/// Returns the content of a block, which has a line end where it has anything.
fn ended(text: String) -> String {
    let is_whole = text.is_empty() || text.ends_with('\n');
    if is_whole { text } else { text + "\n" }
}
