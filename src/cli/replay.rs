//! `teddy replay`

use std::process::ExitCode;

use super::app::App;
use super::complete;
use super::exit;
use crate::text::visible::visible;
use crate::workflow::replay::replay;

/// Run a recorded plan again and compare what comes out
///
/// Runs in a worktree that is thrown away, without network, from the files that the turn began
/// with. Your files and the session stay as they are. Exit code 0: the same tree; 1: another one.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy replay 3\n  teddy replay @~1 -y               also where commands cannot be confined"
)]
pub(super) struct Args {
    /// The turn: a number, or anything `git rev-parse` takes
    #[arg(add = complete::with(complete::turns))]
    turn: String,
    /// Run its commands even where they cannot be confined
    #[arg(short, long)]
    yes: bool,
}

/// Runs the plan and says whether the tree is the same.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.project()?;
    let mut user = app.user(&project, args.yes);
    let replayed = replay(&project, &args.turn, user.as_mut())?;
    drop(user);
    let same = replayed.expected == replayed.tree;
    if app.global.json {
        app.print_json(&serde_json::json!({
            "turn": replayed.turn,
            "same": same,
            "expected": replayed.expected,
            "tree": replayed.tree,
            "differences": replayed.differences,
        }))?;
    } else {
        let word = if same { "same" } else { "different" };
        app.print(format!("turn {} {word} {}\n", replayed.turn, replayed.tree))?;
        replayed
            .differences
            .iter()
            .for_each(|path| app.say(&format!("  {}", visible(path))));
    }
    Ok(if same { exit::DONE } else { exit::FAILED }.into())
}
