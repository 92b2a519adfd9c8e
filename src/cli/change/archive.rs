//! `teddy change archive`: merges the specs of a complete change into the project's.

use std::process::ExitCode;

use super::super::app::App;
use super::super::complete;
use super::super::exit;
use crate::change::id::ChangeId;
use crate::workflow::change::archive::archive;
use crate::workflow::restore::OnOverlap;

/// Merge the specs of a complete change into the project's specs/
///
/// A three-way merge, based on the specs from when the change began. If the same lines have changed
/// since, nothing is written and the exit code is 4, until you choose a side.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change archive add-auth\n  teddy change archive add-auth --markers\n  teddy undo -s change/add-auth"
)]
pub(super) struct ArchiveArgs {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// Keep the project's side where both changed the same lines
    #[arg(long, group = "side")]
    ours: bool,
    /// Take the change's side there
    #[arg(long, group = "side")]
    theirs: bool,
    /// Write conflict markers there
    #[arg(long, group = "side")]
    markers: bool,
}

pub(super) fn archive_change(args: ArchiveArgs, app: &mut App) -> anyhow::Result<ExitCode> {
    let id = ChangeId::parse(&args.id)?;
    let on_overlap = match (args.ours, args.theirs, args.markers) {
        (true, ..) => OnOverlap::Ours,
        (_, true, _) => OnOverlap::Theirs,
        (.., true) => OnOverlap::Markers,
        _ => OnOverlap::Stop,
    };
    let mut project = app.project()?;
    let mut user = app.user(&project, false);
    let archived = archive(&mut project, &id, on_overlap, user.as_mut())?;

    drop(user);
    if app.global.json {
        app.print_json(&archived)?;
    } else if archived.conflicts.is_empty() {
        app.print(format!("{id} {}\n", archived.phase.word()))?;
        archived.done.iter().for_each(|line| app.note(line));
    } else if let Some(turn) = archived.turn {
        archived.conflicts.iter().for_each(|path| {
            app.warn(&format!(
                "`{path}` was not written: something in your files is in the way"
            ))
        });
        app.note(&format!(
            "Turn {turn} has the specs, and the change is not archived yet. Make way, then archive it again."
        ));
    } else {
        archived.conflicts.iter().for_each(|path| {
            app.warn(&format!(
                "`{path}` was also changed by another user in the same place"
            ))
        });
        app.note("Nothing was written. `--ours`, `--theirs` or `--markers` says which side counts there.");
    }

    Ok(if archived.conflicts.is_empty() {
        exit::SUCCESS
    } else {
        exit::OVERLAP
    }
    .into())
}
