//! Grants the right to move refs and to change the user's files: the lock is held and recovery has
//! run.

use crate::host::fault;
use crate::host::lock::Lock;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::workspace::complete::{self, Completed, SessionMove};
use crate::workspace::fit::FileMove;
use crate::workspace::landing::{self, LandingNote, MadeCommit, Recording};
use crate::workspace::notice::Notify;
use crate::workspace::snapshot::{self, RecordedFiles};
use crate::workspace::{Checkout, recover};

/// The repository lock, after recovery. Functions that need both are methods of it.
#[must_use = "the lock is given back at once"]
pub struct Transaction {
    _lock: Lock,
}

impl Transaction {
    /// Takes the lock and recovers.
    pub fn enter(
        checkout: &Checkout<'_>,
        command: &str,
        notify: &mut Notify<'_>,
    ) -> anyhow::Result<Transaction> {
        // Reads the index in the background during the wait for the lock.
        snapshot::expect(checkout);
        let lock = checkout.lock(command)?;
        fault::point("after-lock")?;
        recover::recover(checkout, notify)?;
        Ok(Transaction { _lock: lock })
    }

    /// Records the user's files as a workspace commit and makes it reachable.
    pub fn record(
        &self,
        checkout: &Checkout<'_>,
        tip: &Turn,
        force: &[Vec<u8>],
    ) -> anyhow::Result<RecordedFiles> {
        snapshot::record(checkout, tip, force)
    }

    /// Moves a session's ref to a written turn and updates the user's files.
    pub fn complete(
        &self,
        checkout: &Checkout<'_>,
        session: &SessionName,
        turn: &SessionMove,
        files: Option<&FileMove>,
    ) -> anyhow::Result<Completed> {
        complete::complete(checkout, session, turn, files)
    }

    /// Records commits that git made for a landing as a turn.
    pub fn record_landing(
        &self,
        checkout: &Checkout<'_>,
        landing: &LandingNote,
        commits: &[MadeCommit],
    ) -> anyhow::Result<Recording> {
        landing::record_landing(checkout, landing, commits)
    }
}
