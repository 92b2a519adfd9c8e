//! `teddy recover`: completes or rolls back interrupted operations.

use std::process::ExitCode;

use super::app::App;
use super::exit;
use crate::text::sanitize::sanitize_line;
use crate::workspace::recover;

/// Finish what a crash interrupted
///
/// Every command that changes something does this first; running it twice is harmless.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy recover             finish and check everything\n  teddy recover --put-back  restore what an earlier recovery quarantined as damaged"
)]
pub(super) struct Args {
    /// First restore the valid part of what recovery quarantined
    #[arg(long)]
    put_back: bool,
}

/// Recovers and says whether there was anything to do.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.project()?;
    let mut user = app.user(&project, false);
    crate::host::shell::end_orphans();
    let put_back = match args.put_back {
        true => project.put_back()?,
        false => Vec::new(),
    };
    for result in &put_back {
        let name = sanitize_line(&result.item.name);
        match &result.refused {
            None => app.note(&format!("Put back `{name}`.")),
            Some(why) => app.warn(&format!(
                "`{name}` stays in quarantine: {}",
                sanitize_line(why)
            )),
        }
    }
    let recovered = project.recover_thoroughly(user.as_mut())?;
    let locks = recover::foreign_locks(&project.repository);

    for lock in &locks {
        let (path, seconds) = (lock.path.display(), lock.seconds);
        app.warn(&format!(
            "`{path}` is a lock of git's own, {seconds} s old; if no git is running, remove it"
        ));
    }

    if app.global.json {
        let mut value = serde_json::json!({ "recovered": recovered, "foreign_locks": locks });
        if args.put_back {
            value["put_back"] = serde_json::to_value(&put_back)?;
        }
        app.print_json(&value)?;
    } else if !recovered && put_back.is_empty() {
        app.note("There is nothing to recover.");
    }

    Ok(exit::SUCCESS.into())
}
