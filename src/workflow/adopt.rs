//! Tells sessions that this user made or accepted from those of others, and accepts sessions.
//!
//! The record is in the git directory, which fetch and clone do not copy. A session of someone
//! else's can be read, but its plan does not run.

use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::workflow::lifecycle::branch_session;
use crate::workflow::project::Project;
use crate::workflow::user::User;

/// What was accepted.
#[derive(Debug, Clone)]
pub struct Adopted {
    /// Number of the newest turn.
    pub turns: u64,
    /// Text of the waiting plan.
    pub plan: Option<String>,
}

/// Returns `true` if this user made or accepted the draft.
pub fn is_own_draft(project: &Project, tip: &Turn, draft: &Draft) -> bool {
    draft
        .commit
        .is_none_or(|commit| project.journal().own_drafts(&tip.session).contains(&commit))
}

/// Returns `true` if this user made or accepted the newest turn.
pub fn is_own_tip(project: &Project, tip: &Turn) -> bool {
    project.journal().tip(tip.session.as_str()) == Some(tip.commit)
}

/// Accepts a session of a remote: branches it to a local session of its own name.
pub fn adopt_remote(
    project: &mut Project,
    session: &SessionName,
    user: &mut dyn User,
) -> anyhow::Result<Adopted> {
    let own = session.own();
    branch_session(project, &format!("{session}:@"), &own, user)?;
    adopt_session(project, &own, user)
}

/// Accepts a session in its current state, including a waiting plan.
pub fn adopt_session(
    project: &Project,
    session: &SessionName,
    user: &mut dyn User,
) -> anyhow::Result<Adopted> {
    let _session_lock = project.lock_session(session, "adopt")?;
    project.recover(user)?;
    let tip = project.store().tip(session)?;
    let mut draft = project.store().draft(&tip)?;
    if !is_own_tip(project, &tip) {
        project.journal().record_adopted(tip.commit)?;
    }
    project.journal().record_tip(session, tip.commit)?;

    if draft.commit.is_some() {
        // A new turn id: the author of the draft, or the session that it was copied from, can still
        // run it under the old one.
        draft.begin();
        project.store().save_draft(&tip, &mut draft)?;
    }

    let plan = draft
        .is_planned()
        .then(|| draft.artifacts.text_or_empty(artifact::PLAN));
    Ok(Adopted {
        turns: tip.number(),
        plan,
    })
}
