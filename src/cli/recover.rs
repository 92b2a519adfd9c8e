//! `teddy recover`: completes or rolls back interrupted operations.

use std::process::ExitCode;

use super::app::App;
use super::exit;
use crate::workspace::recover;

/// Finish what a crash interrupted
///
/// Every command that changes something does this first; running it twice is harmless.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  teddy recover")]
pub(super) struct Args {}

pub(super) fn run(_args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.project()?;
    let mut user = app.user(&project, false);
    crate::host::shell::end_orphans();
    let found = project.recover_thoroughly(user.as_mut())?;
    let locks = recover::foreign_locks(&project.repository);

    for lock in &locks {
        let (path, seconds) = (lock.path.display(), lock.seconds);
        app.warn(&format!(
            "`{path}` is a lock of git's own, {seconds} s old; if no git is running, remove it"
        ));
    }

    if app.global.json {
        app.print_json(&serde_json::json!({ "recovered": found, "foreign_locks": locks }))?;
    } else if !found {
        app.say("There is nothing to recover.");
    }

    Ok(exit::DONE.into())
}
