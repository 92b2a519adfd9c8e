//! `teddy switch`: selects another session.

use super::app::App;
use super::begin::report_files;
use super::complete;
use super::exit::{self, ExitStatus};
use crate::host::screen::why_no_prompt;
use crate::project::Project;
use crate::query::history;
use crate::query::history::changed;
use crate::session::name::SessionName;
use crate::text::counted;
use crate::text::hint::error_with_hint;
use crate::text::sanitize::sanitize_line;
use crate::ui::ask::choose;
use crate::workflow::lifecycle::switch_session;
use crate::workflow::trust::{adopt_remote, adopt_session};
use crate::workflow::user::NobodyToAsk;

/// Switch to another session
///
/// Your files stay as they are; `teddy restore @` updates them to its newest turn.
///
/// A session of a remote, as it was last fetched, becomes one of yours under its own name. The plan
/// that waits in a session from elsewhere does not run until you adopt it: the plan is printed, and
/// `teddy execute` runs it.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy switch add-auth\n  teddy switch                    choose one from the list\n  teddy switch origin/add-auth    make a fetched session one of yours\n  teddy switch --adopt add-auth   accept a session that came from a file"
)]
pub(super) struct Args {
    /// The session's name; if omitted, choose one from a list
    #[arg(add = complete::with(complete::all_sessions))]
    name: Option<String>,
    /// Accept another user's session, with its pending plan; the one in use if omitted
    #[arg(long)]
    adopt: bool,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let mut project = app.project()?;
    let name = match &args.name {
        Some(name) => SessionName::from_address(name)?,
        None if args.adopt => project.session()?,
        None => match chosen(app, &project)? {
            Some(name) => name,
            None => return Ok(exit::FAILED),
        },
    };
    if args.adopt || name.remote().is_some() {
        return adopt(app, &mut project, &name);
    }

    switch_session(&mut project, &name)?;
    let (tip, files) = changed(&project)?;
    if app.global.json {
        app.print_json(&serde_json::json!({
            "session": name,
            "ref": name.reference(),
            "workspace": files,
        }))?;
    } else {
        app.note(&format!("Switched to session {name}."));
        report_files(app, &project, &files, tip.number())?;
    }

    app.warn_of_other_session(name.as_str());
    Ok(exit::SUCCESS)
}

/// Accepts a session from elsewhere, and prints the plan that waits in it.
fn adopt(app: &App, project: &mut Project, session: &SessionName) -> anyhow::Result<ExitStatus> {
    let mut user = app.user(project, false);
    let adopted = match session.remote() {
        Some(_) => adopt_remote(project, session, user.as_mut())?,
        None => adopt_session(project, session, user.as_mut())?,
    };
    let session = session.own();
    project.use_session(&session)?;
    app.warn_of_other_session(session.as_str());

    if app.global.json {
        app.print_json(&serde_json::json!({ "session": session.as_str(), "turns": adopted.turns, "plan": adopted.plan }))?;
        return Ok(exit::SUCCESS);
    }

    app.print_foreign(adopted.plan.as_deref().unwrap_or_default())?;
    let waits = match adopted.plan {
        Some(_) => "; its plan is waiting: read it above before you run `teddy execute`",
        None => "",
    };
    let turns = counted(adopted.turns, "turn");
    app.note(&format!(
        "Session {session} with {turns} is now yours and in use{waits}."
    ));
    Ok(exit::SUCCESS)
}

/// Lets the user choose a session; `None` if the user declines.
fn chosen(app: &App, project: &Project) -> anyhow::Result<Option<SessionName>> {
    let rows = history::session_rows(project)?;
    if rows.is_empty() {
        return Err(error_with_hint(
            "there are no sessions",
            "`teddy new <name>` starts one",
        ));
    }

    if !app.is_attended() {
        let message = format!("{}, so no session can be chosen", why_no_prompt());
        let hint = "`teddy switch <name>` names one; `teddy sessions` lists them";
        return Err(NobodyToAsk::new(message, hint).into());
    }

    let labels: Vec<String> = rows
        .iter()
        .map(|row| format!("{}: {}", row.name, sanitize_line(row.label())))
        .collect();
    let at = choose("Go on with", &labels)?;
    Ok(at
        .map(|at| SessionName::from_ref(&rows[at].name))
        .transpose()?)
}
