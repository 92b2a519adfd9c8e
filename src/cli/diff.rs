//! `teddy diff`

use std::process::ExitCode;

use super::app::App;
use super::complete;
use super::exit;
use crate::git::diff;
use crate::git::object::read;
use crate::git::object::{BlobId, EntryMode, TreeEntry, TreeId};
use crate::text::counted;
use crate::text::path::lossy;
use crate::ui::diff::{FileVersions, unified};
use crate::ui::mistakes;
use crate::ui::style::StyledLine;
use crate::workflow::dry_run::Rewrite;
use crate::workflow::dry_run::dry_run;
use crate::workflow::project::Project;

/// Show what a turn changed, or how two turns differ
///
/// For the turn in progress (`draft`, or its number), shows what the waiting plan would change.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy diff                        what the newest turn changed\n  teddy diff 3                      what turn 3 changed\n  teddy diff draft                  what the plan that waits would change\n  teddy diff 1 3                    from after turn 1 to after turn 3\n  git show teddy/sessions/add-auth^2"
)]
pub(super) struct Args {
    /// A turn; the newest one if omitted
    #[arg(add = complete::with(complete::turns_and_draft))]
    turn: Option<String>,
    /// Another turn
    #[arg(add = complete::with(complete::turns))]
    other: Option<String>,
}

/// Prints the differences.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.project()?;
    let (store, session) = (project.store(), project.session()?);
    let name = args.turn.as_deref().unwrap_or("@");
    if args.other.is_none() && store.turn_or_draft(&session, name)?.is_draft() {
        show_draft(app, &project, name)?;
    } else {
        let sides = trees(&project, &args)?;
        show(app, &project, sides, |_| true)?;
    }

    Ok(exit::DONE.into())
}

/// Prints what the plan that waits would change.
fn show_draft(app: &App, project: &Project, name: &str) -> anyhow::Result<()> {
    let store = project.store();
    let session = store.turn_or_draft(&project.session()?, name)?.session;
    let tip = store.tip(&session)?;
    let run = dry_run(project, &tip, &store.draft(&tip)?)?;
    if !run.diagnostics.is_empty() {
        app.tell_lines(&mistakes::rejected(&run.diagnostics));
    }

    if run.commands > 0 {
        let commands = counted(run.commands, "command");
        app.say(&format!(
            "What {commands} of the plan would change shows when it ran."
        ));
    }

    if app.global.json {
        let row = |(path, file): (&String, &Rewrite)| {
            let word = if file.before.is_some() {
                "modified"
            } else {
                "added"
            };
            serde_json::json!({ "path": path, "change": word })
        };
        return app.print_json(&run.files.iter().map(row).collect::<Vec<_>>());
    }

    let lines = run.files.iter().flat_map(|(path, file)| {
        unified(&FileVersions {
            path,
            before: file.before.as_deref(),
            after: Some(&file.after),
        })
    });
    app.page(project, &lines.collect::<Vec<_>>())
}

/// Prints the difference of two trees, of those paths that are wanted.
pub(super) fn show(
    app: &App,
    project: &Project,
    (old, new): (TreeId, TreeId),
    wanted: fn(&str) -> bool,
) -> anyhow::Result<()> {
    if !app.global.json {
        return app.page(project, &lines(project, (old, new), &wanted)?);
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
    wanted: &dyn Fn(&str) -> bool,
) -> anyhow::Result<Vec<StyledLine>> {
    let mut lines = Vec::new();
    for change in diff::changes(&project.repository, old, new)? {
        let path = lossy(&change.path);
        if !wanted(&path) {
            continue;
        }

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

/// Returns the two sides.
fn trees(project: &Project, args: &Args) -> anyhow::Result<(TreeId, TreeId)> {
    let (store, session) = (project.store(), project.session()?);
    let after = |name: &str| -> anyhow::Result<TreeId> {
        let turn = store.turn(&session, name)?;
        match turn.workspace {
            Some(commit) => project.repository.commit(commit).map(|commit| commit.tree),
            None => anyhow::bail!(
                "turn {} has no code: it is the session's start",
                turn.number()
            ),
        }
    };

    if let (Some(old), Some(new)) = (&args.turn, &args.other) {
        return Ok((after(old)?, after(new)?));
    }

    let turn = store.turn(&session, args.turn.as_deref().unwrap_or("@"))?;
    match &turn.meta.workspace {
        Some(workspace) => Ok((
            project.repository.commit(workspace.before)?.tree,
            project.repository.commit(workspace.after)?.tree,
        )),
        None => anyhow::bail!(
            "turn {} changed no code: it is the session's start",
            turn.number()
        ),
    }
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
