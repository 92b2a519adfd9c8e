//! Where a session comes from: what this user made or accepted is noted in the git directory, which
//! no fetch and no clone brings. What else is there is somebody else's: it can be looked at, and
//! its plan does not run.

use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::workflow::branch::branch;
use crate::workflow::project::Project;
use crate::workflow::user::User;

/// What is accepted.
#[derive(Debug, Clone)]
pub struct Adopted {
    /// The number of the newest turn.
    pub turns: u64,
    /// The text of the plan that waits, if one does.
    pub plan: Option<String>,
}

/// Returns whether this user made or accepted the turn in progress.
pub fn is_own_draft(project: &Project, tip: &Turn, draft: &Draft) -> bool {
    draft
        .commit
        .is_none_or(|commit| project.journal().own_drafts(&tip.session).contains(&commit))
}

/// Returns whether this user made or accepted the newest turn.
pub fn is_own_tip(project: &Project, tip: &Turn) -> bool {
    project.journal().tip(tip.session.as_str()) == Some(tip.commit)
}

/// Accepts a session of a remote: makes it one of this repository, under its own name.
///
/// # Errors
/// There is no such session, it came without its files, or there is one of this name already.
pub fn take_over(
    project: &mut Project,
    session: &SessionName,
    user: &mut dyn User,
) -> anyhow::Result<Adopted> {
    let own = session.own();
    branch(project, &format!("{session}:@"), &own, user)?;
    adopt(project, &own, user)
}

/// Accepts a session as it is now, the plan that waits in it too.
///
/// # Errors
/// Where there is no such session, or the git directory cannot be written.
pub fn adopt(
    project: &Project,
    session: &SessionName,
    user: &mut dyn User,
) -> anyhow::Result<Adopted> {
    let _session_lock = project.lock_session(session, "adopt")?;
    project.recover(user)?;
    let tip = project.store().tip(session)?;
    let mut draft = project.store().draft(&tip)?;
    if !is_own_tip(project, &tip) {
        project.journal().keep_adopted(tip.commit)?;
    }
    project.journal().keep_tip(session, tip.commit)?;

    if draft.commit.is_some() {
        // Whoever made it, or the session that it was copied from, runs it under its old id.
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
