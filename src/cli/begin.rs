//! The session that a request goes to: the one in use, or a new one that is named after it.

use super::app::App;
use crate::session::name::SessionName;
use crate::workflow;
use crate::workflow::agent::hand_to;
use crate::workflow::model::agents;
use crate::workflow::project::{NoSession, Project};

/// Starts a session with an agent, the configured one if none is named, and says so.
///
/// # Errors
/// Where there is no such agent, the name is taken, or the repository cannot be written.
pub(super) fn begin(
    app: &App,
    project: &mut Project,
    name: &SessionName,
    agent: Option<&str>,
) -> anyhow::Result<()> {
    let usual = project.settings.agent.clone();
    let agent = agents::agent(project, agent.unwrap_or(&usual))?;
    let mut user = app.user(project, false);
    let transaction = project.enter("start", user.as_mut())?;
    workflow::new::new(&transaction, project, name, &agent)?;
    drop(transaction);

    app.say(&format!("Started session {name}."));
    Ok(())
}

/// Starts a session that is named after a request where none is in use; else gives the one in use
/// to the agent that is named. Without words for a name nothing is started.
///
/// # Errors
/// As for [`begin`] and [`hand_to`].
pub(super) fn begin_or_hand_to(
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
            begin(app, project, &name, agent)
        }
        (Err(error), _) => Err(error),
        (Ok(_), Some(agent)) => {
            let mut user = app.user(project, false);
            let name = hand_to(project, agent, user.as_mut())?;
            app.say(&format!("The agent {name} plans from now on."));
            Ok(())
        }
        (Ok(_), None) => Ok(()),
    }
}
