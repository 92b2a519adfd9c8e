//! What a plan makes of the files, folded: a header for each file, and the first lines of all.
//!
//! What is left out is counted where it is left out, and `d` shows it.

use crate::plan::Plan;
use crate::plan::action::behavior::PreviewPart;
use crate::plan::action::edit::Pair;
use crate::plan::validate::Simulation;
use crate::text::diff::Counts;
use crate::ui::diff::{self, FileVersions, replaced};
use crate::ui::room::TextArea;
use crate::ui::style::{StyledLine, Tone};

/// The lines of differences that a summary shows, of all files together.
pub(super) const MAX_LINES: usize = 40;
/// Fewer lines of a file say nothing of what becomes of it.
const MIN_CHUNK: usize = 8;
/// The columns of a line that anybody reads; the rest of it only takes time.
const MAX_COLUMNS: usize = 2000;
/// The lines that are shown of all differences; a plan that writes more is read in its files.
const MAX_WHOLE: usize = 20_000;

/// How a person sees the rest.
pub(super) const KEY: &str = ": d";

/// What becomes of one file.
#[derive(Debug, Clone)]
pub(super) struct FileDifference {
    /// Its path.
    path: String,
    /// Whether there is none yet.
    is_new: bool,
    /// What becomes of it, where lines do not tell.
    note: Option<String>,
    /// How many lines come and go.
    counts: Counts,
    /// The first lines of the difference.
    lines: Vec<StyledLine>,
    /// How many more there are.
    left_out: usize,
}

/// A file before the first action on it and after the last one; `None` where there is none.
#[derive(Clone, Copy)]
struct Ends<'a> {
    /// Before.
    before: Option<&'a [u8]>,
    /// After.
    after: Option<&'a [u8]>,
}

/// What actions make of one file, one after the other.
struct FileSteps<'a> {
    /// Its path.
    path: String,
    /// What becomes of it, if that is known.
    ends: Option<Ends<'a>>,
    /// What is replaced in it, if that is all that is known.
    pairs: Vec<&'a Pair>,
    /// What becomes of it, in words.
    note: Option<String>,
}

/// Returns what becomes of each file, in the order in which the plan comes to them.
pub(super) fn files(plan: &Plan, simulation: &Simulation) -> Vec<FileDifference> {
    let steps = steps(plan, simulation);
    steps.iter().map(|file| file.shown(MAX_LINES)).collect()
}

/// Returns all differences, as lines of unified diffs.
pub(super) fn whole(plan: &Plan, simulation: &Simulation) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    for file in steps(plan, simulation) {
        let left = MAX_WHOLE.saturating_sub(lines.len());
        let shown = file.shown(left);
        lines.extend(file.names());
        lines.extend(shown.lines);
        if shown.left_out > 0 {
            lines.push(more(shown.left_out, "", ""));
        }
    }

    if lines.is_empty() {
        lines.push(StyledLine::of(
            Tone::Faint,
            "The plan changes no file itself.",
        ));
    }
    lines
}

/// Returns what the actions make of each file.
fn steps<'a>(plan: &'a Plan, simulation: &'a Simulation) -> Vec<FileSteps<'a>> {
    let mut files: Vec<FileSteps<'a>> = Vec::new();
    for (index, action) in plan.actions.iter().enumerate() {
        let Some(path) = action.kind.path() else {
            continue;
        };
        let path = path.as_str();
        for part in action.kind.preview(simulation.step(index)) {
            let known = files.iter_mut().rfind(|file| file.path == path);
            match (part, known) {
                (PreviewPart::Words(words), _) => files.push(FileSteps {
                    note: words.into_iter().next(),
                    ..FileSteps::of(path, None)
                }),
                (PreviewPart::Difference { before, after, .. }, Some(file))
                    if file.note.is_some() && file.ends.is_none() =>
                {
                    file.ends = Some(Ends { before, after });
                }
                (PreviewPart::Difference { before, after, .. }, Some(file))
                    if file.ends.is_some_and(|ends| ends.after == before) =>
                {
                    file.ends = file.ends.map(|ends| Ends { after, ..ends });
                }
                (PreviewPart::Difference { before, after, .. }, _) => {
                    files.push(FileSteps::of(path, Some(Ends { before, after })));
                }
                (PreviewPart::Replacement(pair), Some(file)) => file.pairs.push(pair),
                (PreviewPart::Replacement(pair), None) => files.push(FileSteps {
                    pairs: vec![pair],
                    ..FileSteps::of(path, None)
                }),
                _ => {}
            }
        }
    }

    files
}

