//! `teddy new`: starts a session.

use std::process::ExitCode;

use super::app::App;
use super::complete;
use super::exit;
use crate::session::name::SessionName;
use crate::workflow;
use crate::workflow::model::agents;

/// Start a session
///
/// The name is kebab-case, such as `add-auth`. Later commands in this worktree use this session by
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

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let name = SessionName::parse(&args.name)?;
    let mut project = app.project()?;
    let agent = agents::agent(
        &project,
        &args.agent.unwrap_or_else(|| project.settings.agent.clone()),
    )?;
    let mut user = app.user(&project, false);
    let transaction = project.enter("new", user.as_mut())?;
    let commit = workflow::lifecycle::start_session(&transaction, &mut project, &name, &agent)?;

    drop(transaction);
    if app.global.json {
        app.print_json(&serde_json::json!({ "session": name, "ref": name.reference(), "commit": commit, "agent": agent.name }))?;
    } else {
        app.print(format!("{}\n", name.reference()))?;
        app.note(&format!(
            "Started session {name} with the agent {}. Next: teddy plan '...'",
            agent.name
        ));
    }

    Ok(exit::SUCCESS.into())
}
