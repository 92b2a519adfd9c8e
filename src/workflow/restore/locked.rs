//! The session in use while an undo or a redo works in it.

use anyhow::Context as _;

use crate::host::lock::Lock;
use crate::session::store::back::TurnsBack;
use crate::session::turn::Turn;
use crate::workflow::project::Project;
use crate::workflow::user::User;
use crate::workspace::stack::Stacks;
use crate::workspace::transaction::Transaction;

/// The current session, locked against turns of other processes.
pub(super) struct LockedSession<'a> {
    /// The project.
    pub(super) project: &'a Project,
    /// The newest turn.
    pub(super) tip: Turn,
    /// The turns from there back.
    pub(super) turns: TurnsBack<'a>,
    /// The newest turn that is in the user's files.
    pub(super) newest: Turn,
    /// What is in the files.
    pub(super) stacks: Stacks<'a>,
    /// What moves refs and files; ended before the session's lock is given back.
    pub(super) transaction: Transaction,
    /// The session's lock.
    _session: Lock,
}

impl<'a> LockedSession<'a> {
    /// Locks the session in use, and finishes what a crash interrupted.
    pub(super) fn enter(
        project: &'a Project,
        command: &str,
        user: &mut dyn User,
    ) -> anyhow::Result<LockedSession<'a>> {
        let session = project.session()?;
        let session_lock = project.lock_session(&session, command)?;
        let transaction = project.enter(command, user)?;
        let tip = project.store().tip(&session)?;
        Ok(LockedSession {
            project,
            newest: newest_applied(&project.store().back_from(tip.clone()), tip.number())?,
            stacks: Stacks::new(&project.repository),
            turns: project.store().back_from(tip.clone()),
            tip,
            transaction,
            _session: session_lock,
        })
    }
}

/// Returns the turn with a number, or the newest one before it that is not a restore which never reached
/// the user's files: such a restore leaves the session where it was.
pub(super) fn newest_applied(turns: &TurnsBack<'_>, mut number: u64) -> anyhow::Result<Turn> {
    loop {
        let turn = turns.turn(number)?;
        let workspace = turn.meta.workspace.as_ref();
        let is_synced = workspace.is_none_or(|workspace| workspace.synced);
        if turn.meta.restored.is_none() || is_synced {
            return Ok(turn);
        }
        number = number
            .checked_sub(1)
            .context("a session begins with no restore")?;
    }
}
