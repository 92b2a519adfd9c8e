//! `teddy redo`

use std::process::ExitCode;

use super::app::App;
use super::restore::Steps;
use crate::workflow::restore::steps::redo;

/// Go forward again over turns that were undone
///
/// Any other new turn ends what can be redone.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  teddy redo\n  teddy redo 3\n  teddy redo -n")]
pub(super) struct Args {
    #[command(flatten)]
    steps: Steps,
}

/// Goes and says what changed.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    args.steps.go(redo, app)
}
