//! Events that concern the user's files and TeDDy's own state, for `ui` to show.

use std::path::PathBuf;

use crate::git::object::CommitId;
use crate::git::publish::{Conflict, Published, Salvaged};
use crate::session::meta::NotCaptured;
use crate::session::name::SessionName;
use crate::workspace::drift::Drift;

/// An event to show to the user. The wording is in `ui`.
#[derive(Debug, Clone)]
pub enum FilesNotice {
    Drifted {
        drift: Box<Drift>,
        turn: u64,
    },
    /// Snapshots include this many files that git does not track.
    UntrackedCaptured(usize),
    /// Snapshots leave these files out; not reported before.
    NotCaptured(Vec<NotCaptured>),
    /// Leftovers of an interrupted run were removed from the worktree of this session.
    LeftoversRemoved(String),
    /// The session whose worktree git no longer lists.
    WorktreeUnlisted(String),
    LandingFinished {
        /// The branch, without `refs/heads/`.
        branch: String,
        commit: CommitId,
    },
    /// A hook or another process changed files of the user's while git committed.
    ChangedDuringCommit {
        paths: Vec<Vec<u8>>,
        /// The commit that has them as they were.
        source: CommitId,
    },
    /// A pack that a power cut damaged was quarantined.
    TornPackMoved(String),
    /// Its index was damaged.
    PackIndexed(String),
    /// This many objects without content were quarantined.
    DamagedObjectsMoved(usize),
    /// A lock file of this ref, left by a crash, was removed.
    StaleLockRemoved(String),
    /// Objects that this ref reaches are lost, and no earlier state of it is complete.
    ReferenceIncomplete(String),
    /// A damaged ref was repaired.
    ReferenceRepaired {
        name: String,
        repair: ReferenceRepair,
    },
    /// The journal was damaged and moved to this path.
    JournalDamaged(PathBuf),
    /// The pending operation cannot be completed and was saved at this path.
    PendingPutAside(PathBuf),
    /// A turn cannot be applied, because its checkout no longer exists.
    CheckoutGone {
        path: PathBuf,
        session: SessionName,
    },
    /// Objects of an interrupted turn of this session are lost.
    ObjectsGone(SessionName),
    /// An interrupted turn was completed.
    TurnFinished {
        session: SessionName,
        files: usize,
    },
    Obstacle(FileObstacle),
}

/// Receives notices, usually to show them.
pub type Notify<'a> = dyn FnMut(FilesNotice) + 'a;

/// New state of a repaired ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceRepair {
    /// Deleted: none of its commits is left.
    Removed,
    /// Points at the commit of an earlier turn.
    Turn { number: u64, commit: CommitId },
    /// Points at this commit, which is not a turn.
    Commit(CommitId),
}

/// A file that was not simply written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileObstacle {
    NotWritten {
        path: Vec<u8>,
        conflict: Conflict,
    },
    /// Another process wrote to it during the update.
    SavedMeanwhile(Salvaged),
}

impl FileObstacle {
    /// The file that was not written. `None` if it was.
    pub fn path(&self) -> Option<&[u8]> {
        match self {
            FileObstacle::NotWritten { path, .. } => Some(path),
            FileObstacle::SavedMeanwhile(_) => None,
        }
    }
}

/// The obstacles of a publication, other than merge conflicts, sorted by kind.
pub fn obstacles(published: &Published) -> Vec<FileObstacle> {
    let conflicts = published.conflicts.iter();
    let mut conflicts: Vec<_> = conflicts
        .filter(|(_, conflict)| **conflict != Conflict::Changed)
        .collect();
    conflicts.sort_by_key(|(_, conflict)| *conflict);
    let blocked = conflicts
        .into_iter()
        .map(|(path, conflict)| FileObstacle::NotWritten {
            path: path.clone(),
            conflict: conflict.clone(),
        });
    let saved = published.salvaged.iter().cloned();
    blocked
        .chain(saved.map(FileObstacle::SavedMeanwhile))
        .collect()
}
