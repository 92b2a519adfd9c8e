//! `teddy start`

use std::process::ExitCode;

use super::app::App;
use super::resume::{LoopFlags, go};
use super::{complete, exit};
use crate::session::name::SessionName;
use crate::workflow;
use crate::workflow::model::agents;

/// Start a session and run it: `new` followed by the loop of `resume`
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy start add-auth -m 'add a login form'\n  teddy start -m 'fix the build' --yolo"
)]
pub(super) struct Args {
    /// The session's name; derived from the message if omitted
    name: Option<String>,
    /// The agent that plans
    #[arg(short, long, value_name = "AGENT", add = complete::with(complete::agents))]
    agent: Option<String>,
    #[command(flatten)]
    how: LoopFlags,
}

/// Starts and goes on.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let mut project = app.project()?;
    let mut how = args.how;
    how.read_message()?;
    how.check(app, &project)?;
    if args.name.is_none() && !how.ask(app.user(&project, false).as_mut())? {
        app.say("Nothing was started.");
        return Ok(exit::DONE.into());
    }

    let name = match &args.name {
        Some(name) => SessionName::parse(name)?,
        None => how.session_name(&project)?,
    };
    let agent = agents::agent(
        &project,
        &args.agent.unwrap_or_else(|| project.settings.agent.clone()),
    )?;
    {
        let mut user = app.user(&project, false);
        let transaction = project.enter("start", user.as_mut())?;
        workflow::new::new(&transaction, &mut project, &name, &agent)?;
    }

    app.say(&format!("Started session {name}."));
    go(app, project, how)
}
