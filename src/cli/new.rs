//! `teddy new`: starts a session.

use super::app::App;
use super::begin::start_only;
use super::complete;
use crate::session::name::SessionName;

/// Start a session, as `start --no-run` does
///
/// The name is kebab-case, such as `add-auth`; `Add auth` becomes that. Later commands in this worktree use this session by
/// default.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  teddy new add-auth\n  teddy new fix-login -a debugger")]
pub(super) struct Args {
    /// The session's name
    name: String,
    /// The agent that plans; `teddy get-prompt` lists them
    #[arg(short, long, value_name = "AGENT", add = complete::with(complete::agents))]
    agent: Option<String>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<()> {
    let name = SessionName::from_words(&args.name)?;
    let mut project = app.project()?;
    start_only(app, &mut project, &name, args.agent.as_deref())
}
