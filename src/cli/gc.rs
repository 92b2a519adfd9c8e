//! `teddy gc`

use std::process::ExitCode;

use super::app::App;
use super::complete;
use super::exit;
use crate::session::name::SessionName;
use crate::text::counted;
use crate::text::visible::visible;
use crate::workflow::gc::{GcOptions, gc};

/// Free disk space: idle worktrees and caches, old undo data, loose objects
///
/// Worktrees, and the caches that commands fill, are recreated when they are needed. Undo data is
/// what was set aside when files were overwritten, and snapshots of your files that belong to no
/// turn. A session is deleted only if you name it, along with everything that only it refers to.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy gc                      idle worktrees and caches, old undo data, packing\n  teddy gc --idle-days 0        every worktree that is not in use\n  teddy gc old-session -y       delete a session"
)]
pub(super) struct Args {
    /// Sessions to delete
    #[arg(value_name = "SESSION", add = complete::with(complete::sessions))]
    sessions: Vec<String>,
    /// Remove worktrees and caches not used for this many days
    #[arg(long, value_name = "DAYS", default_value_t = 14)]
    idle_days: u32,
    /// Remove undo data older than this many days
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    undo_days: u32,
    /// Don't ask before deleting a session
    #[arg(short, long)]
    yes: bool,
}

/// Gives back room and says what went.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.project()?;
    let sessions = args
        .sessions
        .iter()
        .map(|name| SessionName::from_ref(name))
        .collect::<Result<Vec<_>, _>>()?;
    sessions
        .iter()
        .try_for_each(|session| project.store().tip_id(session).map(drop))?;
    let question = format!(
        "Delete session {} and all of its turns?",
        args.sessions.join(", ")
    );

    if !sessions.is_empty() && !args.yes && !app.user(&project, false).confirm(&question, "-y")? {
        app.say("Nothing was changed.");
        return Ok(exit::DONE.into());
    }

    let mut user = app.user(&project, args.yes);
    let done = gc(
        &project,
        &GcOptions {
            sessions,
            idle_days: args.idle_days,
            undo_days: args.undo_days,
        },
        user.as_mut(),
    )?;
    if app.global.json {
        app.print_json(&done)?;
        return Ok(exit::DONE.into());
    }

    let mut text = String::new();
    done.sessions
        .iter()
        .for_each(|name| text.push_str(&format!("session {name}\n")));
    done.worktrees
        .iter()
        .for_each(|name| text.push_str(&format!("worktree {name}\n")));
    if done.caches {
        text.push_str("caches of commands\n");
    }

    done.checkouts
        .iter()
        .for_each(|name| text.push_str(&format!("checkout {}\n", visible(name))));
    app.print(text)?;
    let removed = [
        (done.undo_files, "undo file"),
        (done.snapshots, "old snapshot"),
    ];
    let removed: Vec<String> = removed
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, noun)| counted(*number, noun))
        .collect();

    if !removed.is_empty() {
        app.say(&format!("Removed {}.", removed.join(" and ")));
    }

    app.say("Loose objects are packed.");
    Ok(exit::DONE.into())
}
