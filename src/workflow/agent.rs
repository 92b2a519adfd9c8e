//! Hands the session to another agent, from its draft on.

use crate::session::artifact;
use crate::workflow::hint::error_with_hint;
use crate::workflow::model::agents;
use crate::workflow::project::Project;
use crate::workflow::user::User;

/// Sets the agent of the current session, starting with the next plan. Returns its name. The new
/// agent has no caller, so its CONCLUDE ends the work.
pub fn hand_to_agent(project: &Project, name: &str, user: &mut dyn User) -> anyhow::Result<String> {
    let agent = agents::agent(project, name)?;
    let session = project.session()?;
    let _session_lock = project.lock_session(&session, "agent")?;
    project.recover(user)?;
    let tip = project.store().tip(&session)?;
    let mut draft = project.store().draft(&tip)?;
    if draft.is_planned() {
        return Err(error_with_hint(
            format!("a plan of the agent {} is waiting", draft.meta.agent),
            "`teddy execute` runs it",
        ));
    }

    draft.meta.agent.clone_from(&agent.name);
    draft.meta.caller_turn_id = None;
    draft
        .artifacts
        .insert(artifact::SYSTEM_PROMPT, agent.system_prompt);
    project.store().save_draft(&tip, &mut draft)?;
    Ok(agent.name)
}
