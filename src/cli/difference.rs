//! Shows the difference of two trees: by line, by file, or names only.

use super::app::App;
use crate::git::diff::{self, TreeChange, render_diffstat};
use crate::git::object::{BlobId, EntryMode, TreeEntry, TreeId, read};
use crate::project::Project;
use crate::query::view::turn_page::ChangedFile;
use crate::text::path::lossy;
use crate::ui::diff::{FileVersions, body, headers, kind_note};
use crate::ui::style::{StyledLine, Tone};
use crate::ui::terminal;
use crate::workspace::file_move::PathChange;

/// Width of the table by file if stdout is not a terminal; git's default.
pub(super) const STAT_WIDTH: usize = 80;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShownAs {
    Patch,
    /// Number of changed lines per file.
    Stat,
    NameOnly,
}

/// The options that say so.
#[derive(clap::Args)]
pub(super) struct ViewArgs {
    /// Show how much changed, by file
    #[arg(long, conflicts_with_all = ["name_only", "json"])]
    stat: bool,
    /// Show only the names of the files
    #[arg(long, conflicts_with = "json")]
    name_only: bool,
}

impl ViewArgs {
    pub(super) fn shown_as(&self) -> ShownAs {
        match (self.stat, self.name_only) {
            (true, _) => ShownAs::Stat,
            (_, true) => ShownAs::NameOnly,
            _ => ShownAs::Patch,
        }
    }
}

/// Prints the difference of two trees, limited to the wanted paths.
pub(super) fn show(
    app: &App,
    project: &Project,
    old: TreeId,
    new: TreeId,
    shown_as: ShownAs,
    filter: &dyn Fn(&str) -> bool,
) -> anyhow::Result<()> {
    if !app.global.json {
        let lines = lines(project, old, new, shown_as, filter)?;
        return app.page(project, &lines);
    }

    let changes = diff::changes(&project.repository, old, new)?;
    let rows = changes.into_iter().filter_map(|change| {
        let path = lossy(&change.path);
        let change = PathChange::of(&change.old, &change.new);
        filter(&path).then(|| serde_json::json!({ "path": path, "change": change }))
    });
    app.print_json(&rows.collect::<Vec<_>>())
}

/// Returns the difference of two trees as lines, limited to the wanted paths.
pub(super) fn lines(
    project: &Project,
    old: TreeId,
    new: TreeId,
    shown_as: ShownAs,
    filter: &dyn Fn(&str) -> bool,
) -> anyhow::Result<Vec<StyledLine>> {
    let changes = diff::changes(&project.repository, old, new)?;
    let selected = changes
        .into_iter()
        .filter(|change| filter(&lossy(&change.path)));
    match shown_as {
        ShownAs::Patch => patch(project, selected),
        ShownAs::NameOnly => Ok(selected
            .map(|change| StyledLine::plain(&lossy(&change.path)))
            .collect()),
        ShownAs::Stat => stat(project, old, new, selected),
    }
}

/// Returns the number of changed lines per file in git's format, fitted to the terminal.
fn stat(
    project: &Project,
    old: TreeId,
    new: TreeId,
    changes: impl Iterator<Item = TreeChange>,
) -> anyhow::Result<Vec<StyledLine>> {
    let paths: Vec<Vec<u8>> = changes.map(|change| change.path).collect();
    if paths.is_empty() {
        return Ok(Vec::new());
    }

    let width = terminal::stdout_width().unwrap_or(STAT_WIDTH);
    let text = render_diffstat(&project.repository, old, new, width, &paths)?;
    Ok(text.lines().map(stat_line).collect())
}

fn stat_line(line: &str) -> StyledLine {
    let is_sign = |c: char| matches!(c, '+' | '-');
    let signs = line.trim_end_matches(is_sign);
    match line.contains(" | ") {
        true => line[signs.len()..]
            .chars()
            .fold(StyledLine::plain(signs), |line, sign| {
                let tone = if sign == '+' {
                    Tone::Added
                } else {
                    Tone::Removed
                };
                line.with(tone, &sign.to_string())
            }),
        false => StyledLine::plain(line),
    }
}

fn patch(
    project: &Project,
    changes: impl Iterator<Item = TreeChange>,
) -> anyhow::Result<Vec<StyledLine>> {
    let mut lines = Vec::new();
    for change in changes {
        let (before, after) = (
            read_content(project, change.old.as_ref())?,
            read_content(project, change.new.as_ref())?,
        );
        let file = ChangedFile::of(change);
        let versions = FileVersions {
            path: &file.path,
            before: before.as_deref(),
            after: after.as_deref(),
        };
        lines.extend(headers(&versions, ""));
        lines.extend(kind_note(&file));
        if before != after {
            lines.extend(body(&versions));
        }
    }

    Ok(lines)
}

fn read_content(project: &Project, entry: Option<&TreeEntry>) -> anyhow::Result<Option<Vec<u8>>> {
    let Some(TreeEntry { mode, id }) = entry else {
        return Ok(None);
    };
    Ok(match mode {
        EntryMode::Tree => None,
        EntryMode::Commit => Some(format!("repository at {id}\n").into_bytes()),
        EntryMode::Blob | EntryMode::BlobExecutable | EntryMode::Link => {
            let bytes = read::small_blob(&project.repository, BlobId::of(*id))?;
            // A file too large for a diff is shown like a binary file.
            Some(bytes.unwrap_or_else(|| format!("\0{id}").into_bytes()))
        }
    })
}
