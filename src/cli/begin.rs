//! The session in use: starts one, chooses it for a request, says that there is none, or how the
//! files differ from it.

use super::app::App;
use crate::git::object::CommitId;
use crate::project::{NoSession, Project};
use crate::session::name::SessionName;
use crate::ui::drift::lines;
use crate::workflow::lifecycle::{self, hand_to_agent};
use crate::workflow::model::agents;
use crate::workspace::changed::Changed;

/// Starts a session with the given or the configured agent. Returns its first commit and the agent's
/// name.
fn start_session(
    app: &App,
    project: &mut Project,
    name: &SessionName,
    agent: Option<&str>,
) -> anyhow::Result<(CommitId, String)> {
    let usual = project.settings.agent.clone();
    let agent = agents::agent(project, agent.unwrap_or(&usual))?;
    let mut user = app.user(project, false);
    let transaction = project.enter("start", user.as_mut())?;
    let commit = lifecycle::start_session(&transaction, project, name, &agent)?;
    Ok((commit, agent.name))
}

/// Starts a session without running it. `agent` is `None` for the configured one.
pub(super) fn start_only(
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

/// Starts a session that runs at once.
pub(super) fn begin_session(
    app: &App,
    project: &mut Project,
    name: &SessionName,
    agent: Option<&str>,
) -> anyhow::Result<()> {
    start_session(app, project, name, agent)?;
    app.note(&format!("Started session {name}."));
    app.warn_of_other_session(name.as_str());
    Ok(())
}

/// Starts a session named after a request if none is in use. Otherwise hands the one in use to the
/// agent, if given. Without a session, an empty request is an error.
pub(super) fn begin_session_or_hand_to(
    app: &App,
    project: &mut Project,
    request: &str,
    agent: Option<&str>,
) -> anyhow::Result<()> {
    match (project.session(), agent) {
        (Err(error), _) if error.is::<NoSession>() => {
            if request.trim().is_empty() {
                return Err(error);
            }
            let name = project.free_name(SessionName::from_title(request))?;
            begin_session(app, project, &name, agent)
        }
        (Err(error), _) => Err(error),
        (Ok(_), Some(agent)) => {
            let mut user = app.user(project, false);
            let name = hand_to_agent(project, agent, user.as_mut())?;
            app.note(&format!("The agent {name} plans from now on."));
            Ok(())
        }
        (Ok(_), None) => Ok(()),
    }
}

/// Says that there are no sessions, and how to get one if possible.
pub(super) fn no_sessions(project: &Project) -> &'static str {
    let fetched = project.store().remote_sessions(None).unwrap_or_default();
    match project.repository.is_bare() {
        true => "There are no sessions.",
        false if !fetched.is_empty() => {
            "There are no sessions of yours; `teddy sessions -r` lists those of remotes, `teddy switch <remote>/<session>` makes one yours."
        }
        false => "There are no sessions; `teddy start '<what you want>'` starts one.",
    }
}

/// Describes how the unchanged files differ from the newest turn of a session.
pub(super) fn report_files(
    app: &App,
    project: &Project,
    files: &Changed,
    turn: u64,
) -> anyhow::Result<()> {
    let lines = lines(&files.drift, turn, &app.dir_in(project)?);
    match files.drift.same_turns {
        _ if !lines.is_empty() => {}
        Some(true) => app.note(&format!("Your files match turn {turn}.")),
        Some(false) | None if turn == 0 => app.note("Your files stay as they are."),
        Some(false) | None => app.note(&format!(
            "Your files stay as they are; `teddy restore @` updates them to turn {turn}."
        )),
    }

    lines.iter().for_each(|line| app.note(line));
    Ok(())
}
