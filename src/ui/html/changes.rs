//! Renders the diffs of a page: a table of lines for each file, with changed words marked.

use std::ops::Range;

use maud::{Markup, html};

use crate::query::view::turn_page::{ChangedFile, FileView};
use crate::text::diff::{self, DiffLine, Difference, Hunk, LineChange};
use crate::text::sanitize::{sanitize_line, sanitize_tabbed};
use crate::text::{counted, sized};
use crate::ui::diff::NOT_SHOWN;
use crate::workspace::file_move::PathChange;

/// Per file.
const MAX_LINES: usize = 2_000;
/// For all files. Files beyond it are listed without their lines.
const MAX_ALL: usize = 10_000;
/// Characters shown of a line.
const MAX_LETTERS: usize = 2_000;
/// Number of files that are unfolded at first.
const OPEN: usize = 30;

/// Reads both versions of a file.
pub type Loading<'a> = dyn Fn(&ChangedFile) -> (FileView, FileView) + 'a;

/// Changed files of a page.
pub struct Changes<'a> {
    pub files: &'a [ChangedFile],
    /// Number of further files, which are not listed.
    pub left_out: usize,
    /// Reads a file when it is rendered.
    pub load: &'a Loading<'a>,
}

/// A file with its computed diff.
struct DrawnFile<'a> {
    file: &'a ChangedFile,
    /// Shown above the lines, for example a change of mode.
    notes: Vec<String>,
    difference: Difference,
    /// Whether its lines are in the total. A binary file has none.
    is_counted: bool,
}

/// Renders the list of files, then the diff of each.
pub fn changes(changes: &Changes<'_>) -> Markup {
    let mut remaining = MAX_ALL;
    let drawn: Vec<DrawnFile<'_>> = changes
        .files
        .iter()
        .map(|file| {
            let drawn = read(file, changes.load, remaining);
            remaining -= drawn.rows().min(remaining);
            drawn
        })
        .collect();
    let (added, removed) = drawn.iter().fold((0, 0), |(added, removed), file| {
        let counts = file.difference.counts;
        (added + counts.added, removed + counts.removed)
    });

    let uncounted = drawn.iter().filter(|file| !file.is_counted).count() + changes.left_out;

    html! {
        p.facts {
            span { (counted(changes.files.len() + changes.left_out, "file")) }
            (counts(added, removed))
            @if uncounted > 0 { " " span { "without the lines of " (counted(uncounted, "file")) } }
        }
        @if drawn.len() > 1 {
            ul.files {
                @for (at, file) in drawn.iter().enumerate() {
                    li {
                        a href={ "#file-" (at) } { (sanitize_line(&file.file.path)) }
                        " " (file.counts())
                    }
                }
            }
        }
        @for (at, file) in drawn.iter().enumerate() { (file.markup(at)) }
        @if changes.left_out > 0 {
            p.cut { "… and " (counted(changes.left_out, "file")) " more." }
        }
    }
}

/// `max_lines`: limit for the lines of this file on the page.
fn read<'a>(file: &'a ChangedFile, load: &Loading<'_>, max_lines: usize) -> DrawnFile<'a> {
    let mut notes = Vec::new();
    if let Some((old, new)) = file.kinds() {
        notes.push(format!("{old} → {new}"));
    }
    if max_lines == 0 {
        notes.push("too much differs to show it here".to_owned());
        return DrawnFile {
            file,
            notes,
            difference: Difference::default(),
            is_counted: false,
        };
    }

    let (before, after) = load(file);
    let texts = [&before, &after].map(FileView::text);
    let difference = match texts {
        [Some(before), Some(after)] => diff::difference(before, after, MAX_LINES.min(max_lines)),
        _ => Difference::default(),
    };
    if file.kinds().is_none() && matches!(before, FileView::Text(_)) && before == after {
        notes.push(NOT_SHOWN.to_owned());
    }
    let is_binary = |view: &FileView| matches!(view, FileView::Binary { .. });
    let is_counted = texts.iter().all(Option::is_some) || is_binary(&before) || is_binary(&after);
    notes.extend(
        [("before", &before), ("after", &after)]
            .into_iter()
            .filter_map(|(when, version)| described(version).map(|note| format!("{when}: {note}"))),
    );
    DrawnFile {
        file,
        notes,
        difference,
        is_counted,
    }
}

