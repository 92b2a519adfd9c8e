//! `teddy undo`

use std::process::ExitCode;

use super::app::App;
use super::restore::{How, show};
use crate::workflow::restore::undo;

/// Go back over the last turns
///
/// Files and context are as before them; your own later edits stay. `teddy redo` goes forward again.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  teddy undo\n  teddy undo 3\n  teddy undo -n")]
pub(super) struct Args {
    /// How many
    #[arg(value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    turns: u64,
    #[command(flatten)]
    how: How,
}

/// Goes and says what changed.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.project()?;
    let mut user = app.user(&project, true);
    let wish = args.how.wish();
    let done = undo(&project, args.turns, &wish, user.as_mut())?;
    show(app, &done, wish.dry_run)
}
