//! Proof that the lock is held and recovery has run, which moving refs and changing the user's
//! files require.
//!
//! Held for milliseconds: commands of a plan run under the session's lock only
//! (docs/decisions/0010-locks-and-crashes.md).

use crate::host::fault;
use crate::host::lock::Lock;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::workspace::Checkout;
use crate::workspace::complete::{self, Completed, SessionMove};
use crate::workspace::file_move::FileMove;
use crate::workspace::landing::{self, LandingNote, MadeCommit, Recording};
use crate::workspace::notice::Notify;
use crate::workspace::recover::{self, Depth};
use crate::workspace::snapshot::{self, RecordedFiles};

#[must_use = "the lock is given back at once"]
pub struct Transaction {
    _lock: Lock,
}

impl Transaction {
    pub fn enter(
        checkout: &Checkout<'_>,
        command: &str,
        notify: &mut Notify<'_>,
    ) -> anyhow::Result<Transaction> {
        let lock = checkout.lock(command)?;
        fault::point("after-lock")?;
        recover::recover(checkout, Depth::Tips, notify)?;
        Ok(Transaction { _lock: lock })
    }

    /// Makes the user's files reachable as a workspace commit.
    pub fn record(
        &self,
        checkout: &Checkout<'_>,
        tip: &Turn,
        force: &[Vec<u8>],
    ) -> anyhow::Result<RecordedFiles> {
        snapshot::record(checkout, tip, force)
    }

    pub fn complete(
        &self,
        checkout: &Checkout<'_>,
        session: &SessionName,
        turn: &SessionMove,
        files: Option<&FileMove>,
    ) -> anyhow::Result<Completed> {
        complete::complete(checkout, session, turn, files)
    }

    pub fn record_landing(
        &self,
        checkout: &Checkout<'_>,
        landing: &LandingNote,
        commits: &[MadeCommit],
    ) -> anyhow::Result<Recording> {
        landing::record_landing(checkout, landing, commits)
    }
}
