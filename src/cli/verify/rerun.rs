//! `teddy replay`: runs a recorded plan again and compares the result.

use std::process::ExitCode;

use super::app::App;
use super::complete;
use super::exit;
use crate::text::sanitize::sanitize_line;
use crate::workflow::replay::{Unseen, replay};

/// Run a recorded plan again and compare the result
///
/// Runs offline in a temporary worktree, on the files that the turn started with. Your files and
/// the session are unchanged. Exit code 0: the same files and exit codes; 1: different ones.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy replay 3\n  teddy replay @~1 -y               also where commands cannot be confined"
)]
pub(super) struct Args {
    /// The turn: a number, or anything that `git rev-parse` accepts
    #[arg(add = complete::with(complete::turns))]
    turn: String,
    /// Run its commands even if they cannot be sandboxed
    #[arg(short, long)]
    yes: bool,
}

fn exit_code(code: Option<i32>) -> String {
    code.map_or_else(|| "none".to_owned(), |code| code.to_string())
}

/// Runs the plan and says whether the tree is the same.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.project()?;
    let mut user = app.user(&project, args.yes);
    let replayed = replay(&project, &args.turn, user.as_mut())?;
    drop(user);
    let same = replayed.is_same();

    if app.global.json {
        app.print_json(&serde_json::json!({
            "turn": replayed.turn,
            "same": same,
            "expected": replayed.expected,
            "tree": replayed.tree,
            "differences": replayed.differences,
            "exit_codes": replayed.exit_codes,
            "unseen": replayed.unseen,
        }))?;
    } else {
        let word = if same { "same" } else { "different" };
        app.print(format!("turn {} {word} {}\n", replayed.turn, replayed.tree))?;
        replayed
            .differences
            .iter()
            .for_each(|path| app.note(&format!("  {}", sanitize_line(path))));
        for code in &replayed.exit_codes {
            app.note(&format!(
                "  action {}: exit code {}, in the turn {}",
                code.action,
                exit_code(code.found),
                exit_code(code.expected)
            ));
        }
        for unseen in &replayed.unseen {
            app.note(match unseen {
                Unseen::FilesInNoSnapshot => {
                    "The replay cannot see files that are in no snapshot, such as ignored ones; the turn could."
                }
                Unseen::Network => "The replay has no network; the turn could have had it.",
            });
        }
    }

    Ok(if same { exit::SUCCESS } else { exit::FAILED }.into())
}
