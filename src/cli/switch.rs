//! `teddy switch`

use std::process::ExitCode;

use super::app::App;
use super::exit;
use crate::session::name::SessionName;
use crate::workflow::branch::switch;

/// Go on with another session
///
/// Your files stay as they are; `teddy restore @` brings them to its newest turn.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  teddy switch add-auth\n  teddy sessions                    lists them")]
pub(super) struct Args {
    /// The session's name
    name: String,
}

/// Switches.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let name = SessionName::from_ref(&args.name)?;
    let mut project = app.project()?;
    switch(&mut project, &name)?;
    app.say(&format!("Going on with session {name}. Your files stay as they are; `teddy restore @` brings them to its newest turn."));
    Ok(exit::DONE.into())
}
