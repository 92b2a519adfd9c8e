//! A session that this process may change: the first state of each turn.
//!
//! It holds the session's lock, so no other process changes the draft, the worktree, or the newest turn
//! until it is dropped. Crashed commands were recovered from before the session was read.

use anyhow::Context as _;

use crate::host::fault;
use crate::host::lock::Lock;
use crate::project::Project;
use crate::session::draft::Draft;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::workflow::user::{Event, Notice, User, telling};
use crate::workspace::draft_transfer::{self, TransferScope};
use crate::workspace::notice::Notify;
use crate::workspace::recover::{self, Depth};
use crate::workspace::set_aside::{self, PutBackResult};
use crate::workspace::snapshot::RecordedFiles;
use crate::workspace::transaction::Transaction;

pub struct OpenSession<'p> {
    pub project: &'p Project,
    pub tip: Turn,
    /// Of the next turn.
    pub draft: Draft,
    _lock: Lock,
}

impl<'p> OpenSession<'p> {
    /// `command` is shown to processes that wait for the lock.
    pub fn open(
        project: &'p Project,
        name: &SessionName,
        command: &str,
        user: &mut dyn User,
    ) -> anyhow::Result<OpenSession<'p>> {
        let lock = project.lock_session(name, command)?;
        project.recover(Depth::Tips, &mut telling(user))?;
        let (tip, draft) = project.in_progress(name)?;
        Ok(OpenSession {
            project,
            tip,
            draft,
            _lock: lock,
        })
    }

    /// Opens the session in use.
    pub fn current(
        project: &'p Project,
        command: &str,
        user: &mut dyn User,
    ) -> anyhow::Result<OpenSession<'p>> {
        OpenSession::open(project, &project.session()?, command, user)
    }

    pub fn name(&self) -> &SessionName {
        &self.tip.session
    }

    pub fn save_draft(&mut self) -> anyhow::Result<()> {
        self.project.store().save_draft(&self.tip, &mut self.draft)
    }

    /// Records the user's files, and those at `paths` even if git ignores them.
    pub fn record_files(
        &self,
        paths: &[Vec<u8>],
        user: &mut dyn User,
    ) -> anyhow::Result<RecordedFiles> {
        record_files(self.project, &self.tip, paths, user)
    }

    /// Reads the newest turn and its draft again after a turn was recorded.
    pub fn continued(self) -> anyhow::Result<OpenSession<'p>> {
        let (tip, draft) = self.project.in_progress(&self.tip.session)?;
        Ok(OpenSession { tip, draft, ..self })
    }
}

/// Locks the repository while it records. A race does this without the session's lock.
pub fn record_files(
    project: &Project,
    tip: &Turn,
    paths: &[Vec<u8>],
    user: &mut dyn User,
) -> anyhow::Result<RecordedFiles> {
    let transaction = project.enter("snapshot", user)?;
    transaction
        .record(&project.checkout(), tip, paths)
        .context("recording your files")
}

/// A session that gets a turn at once: the repository is locked too, and its draft is not read.
pub struct EnteredSession<'p> {
    pub project: &'p Project,
    pub tip: Turn,
    /// Dropped before the session's lock.
    pub transaction: Transaction,
    /// Of the session, if the repository is unlocked earlier.
    pub lock: Lock,
}

impl<'p> EnteredSession<'p> {
    pub fn enter(
        project: &'p Project,
        name: &SessionName,
        command: &str,
        user: &mut dyn User,
    ) -> anyhow::Result<EnteredSession<'p>> {
        let lock = project.lock_session(name, command)?;
        // Recovers.
        let transaction = project.enter(command, user)?;
        Ok(EnteredSession {
            project,
            tip: project.store().tip(name)?,
            transaction,
            lock,
        })
    }

    /// Carries the draft that waited over the turn that was recorded meanwhile.
    pub fn carry(&self, waiting: Option<Draft>, user: &mut dyn User) {
        let checkout = self.project.checkout();
        let scope = TransferScope::Whole;
        let carried =
            waiting.map(|draft| draft_transfer::transfer(&checkout, &self.tip, draft, scope));
        if let Some(Err(error)) = carried {
            user.report(Event::Notice(Notice::DraftNotKept(format!("{error:#}"))));
        }
    }
}

impl Project {
    /// Takes the repository lock and recovers.
    pub fn enter(&self, command: &str, user: &mut dyn User) -> anyhow::Result<Transaction> {
        Transaction::enter(&self.checkout(), command, &mut telling(user))
    }

    /// Under the repository lock. Returns whether there was anything to do.
    pub fn recover(&self, depth: Depth, notify: &mut Notify<'_>) -> anyhow::Result<bool> {
        let checkout = self.checkout();
        let lock = checkout.lock("recover")?;
        fault::point("after-lock")?;
        let recovered = recover::recover(&checkout, depth, notify)?;
        Ok(recovered | lock.holder_crashed)
    }

    /// Under the lock.
    pub fn put_back(&self) -> anyhow::Result<Vec<PutBackResult>> {
        let checkout = self.checkout();
        let _lock = checkout.lock("recover")?;
        set_aside::put_all_back(&checkout)
    }
}