/// `None` if the file has lines or does not exist.
fn described(version: &FileView) -> Option<String> {
    match version {
        FileView::Absent | FileView::Text(_) => None,
        FileView::Binary { bytes } => Some(format!("binary, {}", sized(*bytes))),
        FileView::TooLarge { bytes } => Some(format!("too large to be shown, {}", sized(*bytes))),
        FileView::Link(target) => Some(format!("a link to {}", sanitize_line(target))),
        FileView::Submodule(commit) => Some(format!("a repository at {commit}")),
        FileView::Unreadable(why) => Some(format!("cannot be read: {}", sanitize_line(why))),
    }
}

fn counts(added: usize, removed: usize) -> Markup {
    html! {
        @if added > 0 { span.added { "+" (added) } }
        @if removed > 0 { " " span.removed { "−" (removed) } }
    }
}

impl DrawnFile<'_> {
    fn rows(&self) -> usize {
        self.difference
            .hunks
            .iter()
            .map(|hunk| hunk.lines.len())
            .sum()
    }

    fn counts(&self) -> Markup {
        counts(self.difference.counts.added, self.difference.counts.removed)
    }

    fn markup(&self, at: usize) -> Markup {
        let word = match self.file.change {
            PathChange::Added => "new",
            PathChange::Deleted => "deleted",
            PathChange::Modified => "",
        };
        html! {
            details.file id={ "file-" (at) } open[at < OPEN] {
                summary {
                    span.path { (sanitize_line(&self.file.path)) }
                    @if !word.is_empty() { " " span.badge.plain { (word) } }
                    " " (self.counts())
                }
                @for note in &self.notes { p.note { (note) } }
                @if !self.difference.hunks.is_empty() {
                    div.scroll tabindex="0" role="region" aria-label=(sanitize_line(&self.file.path)) {
                        table.diff {
                            @for hunk in &self.difference.hunks { (part(hunk, self.file.change)) }
                        }
                    }
                }
                @if self.difference.left_out > 0 {
                    p.cut { "… and " (counted(self.difference.left_out, "more line")) "." }
                }
            }
        }
    }
}

fn part(hunk: &Hunk, change: PathChange) -> Markup {
    // As in git: of an empty range, the line before it.
    let first = |lines: &Range<usize>| lines.start + usize::from(!lines.is_empty());
    html! {
        tbody {
            // In an added or deleted file, the only hunk covers all lines.
            @if change == PathChange::Modified {
                tr.hunk {
                    td colspan="4" {
                        "@@ −" (first(&hunk.old)) "," (hunk.old.len())
                        " +" (first(&hunk.new)) "," (hunk.new.len()) " @@"
                    }
                }
            }
            @for line in &hunk.lines { (row(line)) }
        }
    }
}

fn row(line: &DiffLine) -> Markup {
    let (class, sign) = match line.change {
        LineChange::Kept => ("kept", " "),
        LineChange::Removed => ("gone", "−"),
        LineChange::Added => ("new", "+"),
    };
    let mut remaining = MAX_LETTERS;
    let pieces: Vec<(bool, String)> = line
        .pieces
        .iter()
        .map(|(is_marked, text)| {
            let text: String = text.chars().take(remaining).collect();
            remaining -= text.chars().count();
            (*is_marked, sanitize_tabbed(&text))
        })
        .collect();
    html! {
        tr class=(class) {
            td.n { @if let Some(number) = line.old { (number) } }
            td.n { @if let Some(number) = line.new { (number) } }
            td.sign { (sign) }
            td.text {
                @for (is_marked, text) in &pieces {
                    @match (is_marked, line.change) {
                        (true, LineChange::Removed) => del { (text) },
                        (true, LineChange::Added) => ins { (text) },
                        _ => (text),
                    }
                }
                @if remaining == 0 { span.cut { " …" } }
                @if line.unended { span.cut { " (no line end)" } }
            }
        }
    }
}
