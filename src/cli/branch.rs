//! `teddy branch`

use std::process::ExitCode;

use super::app::App;
use super::exit;
use crate::session::name::SessionName;
use crate::workflow::branch::branch;

/// Start a session at an old turn
///
/// The new session shares all turns up to that one. Your files stay as they are; `teddy restore @` brings them along.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  teddy branch other-way            at the newest turn\n  teddy branch 2 other-way          at turn 2")]
pub(super) struct Args {
    /// The turn (the newest one if left out), and the new session's name
    #[arg(value_name = "[TURN] NAME", num_args = 1..=2, required = true)]
    words: Vec<String>,
}

/// Forks and prints the new ref.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let (turn, name) = match args.words.as_slice() {
        [turn, name] => (turn.as_str(), name),
        [name] => ("@", name),
        _ => unreachable!("the parser takes one or two words"),
    };
    let name = SessionName::parse(name)?;
    let mut project = app.project()?;
    let mut user = app.user(&project, false);
    let commit = branch(&mut project, turn, &name, user.as_mut())?;
    if app.global.json {
        app.print_json(&serde_json::json!({ "session": name, "ref": name.reference(), "commit": commit }))?;
    } else {
        app.print(format!("{}\n", name.reference()))?;
        app.say("Your files stay as they are; `teddy restore @` brings them to its newest turn.");
    }
    Ok(exit::DONE.into())
}
