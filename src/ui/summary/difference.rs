//! Changed files of a plan with the first lines of their diffs.
//!
//! Omitted lines are counted, with the key that shows them.

use crate::plan::Plan;
use crate::plan::action::behavior::PreviewPart;
use crate::plan::action::edit::Pair;
use crate::plan::validate::Simulation;
use crate::text::counted;
use crate::text::damage::is_generated;
use crate::text::diff::Counts;
use crate::text::encoding::display_text;
use crate::text::path::RepoPath;
use crate::ui::diff::{self, FileVersions, RenderedDifference, is_hunk_header, replaced};
use crate::ui::style::{StyledLine, TextArea, Tone};

/// Diff lines in a summary, for all files together.
pub(super) const MAX_LINES: usize = 40;
/// With fewer lines, the diff of a file says too little to be useful.
const MIN_CHUNK: usize = 8;
/// Of the lines of a difference.
const INDENT: &str = "    ";
/// Lines of one file in the full diff.
const MAX_WHOLE: usize = 20_000;

/// Appended to counts of omitted lines: the key that shows all.
pub(super) const KEY: &str = ": d";
/// The same in the full diff.
const WHOLE_KEY: &str = ": v in (m)odify";

/// Summary of the changes to one file.
#[derive(Debug, Clone)]
pub(super) struct FileDifference {
    path: String,
    is_new: bool,
    /// Description of a change that has no lines.
    note: Option<String>,
    shown: RenderedDifference,
}

/// All differences of one file, for comments on its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewedFile {
    pub path: String,
    /// The path with counts.
    pub heading: StyledLine,
    /// The file after the plan, as it is displayed. `None` if it does not exist, is binary, or the
    /// result is unknown.
    pub after: Option<String>,
    /// Lines of the difference, each with its number in the file after the plan.
    pub rows: Vec<(StyledLine, Option<usize>)>,
    /// Whether a tool generates the file.
    pub is_generated: bool,
}

/// Order in which a reader should see files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FileWeight {
    Code,
    Test,
    Generated,
}

/// Combined effect of consecutive actions on one file.
struct FileSteps<'a> {
    path: &'a str,
    /// The file before the first and after the last of them. `None` if the result is unknown, for
    /// example after a command.
    ends: Option<FileVersions<'a>>,
    /// Pairs of EDITs whose result is unknown.
    pairs: Vec<&'a Pair>,
    note: Option<String>,
    /// Whether git's attributes say that a tool generates it.
    is_marked_generated: bool,
}

/// Returns the changed files: code, then tests, then generated files, each in the order of the plan.
pub(super) fn files(plan: &Plan, simulation: &Simulation) -> Vec<FileDifference> {
    let steps = steps(plan, simulation);
    let render = |file: &FileSteps<'_>| file.render(MAX_LINES, narrow);
    steps.iter().map(render).collect()
}

/// For a screen that shows a line in one row.
fn narrow(line: StyledLine) -> StyledLine {
    diff::cut_to_change(line, diff::MAX_COLUMNS)
}

/// Returns the differences of all files, for comments.
pub fn reviewed_files(plan: &Plan, simulation: &Simulation) -> Vec<ReviewedFile> {
    let mut files = Vec::new();
    for file in steps(plan, simulation) {
        let rendered = file.render(MAX_WHOLE, narrow);
        let heading = rendered.header();
        let RenderedDifference {
            mut rows, left_out, ..
        } = rendered.shown;
        if left_out > 0 {
            rows.push((more(left_out, "", WHOLE_KEY), None));
        }
        let after = file.ends.and_then(|ends| ends.after);
        files.push(ReviewedFile {
            heading,
            after: after
                .and_then(display_text)
                .map(|shown| shown.text.into_owned()),
            rows,
            is_generated: file.weight() == FileWeight::Generated,
            path: file.path.to_owned(),
        });
    }
    files
}

