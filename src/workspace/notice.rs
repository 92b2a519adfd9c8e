//! Events that concern the user's files and TeDDy's own state, for `ui` to show.

use std::path::PathBuf;

use crate::git::object::CommitId;
use crate::git::publish::{Conflict, Published};
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
    ChangedMeanwhile(Vec<u8>),
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

/// Why a file was not written, other than a merge conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileObstacle {
    /// A process has it open for writing.
    Busy(Vec<u8>),
    /// It or its directory is read-only.
    ReadOnly(Vec<u8>),
    /// It has bytes that git does not store, and the change does not fit them.
    Unfit(Vec<u8>),
    /// Another file's name differs in case only, and git ignores case.
    CaseCollision(Vec<u8>),
    /// It is a nested repository or in one.
    Repository(Vec<u8>),
    /// The new version could not be made.
    Failed { path: Vec<u8>, why: String },
    /// Another process wrote to it during the update.
    SavedMeanwhile {
        path: Vec<u8>,
        /// Where the bytes of that process were rescued to.
        saved_copy: PathBuf,
    },
}

impl FileObstacle {
    /// The file that was not written. `None` if it was.
    pub fn path(&self) -> Option<&[u8]> {
        match self {
            FileObstacle::Busy(path)
            | FileObstacle::ReadOnly(path)
            | FileObstacle::Unfit(path)
            | FileObstacle::CaseCollision(path)
            | FileObstacle::Repository(path)
            | FileObstacle::Failed { path, .. } => Some(path),
            FileObstacle::SavedMeanwhile { .. } => None,
        }
    }
}

/// The obstacles of a publication, other than merge conflicts, sorted by kind.
pub fn obstacles(published: &Published) -> Vec<FileObstacle> {
    let mut conflicts: Vec<_> = published.conflicts.iter().collect();
    conflicts.sort_by_key(|(_, conflict)| *conflict);
    let conflicts = conflicts.into_iter().filter_map(|(path, conflict)| {
        let path = path.clone();
        Some(match conflict {
            Conflict::Changed => return None,
            Conflict::Busy => FileObstacle::Busy(path),
            Conflict::Unwritable => FileObstacle::ReadOnly(path),
            Conflict::Unfit => FileObstacle::Unfit(path),
            Conflict::CaseCollision => FileObstacle::CaseCollision(path),
            Conflict::Repository => FileObstacle::Repository(path),
            Conflict::Failed(why) => FileObstacle::Failed {
                path,
                why: why.clone(),
            },
        })
    });
    let rescued = published
        .salvaged
        .iter()
        .map(|rescued| FileObstacle::SavedMeanwhile {
            path: rescued.path.clone(),
            saved_copy: rescued.saved_as.clone(),
        });
    conflicts.chain(rescued).collect()
}
