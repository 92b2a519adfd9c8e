//! The user's files between two recorded states: recorded, compared, brought from one to the other,
//! and put right after a crash.
//!
//! Knows sessions and turns, but neither plans nor models, and asks nobody: what the user should
//! hear of is a [`notice::FilesNotice`].

pub mod branch;
pub mod carry;
pub mod changed;
pub mod complete;
pub mod drift;
pub mod file_move;
pub mod fit;
mod intended;
pub mod kept;
pub mod landing;
pub mod marks;
pub mod missing;
pub mod notice;
pub mod recover;
pub mod snapshot;
pub mod stack;
pub mod transaction;
pub mod turn_files;
pub mod worktrees;

use std::path::PathBuf;

use crate::git::repository::Repository;
use crate::git::snapshot::limits::SnapshotLimits;
use crate::host::lock::{Lock, LockError, patience};
use crate::session::journal::Journal;
use crate::session::store::Store;

/// A checkout of the user's, with what decides how its files are recorded.
pub struct Checkout<'a> {
    /// The repository.
    pub repository: &'a Repository,
    /// What a snapshot leaves out.
    pub limits: SnapshotLimits,
    /// The folder that holds the worktrees of the repository's sessions.
    pub worktrees: PathBuf,
}

impl<'a> Checkout<'a> {
    /// Returns the sessions.
    pub fn store(&self) -> Store<'a> {
        Store {
            repository: self.repository,
        }
    }

    /// Returns the journal.
    pub fn journal(&self) -> Journal {
        Journal::new(&self.repository.teddy_dir())
    }

    /// Returns the private index of a checkout.
    pub fn index(&self, name: &str) -> PathBuf {
        self.repository.teddy_dir().join("index").join(name)
    }

    /// Takes the lock under which refs move and the user's files change.
    ///
    /// # Errors
    /// If another process holds it for too long.
    pub fn lock(&self, command: &str) -> Result<Lock, LockError> {
        Lock::take(&self.repository.teddy_dir(), command, patience())
    }

    /// Returns the file that is locked while a command runs in a session's worktree.
    pub fn commands_lock(&self, session: &str) -> PathBuf {
        // No session can have this name: git refuses refs that end like that.
        let locks = self.repository.teddy_dir().join("locks");
        locks.join(session).join("commands.lock")
    }
}
