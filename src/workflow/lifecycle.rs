//! Branches a session at a turn, and switches sessions.

use crate::git::object::CommitId;
use crate::git::refs::{self, Expected, MoveError};
use crate::session::name::SessionName;
use crate::session::store::StoreError;
use crate::workflow::hint::error_with_hint;
use crate::workflow::project::Project;
use crate::workflow::user::User;

/// Starts a session at a turn of another one and switches to it. The user's files stay as they are.
pub fn branch_session(
    project: &mut Project,
    turn: &str,
    name: &SessionName,
    user: &mut dyn User,
) -> anyhow::Result<CommitId> {
    let commit = fork_session(project, turn, name, user)?;
    project.use_session(name)?;
    Ok(commit)
}

/// Like [`branch_session`], without switching.
pub(in crate::workflow) fn fork_session(
    project: &Project,
    turn: &str,
    name: &SessionName,
    user: &mut dyn User,
) -> anyhow::Result<CommitId> {
    let _lock = project.enter("branch", user)?;
    let from = project.store().turn(&project.session_of(turn)?, turn)?;
    if from.without_code {
        return Err(error_with_hint(
            format!(
                "the files of session `{}` were not pushed, so no turn can follow",
                from.session
            ),
            "`teddy push --code` on the other side sends them",
        ));
    }

    // `Expected::Absent` alone is not enough: moving an existing ref to its own value succeeds.
    anyhow::ensure!(
        refs::read(&project.repository, &name.reference())?.is_none(),
        StoreError::Taken(name.clone())
    );
    let log = format!("teddy: branch from {}", from.commit);
    let moved = refs::move_to(
        &project.repository,
        (&name.reference(), Expected::Absent),
        from.commit,
        &log,
    );

    moved.map_err(|error| match error {
        MoveError::Moved { .. } => anyhow::Error::from(StoreError::Taken(name.clone())),
        MoveError::Store(error) => error,
    })?;
    // A branch of a remote session counts as someone else's until it is adopted, because its
    // context does.
    if from.session.remote().is_none() {
        project.journal().record_tip(name, from.commit)?;
    }

    Ok(from.commit)
}

/// Makes another session the current one.
pub fn switch_session(project: &mut Project, name: &SessionName) -> anyhow::Result<()> {
    name.writable()?;
    project.store().tip(name)?;
    project.use_session(name)
}
