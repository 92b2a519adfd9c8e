//! `teddy recover`

use std::process::ExitCode;

use super::app::App;
use super::exit;

/// Finish what a crash interrupted
///
/// Every command that changes something does this first by itself; running it twice changes nothing.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  teddy recover")]
pub(super) struct Args {}

/// Recovers and says whether there was anything to do.
pub(super) fn run(_args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.project()?;
    let mut user = app.user(&project, false);
    let found = project.recover_now(user.as_mut())?;
    if app.global.json {
        app.print_json(&serde_json::json!({ "recovered": found }))?;
    } else if !found {
        app.say("There is nothing to recover.");
    }
    Ok(exit::DONE.into())
}
