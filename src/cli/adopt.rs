//! `teddy adopt`: accepts a fetched session.

use std::process::ExitCode;

use super::app::App;
use super::complete;
use super::exit;
use crate::session::name::SessionName;
use crate::text::counted;
use crate::workflow::trust::{adopt_remote, adopt_session};

/// Accept a fetched session, including the plan that waits in it
///
/// A plan from another user that came with fetched or copied refs does not run until you accept
/// it. The plan is printed, and teddy switches to the session.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy adopt add-auth\n  teddy adopt origin/add-auth       make a fetched session one of yours, under its own name"
)]
pub(super) struct Args {
    /// The session; the current one if omitted
    #[arg(add = complete::with(complete::all_sessions))]
    name: Option<String>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let mut project = app.project()?;
    let session = match args.name.as_deref() {
        Some(name) => SessionName::from_address(name)?,
        None => project.session()?,
    };
    let mut user = app.user(&project, false);
    let adopted = match session.remote() {
        Some(_) => adopt_remote(&mut project, &session, user.as_mut())?,
        None => adopt_session(&project, &session, user.as_mut())?,
    };
    let session = session.own();
    project.use_session(&session)?;

    if app.global.json {
        app.print_json(&serde_json::json!({ "session": session.as_str(), "turns": adopted.turns, "plan": adopted.plan }))?;
        return Ok(exit::SUCCESS.into());
    }

    app.print_foreign(adopted.plan.as_deref().unwrap_or_default())?;
    let waits = if adopted.plan.is_some() {
        "; its plan is waiting: read it above before you run `teddy execute`"
    } else {
        ""
    };

    app.note(&format!(
        "Session {session} with {} is now yours and in use{waits}.",
        counted(adopted.turns, "turn")
    ));
    Ok(exit::SUCCESS.into())
}