impl<'a> FileSteps<'a> {
    /// Starts with what becomes of a file.
    fn of(path: &str, ends: Option<Ends<'a>>) -> FileSteps<'a> {
        FileSteps {
            path: path.to_owned(),
            ends,
            pairs: Vec::new(),
            note: None,
        }
    }

    /// Returns what is shown of it, up to so many lines of its difference.
    fn shown(&self, most: usize) -> FileDifference {
        let is_new = self.ends.is_some_and(|ends| ends.before.is_none());
        let mut difference = self.ends.map_or_else(Default::default, |ends| {
            let versions = FileVersions {
                path: &self.path,
                before: ends.before,
                after: ends.after,
            };
            diff::shown(&versions, most)
        });
        // Where all of it is new, its place says nothing.
        difference
            .lines
            .retain(|line| !(is_new && line.text().starts_with("@@ ")));
        difference
            .lines
            .extend(self.pairs.iter().copied().flat_map(replaced));
        let beyond = difference.lines.len().saturating_sub(most);
        difference.lines.truncate(most);

        FileDifference {
            path: self.path.clone(),
            is_new,
            note: self.note.clone(),
            counts: difference.counts,
            lines: difference.lines.into_iter().map(bounded).collect(),
            left_out: difference.left_out + beyond,
        }
    }

    /// Returns the names that head its difference.
    fn names(&self) -> [StyledLine; 2] {
        let is_new = self.ends.is_some_and(|ends| ends.before.is_none());
        let is_gone = self.ends.is_some_and(|ends| ends.after.is_none());
        let name = |side: &str, is_none: bool| match is_none {
            true => "/dev/null".to_owned(),
            false => format!("{side}/{}", self.path),
        };
        let note = self
            .note
            .as_ref()
            .map_or_else(String::new, |note| format!("  ({note})"));
        [
            format!("--- {}", name("a", is_new)),
            format!("+++ {}{note}", name("b", is_gone)),
        ]
        .map(|name| StyledLine::of(Tone::Strong, &name))
    }
}

/// Returns a line that is not longer than anybody reads.
fn bounded(line: StyledLine) -> StyledLine {
    line.cut(MAX_COLUMNS)
}

impl FileDifference {
    /// Returns how many lines its difference has.
    fn length(&self) -> usize {
        self.lines.len() + self.left_out
    }

    /// Returns its header.
    fn header(&self) -> StyledLine {
        let path = StyledLine::plain("  ").with(Tone::Strong, &self.path);
        let counts = || diff::counted(self.counts);
        let header = match &self.note {
            Some(_) if self.counts == Counts::default() => path,
            _ => path.with(Tone::Plain, "  ").join(counts()),
        };
        match (&self.note, self.is_new) {
            (Some(note), _) => header.with(Tone::Faint, &format!("  {note}")),
            (None, true) => header.with(Tone::Faint, "  new file"),
            (None, false) => header,
        }
    }

    /// Returns it in so many rows below its header, none of which is wider than the screen.
    fn rows(&self, number: usize, width: usize, key: &str) -> Vec<StyledLine> {
        let length = self.length();
        if number < 2 && length > number {
            return vec![self.header().join(more(length, "  ", key))];
        }

        let shown = if length > number { number - 1 } else { length };
        let mut rows = vec![self.header()];
        let lines = self.lines.iter().take(shown);
        rows.extend(lines.map(|line| StyledLine::plain("    ").join(line.clone()).cut(width)));
        if length > shown {
            rows.push(more(length - shown, "    ", key));
        }

        rows
    }
}

/// Counts the lines that come and go in all files.
pub(super) fn counts(files: &[FileDifference]) -> Counts {
    files.iter().fold(Counts::default(), |all, file| Counts {
        added: all.added + file.counts.added,
        removed: all.removed + file.counts.removed,
    })
}

/// Returns the rows that all files would like to have.
pub(super) fn wanted(files: &[FileDifference]) -> usize {
    let lines: usize = files.iter().map(FileDifference::length).sum();
    // What says how much is left out is not one of the lines.
    files.len() + lines.min(MAX_LINES + 1)
}

/// Returns the files in a room: each with its header, as far as there are rows, and lines of the
/// first ones; `key` says how the rest is seen.
pub(super) fn folded(files: &[FileDifference], key: &str, room: TextArea) -> Vec<StyledLine> {
    let (rows, width) = (room.height, room.width);
    let most = rows.max(1);
    let named = if files.len() > most {
        most - 1
    } else {
        files.len()
    };
    let left = rows
        .saturating_sub(files.len().min(most))
        .min(MAX_LINES + 1);
    let shares = shares(&files[..named], left);
    let listed = files.iter().zip(shares);
    let mut lines: Vec<StyledLine> = listed
        .flat_map(|(file, share)| file.rows(share, width, key))
        .collect();

    let unnamed = files.len() - named;
    if unnamed > 0 {
        let text = format!("  … and {unnamed} more files{key}");
        lines.push(StyledLine::of(Tone::Warning, &text));
    }

    lines
}

/// Divides rows among files: each has its part in turn, if that is enough to say something, and the
/// first ones have what is left.
fn shares(files: &[FileDifference], rows: usize) -> Vec<usize> {
    let part = (rows / files.len().max(1)).max(MIN_CHUNK);
    let mut left = rows;
    let mut shares = vec![0; files.len()];
    for most in [part, usize::MAX] {
        for (share, file) in shares.iter_mut().zip(files) {
            let more = file.length().min(most).saturating_sub(*share).min(left);
            *share += more;
            left -= more;
        }
    }

    shares
}

/// Says how many lines are left out, and which key shows them.
fn more(number: usize, indent: &str, key: &str) -> StyledLine {
    let lines = if number == 1 { "line" } else { "lines" };
    StyledLine::plain(indent).with(Tone::Warning, &format!("… {number} more {lines}{key}"))
}
