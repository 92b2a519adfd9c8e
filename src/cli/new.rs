//! `teddy new`: starts a session.

use super::app::App;
use super::begin::start_session;
use super::complete;
use crate::project::Project;
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
    start(app, &mut project, &name, args.agent.as_deref())
}

/// Starts a session without running it. `agent` is `None` for the configured one.
pub(super) fn start(
    app: &App,
    project: &mut Project,
    name: &SessionName,
    agent: Option<&str>,
) -> anyhow::Result<()> {
    let (commit, agent) = start_session(app, project, name, agent)?;
    if app.global.json {
        app.print_json(&serde_json::json!({ "session": name, "ref": name.reference(), "commit": commit, "agent": agent }))?;
    } else {
        app.print(format!("{}\n", name.reference()))?;
        app.note(&format!(
            "Started session {name} with the agent {agent}. Next: teddy plan '...'"
        ));
    }

    app.warn_of_other_session(name.as_str());
    Ok(())
}