pub(super) fn full_diff(plan: &Plan, simulation: &Simulation) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    for file in steps(plan, simulation) {
        let rendered = file.render(MAX_WHOLE, diff::with_gaps).shown;
        lines.extend(file.names());
        lines.extend(rendered.rows.into_iter().map(|(line, _)| line));
        if rendered.left_out > 0 {
            lines.push(more(rendered.left_out, "", WHOLE_KEY));
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

fn steps<'a>(plan: &'a Plan, simulation: &'a Simulation) -> Vec<FileSteps<'a>> {
    let mut files: Vec<FileSteps<'a>> = Vec::new();
    for (index, action) in plan.actions.iter().enumerate() {
        let Some(path) = action.kind.path() else {
            continue;
        };
        let path = path.as_str();
        let versions = |before, after| FileVersions {
            path,
            before,
            after,
        };
        for part in action.kind.preview(simulation.step(index)) {
            let existing = files.iter_mut().rfind(|file| file.path == path);
            match (part, existing) {
                (PreviewPart::Text(texts), _) => files.push(FileSteps {
                    note: texts.into_iter().next(),
                    ..FileSteps::of(path, None)
                }),
                (PreviewPart::Difference { before, after, .. }, existing) => {
                    let versions = versions(before, after);
                    if !existing.is_some_and(|file| file.continue_with(versions)) {
                        files.push(FileSteps::of(path, Some(versions)));
                    }
                }
                (PreviewPart::Replacement(pair), Some(file)) => file.pairs.push(pair),
                (PreviewPart::Replacement(pair), None) => files.push(FileSteps {
                    pairs: vec![pair],
                    ..FileSteps::of(path, None)
                }),
                _ => {}
            }
        }
        if simulation.step(index).facts.is_marked_generated {
            let of_path = files.iter_mut().filter(|file| file.path == path);
            of_path.for_each(|file| file.is_marked_generated = true);
        }
    }

    files.sort_by_key(FileSteps::weight);
    files
}

impl<'a> FileSteps<'a> {
    fn of(path: &'a str, ends: Option<FileVersions<'a>>) -> FileSteps<'a> {
        FileSteps {
            path,
            ends,
            pairs: Vec::new(),
            note: None,
            is_marked_generated: false,
        }
    }

    /// Continues from the result of the last action, so that one diff is shown for both. Returns
    /// `false` if the difference starts from another version.
    fn continue_with(&mut self, versions: FileVersions<'a>) -> bool {
        let start = match self.ends {
            None if self.note.is_some() => versions.before,
            Some(ends) if ends.after == versions.before => ends.before,
            _ => return false,
        };
        self.ends = Some(FileVersions {
            before: start,
            ..versions
        });
        true
    }

    /// `fitted` fits a line to the screen.
    fn render(&self, most: usize, fitted: fn(StyledLine) -> StyledLine) -> FileDifference {
        let is_new = self.ends.is_some_and(|ends| ends.before.is_none());
        let ends = self.ends.as_ref();
        let mut shown = ends.map_or_else(Default::default, |ends| diff::render(ends, most));
        // In a new file, the only hunk covers all lines.
        let is_header = |(line, _): &(StyledLine, _)| is_hunk_header(line);
        if is_new && let Some(at) = shown.rows.iter().position(is_header) {
            shown.rows.remove(at);
        }
        let pairs = self.pairs.iter().copied().flat_map(replaced);
        shown.rows.extend(pairs.map(|line| (line, None)));
        shown.left_out += shown.rows.len().saturating_sub(most);
        shown.rows.truncate(most);
        for (line, _) in &mut shown.rows {
            *line = fitted(std::mem::take(line));
        }
        FileDifference {
            path: self.path.to_owned(),
            is_new,
            note: self.note.clone(),
            shown,
        }
    }

    fn weight(&self) -> FileWeight {
        let text = self.ends.and_then(|ends| ends.before.or(ends.after));
        let path = RepoPath::parse(self.path);
        let is_generated = |path| is_generated(&path, text.unwrap_or_default());
        if self.is_marked_generated || path.is_ok_and(is_generated) {
            return FileWeight::Generated;
        }
        match is_test(self.path) {
            true => FileWeight::Test,
            false => FileWeight::Code,
        }
    }

    fn names(&self) -> [StyledLine; 2] {
        let note = self.note.as_ref().map(|note| format!("  ({note})"));
        // A version that is unknown exists.
        let unknown = FileVersions {
            path: self.path,
            before: Some(b""),
            after: Some(b""),
        };
        diff::headers(&self.ends.unwrap_or(unknown), &note.unwrap_or_default())
    }
}

/// Judging by the usual names.
fn is_test(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let (dirs, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    let is_test_dir = |dir| matches!(dir, "test" | "tests" | "__tests__" | "spec" | "specs");
    dirs.split('/').any(is_test_dir)
        || matches!(stem, "test" | "tests")
        || stem.starts_with("test_")
        || ["_test", "_spec", "tests", "-test"]
            .iter()
            .any(|end| stem.ends_with(end))
        || [".test.", ".spec."].iter().any(|part| name.contains(part))
}

impl FileDifference {
    fn length(&self) -> usize {
        self.shown.rows.len() + self.shown.left_out
    }

    fn header(&self) -> StyledLine {
        let path = StyledLine::plain("  ").with(Tone::Strong, &self.path);
        let counts = || diff::counted(self.shown.counts);
        let header = match &self.note {
            Some(_) if self.shown.counts == Counts::default() => path,
            _ => path.with(Tone::Plain, "  ").append(counts()),
        };
        match (&self.note, self.is_new) {
            (Some(note), _) => header.with(Tone::Faint, &format!("  {note}")),
            (None, true) => header.with(Tone::Faint, "  new file"),
            (None, false) => header,
        }
    }

    /// Header and up to `number` rows, cut to the screen width.
    fn rows(&self, number: usize, width: usize, key: &str) -> Vec<StyledLine> {
        let length = self.length();
        if number < 2 && length > number {
            return vec![self.header().append(more(length, "  ", key))];
        }

        let visible = if length > number { number - 1 } else { length };
        let mut rows = vec![self.header()];
        let lines = self.shown.rows.iter().take(visible);
        let inner = width.saturating_sub(INDENT.len());
        let fitted = |line: &StyledLine| diff::cut_to_change(line.clone(), inner);
        let indented = |line: &StyledLine| StyledLine::plain(INDENT).append(fitted(line));
        rows.extend(lines.map(|(line, _)| indented(line).cut(width)));
        if length > visible {
            rows.push(more(length - visible, INDENT, key));
        }

        rows
    }
}

pub(super) fn counts(files: &[FileDifference]) -> Counts {
    files.iter().fold(Counts::default(), |all, file| Counts {
        added: all.added + file.shown.counts.added,
        removed: all.removed + file.shown.counts.removed,
    })
}

/// Rows needed to show everything, up to the limit.
pub(super) fn needed_lines(files: &[FileDifference]) -> usize {
    let lines: usize = files.iter().map(FileDifference::length).sum();
    // One row more than the limit: the count of omitted lines.
    files.len() + lines.min(MAX_LINES + 1)
}

/// Lists as many files as fit, with diffs for the first ones. `key` is appended to counts of
/// omitted lines.
pub(super) fn folded(files: &[FileDifference], key: &str, area: TextArea) -> Vec<StyledLine> {
    let (rows, width) = (area.height, area.width);
    let most = rows.max(1);
    let named_count = if files.len() > most {
        most - 1
    } else {
        files.len()
    };
    let budget = rows
        .saturating_sub(files.len().min(most))
        .min(MAX_LINES + 1);
    let shares = shares(&files[..named_count], budget);
    let listed = files.iter().zip(shares);
    let mut lines: Vec<StyledLine> = listed
        .flat_map(|(file, share)| file.rows(share, width, key))
        .collect();

    let unnamed = files.len() - named_count;
    if unnamed > 0 {
        let unnamed = counted(unnamed, "more file");
        let text = format!("  … and {unnamed}{key}");
        lines.push(StyledLine::of(Tone::Warning, &text));
    }

    lines
}

/// Divides rows among files. First, each gets an equal share of at least `MIN_CHUNK`, in order;
/// then the first ones get the remainder.
fn shares(files: &[FileDifference], rows: usize) -> Vec<usize> {
    let part = (rows / files.len().max(1)).max(MIN_CHUNK);
    let mut remaining = rows;
    let mut shares = vec![0; files.len()];
    for most in [part, usize::MAX] {
        for (share, file) in shares.iter_mut().zip(files) {
            let more = file
                .length()
                .min(most)
                .saturating_sub(*share)
                .min(remaining);
            *share += more;
            remaining -= more;
        }
    }

    shares
}

fn more(number: usize, indent: &str, key: &str) -> StyledLine {
    let lines = if number == 1 { "line" } else { "lines" };
    StyledLine::plain(indent).with(Tone::Warning, &format!("… {number} more {lines}{key}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_names_of_tests_are_known() {
        let tests = [
            "tests/a.rs",
            "src/a/tests.rs",
            "a_test.go",
            "web/a.spec.ts",
            "test_a.py",
            "test.sh",
        ];
        assert!(tests.iter().all(|path| is_test(path)));
        let others = [
            "src/contest.rs",
            "latest.txt",
            "attest/a.rs",
            "src/testing.rs",
        ];
        assert!(!others.iter().any(|path| is_test(path)));
    }
}
