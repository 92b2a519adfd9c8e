//! What happened to the user's files and to our own state on the way, for the user to hear of.

use std::path::PathBuf;

use crate::git::object::CommitId;
use crate::git::publish::Published;
use crate::session::meta::NotCaptured;
use crate::session::name::SessionName;
use crate::workspace::drift::Drift;

/// Something that the user should hear of; `ui` has the words.
#[derive(Debug, Clone)]
pub enum FilesNotice {
    /// The files are not as the newest turn left them.
    Drifted {
        /// How far they are from it.
        drift: Box<Drift>,
        /// The number of the newest turn.
        turn: u64,
    },
    /// Snapshots take so many files along that git does not track.
    UntrackedCaptured(usize),
    /// These files are in no snapshot, and that was not told before.
    NotCaptured(Vec<NotCaptured>),
    /// A worktree that an earlier version had registered with git is taken over.
    WorktreeTakenOver(String),
    /// What a run that was cut short left in the worktree of this session is gone.
    LeftoversRemoved(String),
    /// A landing that was cut short is finished.
    LandingFinished {
        /// The branch.
        branch: String,
        /// Its newest commit.
        commit: CommitId,
    },
    /// Files of the user's changed while git committed, by a hook or by anyone else.
    ChangedDuringCommit {
        /// The files.
        paths: Vec<Vec<u8>>,
        /// The commit that has them as they were.
        source: CommitId,
    },
    /// A pack whose bytes a power cut took was put aside.
    TornPackMoved(String),
    /// So many objects whose content was lost were put aside.
    DamagedObjectsMoved(usize),
    /// A lock of this ref that a crash left was removed.
    StaleLockRemoved(String),
    /// Some of what this ref reaches is lost, and no earlier state of it is complete.
    ReferenceIncomplete(String),
    /// A damaged ref was repaired.
    ReferenceRepaired {
        /// Its name.
        name: String,
        /// What it is now.
        repair: ReferenceRepair,
    },
    /// The journal was damaged and is now here.
    JournalDamaged(PathBuf),
    /// What was left to do could not be done and is noted here.
    PendingPutAside(PathBuf),
    /// A turn cannot be applied to a checkout that is gone.
    CheckoutGone {
        /// Where it was.
        path: PathBuf,
        /// The turn's session.
        session: SessionName,
    },
    /// Objects of an interrupted turn of this session are gone.
    ObjectsGone(SessionName),
    /// An interrupted turn is finished.
    TurnFinished {
        /// Its session.
        session: SessionName,
        /// How many files were written or deleted.
        files: usize,
    },
    /// This file was changed meanwhile and is left as it is.
    ChangedMeanwhile(Vec<u8>),
    /// Something stood in the way of writing a file.
    Obstacle(FileObstacle),
}

/// Whoever passes notices on to the user.
pub type Tell<'a> = dyn FnMut(FilesNotice) + 'a;

/// What a damaged ref became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceRepair {
    /// It is gone: no commit of it is left.
    Removed,
    /// It names the commit of an earlier turn.
    Turn {
        /// The turn's number.
        number: u64,
        /// Its commit.
        commit: CommitId,
    },
    /// It names this commit.
    Commit(CommitId),
}

/// What stood in the way of writing a file, other than an overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileObstacle {
    /// Another program has it open for writing.
    Busy(Vec<u8>),
    /// It or its directory is read-only.
    ReadOnly(Vec<u8>),
    /// The system refused; why.
    Failed(String),
    /// Somebody saved to it at the same moment.
    SavedMeanwhile {
        /// The file.
        path: Vec<u8>,
        /// Where the bytes are that were saved.
        kept: PathBuf,
    },
}

/// Returns what stood in the way of a publication, other than an overlap.
pub fn obstacles(published: &Published) -> Vec<FileObstacle> {
    let busy = published.busy.iter().cloned().map(FileObstacle::Busy);
    let closed = published.closed.iter().cloned().map(FileObstacle::ReadOnly);
    let failed = published.failed.iter().cloned().map(FileObstacle::Failed);
    let rescued = published
        .rescued
        .iter()
        .map(|rescued| FileObstacle::SavedMeanwhile {
            path: rescued.path.clone(),
            kept: rescued.kept.clone(),
        });

    busy.chain(closed).chain(failed).chain(rescued).collect()
}
