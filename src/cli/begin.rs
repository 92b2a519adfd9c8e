//! Starts sessions, and chooses the one for a request: the one in use, or a new one named after the
//! request.

use super::app::App;
use crate::git::object::CommitId;
use crate::project::{NoSession, Project};
use crate::session::name::SessionName;
use crate::workflow::lifecycle::{self, hand_to_agent};
use crate::workflow::model::agents;

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
