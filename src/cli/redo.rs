//! `teddy redo`: redoes undone turns.

use super::app::App;
use super::exit::ExitStatus;
use super::restore::UndoArgs;
use crate::workflow::restore::steps::redo;

/// Redo turns that were undone
///
/// Once you record another turn, there is nothing left to redo.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  teddy redo\n  teddy redo 3\n  teddy redo -n")]
pub(super) struct Args {
    #[command(flatten)]
    steps: UndoArgs,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    args.steps.run(redo, app)
}
