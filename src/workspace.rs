//! The user's files between two recorded states: snapshots, comparison, update, crash recovery.
//!
//! Knows sessions and turns, but neither plans nor models. Never prompts: events for the user are
//! [`notice::FilesNotice`] values. Functions that move refs or write files need the lock, which
//! [`transaction::Transaction`] holds.

pub mod changed;
pub mod complete;
pub mod draft_transfer;
pub mod drift;
pub mod files_turn;
pub mod fit;
pub mod forced_files;
pub mod landing;
pub mod notice;
pub mod ownership;
pub mod recover;
pub mod set_aside;
pub mod snapshot;
pub mod stack;
pub mod transaction;

use std::path::PathBuf;

use crate::git::repository::Repository;
use crate::git::snapshot::limits::SnapshotLimits;
use crate::host::lock::{Lock, LockError, patience};
use crate::session::journal::Journal;
use crate::session::store::Store;

/// A checkout of the user's, with the rules for its snapshots.
pub struct Checkout<'a> {
    pub repository: &'a Repository,
    pub limits: SnapshotLimits,
    /// Parent directory of the session worktrees.
    pub worktrees: PathBuf,
}

impl<'a> Checkout<'a> {
    pub fn store(&self) -> Store<'a> {
        Store {
            repository: self.repository,
        }
    }

    pub fn journal(&self) -> Journal {
        Journal::new(&self.repository.teddy_dir())
    }

    /// Path of a private index of ours, by name.
    pub fn index(&self, name: &str) -> PathBuf {
        self.repository.teddy_dir().join("index").join(name)
    }

    /// Takes the lock under which refs move and the user's files change.
    pub fn lock(&self, command: &str) -> Result<Lock, LockError> {
        Lock::take(&self.repository.teddy_dir(), command, patience())
    }

    /// The file that is locked while a plan's command runs in the worktree of a session.
    pub fn commands_lock(&self, session: &str) -> PathBuf {
        // `.lock` cannot collide with a session: git refuses ref names with that suffix.
        let locks = self.repository.teddy_dir().join("locks");
        locks.join(session).join("commands.lock")
    }
}
