//! `teddy redo`

use std::process::ExitCode;

use super::app::App;
use super::restore::{How, show};
use crate::workflow::restore::redo;

/// Go forward again over turns that were undone
///
/// Any other new turn ends what can be redone.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  teddy redo\n  teddy redo 3\n  teddy redo -n")]
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
    let done = redo(&project, args.turns, &wish, user.as_mut())?;
    show(app, &done, wish.dry_run)
}
