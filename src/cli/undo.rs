//! `teddy undo`: undoes the last turns.

use super::app::App;
use super::exit::ExitStatus;
use super::restore::UndoArgs;
use crate::workflow::restore::steps::undo;

/// Undo the last turns
///
/// Files and context return to what they were before; your own later edits are kept. `teddy redo`
/// goes forward again.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  teddy undo\n  teddy undo 3\n  teddy undo -n")]
pub(super) struct Args {
    #[command(flatten)]
    steps: UndoArgs,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    args.steps.run(undo, app)
}
