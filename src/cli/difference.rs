//! How the difference of two trees is shown: line by line, by file, or by name.

use super::app::App;
use crate::git::diff::{self, TreeChange};
use crate::git::diffstat::diffstat;
use crate::git::object::read;
use crate::git::object::{BlobId, EntryMode, TreeEntry, TreeId};
use crate::text::path::lossy;
use crate::ui::diff::{FileVersions, unified};
use crate::ui::style::{StyledLine, Tone};
use crate::ui::terminal;
use crate::workflow::project::Project;

/// The columns of a table by file that goes elsewhere, as git has it.
pub(super) const STAT_WIDTH: usize = 80;

/// How a difference is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShownAs {
    /// Line by line.
    Patch,
    /// How many lines of each file.
    Stat,
    /// The names of the files.
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
    /// Returns what they say.
    pub(super) fn shown_as(&self) -> ShownAs {
        match (self.stat, self.name_only) {
            (true, _) => ShownAs::Stat,
            (_, true) => ShownAs::NameOnly,
            _ => ShownAs::Patch,
        }
    }
}

/// Prints the difference of two trees, of those paths that are wanted.
pub(super) fn show(
    app: &App,
    project: &Project,
    (old, new): (TreeId, TreeId),
    (shown_as, wanted): (ShownAs, &dyn Fn(&str) -> bool),
) -> anyhow::Result<()> {
    if !app.global.json {
        let lines = lines(project, (old, new), (shown_as, wanted))?;
        return app.page(project, &lines);
    }

    let changes = diff::changes(&project.repository, old, new)?;
    let rows = changes.into_iter().filter_map(|change| {
        let path = lossy(&change.path);
        let word = match (&change.old, &change.new) {
            (None, _) => "added",
            (_, None) => "deleted",
            _ => "modified",
        };
        wanted(&path).then(|| serde_json::json!({ "path": path, "change": word }))
    });
    app.print_json(&rows.collect::<Vec<_>>())
}

/// Returns the difference of two trees as lines, of those paths that are wanted.
pub(super) fn lines(
    project: &Project,
    (old, new): (TreeId, TreeId),
    (shown_as, wanted): (ShownAs, &dyn Fn(&str) -> bool),
) -> anyhow::Result<Vec<StyledLine>> {
    let changes = diff::changes(&project.repository, old, new)?;
    let wanted = changes
        .into_iter()
        .filter(|change| wanted(&lossy(&change.path)));
    match shown_as {
        ShownAs::Patch => patch(project, wanted),
        ShownAs::NameOnly => Ok(wanted
            .map(|change| StyledLine::plain(&lossy(&change.path)))
            .collect()),
        ShownAs::Stat => stat(project, (old, new), wanted),
    }
}

/// Returns how much files differ, as git shows it in the room that there is.
fn stat(
    project: &Project,
    (old, new): (TreeId, TreeId),
    changes: impl Iterator<Item = TreeChange>,
) -> anyhow::Result<Vec<StyledLine>> {
    let paths: Vec<Vec<u8>> = changes.map(|change| change.path).collect();
    if paths.is_empty() {
        return Ok(Vec::new());
    }

    let width = terminal::stdout_width().unwrap_or(STAT_WIDTH);
    let text = diffstat(&project.repository, (old, new), (width, &paths))?;
    Ok(text.lines().map(stat_line).collect())
}

/// Returns a line of git's, its signs in their colours.
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

/// Returns unified diffs.
fn patch(
    project: &Project,
    changes: impl Iterator<Item = TreeChange>,
) -> anyhow::Result<Vec<StyledLine>> {
    let mut lines = Vec::new();
    for change in changes {
        let path = lossy(&change.path);

        let (before, after) = (
            content(project, change.old.as_ref())?,
            content(project, change.new.as_ref())?,
        );
        let shown = FileVersions {
            path: &path,
            before: before.as_deref(),
            after: after.as_deref(),
        };
        lines.extend(unified(&shown));
    }

    Ok(lines)
}

/// Returns the content of one side.
fn content(project: &Project, entry: Option<&TreeEntry>) -> anyhow::Result<Option<Vec<u8>>> {
    match entry {
        Some(TreeEntry {
            mode: EntryMode::Gitlink,
            id,
        }) => Ok(Some(format!("repository at {id}\n").into_bytes())),
        Some(TreeEntry {
            mode: EntryMode::File | EntryMode::Executable | EntryMode::Link,
            id,
        }) => {
            let bytes = read::small_blob(&project.repository, BlobId::of(*id))?;
            // What is too large to be compared by lines is shown as what has none.
            Ok(Some(
                bytes.unwrap_or_else(|| format!("\0{id}").into_bytes()),
            ))
        }
        Some(TreeEntry {
            mode: EntryMode::Tree,
            ..
        })
        | None => Ok(None),
    }
}
