//! `teddy pick`: applies turns of other sessions.

use super::app::App;
use super::complete;
use super::exit::{self, ExitStatus};
use super::record::changed_files;
use super::restore::OverlapFlags;
use crate::text::counted;
use crate::text::path::lossy;
use crate::text::sanitize::sanitize_line;
use crate::ui::notice;
use crate::workflow::pick::{PickOptions, PickResult, pick};
use crate::workspace::notice::FileObstacle;

/// Apply turns of other sessions to the session in use
///
/// Merges the changes of each turn into your files, three-way, and records it as a turn of its own,
/// so that it can be undone and landed like any other.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy pick other-way:3\n  teddy pick other-way:3 other-way:4 -n     show what would change\n  teddy pick other-way:@ --markers"
)]
pub(super) struct Args {
    /// The turns, in this order
    #[arg(required = true, value_name = "SESSION:TURN", add = complete::with(complete::turns_of_others))]
    turns: Vec<String>,
    /// Show what would change without changing anything
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    overlap: OverlapFlags,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let project = app.project()?;
    let options = PickOptions {
        on_overlap: args.overlap.to_option(),
        dry_run: args.dry_run,
    };

    let result = pick(
        &project,
        &args.turns,
        &options,
        app.user(&project, true).as_mut(),
    )?;
    if app.global.json {
        app.print_json_with_notes(&result, result.obstacles.iter().map(notice::obstacle))?;
    } else {
        report(app, &result)?;
    }

    Ok(exit::success_or(result.overlaps.is_empty(), exit::OVERLAP))
}

fn report(app: &App, result: &PickResult) -> anyhow::Result<()> {
    let picked = result.picked.iter();
    app.print(
        picked
            .map(|row| changed_files(&row.written, &row.deleted))
            .collect::<String>(),
    )?;
    let is_blocked = |path: &String| {
        let mut obstacles = result.obstacles.iter().filter_map(FileObstacle::path);
        obstacles.any(|blocked| lossy(blocked) == *path)
    };
    let overlap = |path: &String| {
        let word = match is_blocked(path) {
            true => "blocked",
            false => "overlap",
        };
        format!("{word} {}\n", sanitize_line(path))
    };
    app.print(result.overlaps.iter().map(overlap).collect::<String>())?;
    let notes = result.obstacles.iter().map(notice::obstacle);

    notes.for_each(|note| app.warn(&note));
    if result.picked.is_empty() {
        app.warn(
            "what the turns did overlaps with your own edits or with other turns in your files; \
             nothing was changed. Use --ours, --theirs or --markers",
        );
    }

    for row in &result.picked {
        let files = counted(row.written.len() + row.deleted.len(), "file");
        let name = format!("{}:{}", sanitize_line(&row.session), row.turn);
        app.note(&match row.recorded {
            Some(turn) => format!("Picked {name} as turn {turn}: {files} changed."),
            None => format!("Picking {name} would change {files}."),
        });
    }

    Ok(())
}
