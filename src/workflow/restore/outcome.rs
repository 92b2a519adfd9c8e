//! Notes of a restore besides its changed files; `ui` formats them.

use crate::git::object::CommitId;
use crate::workspace::drift::TurnName;
use crate::workspace::notice::FileObstacle;

/// A note for the user after a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreNote {
    /// The ref with the applied turns is missing.
    NoRecord,
    /// A file could not be written because its path is occupied.
    Obstacle(FileObstacle),
    /// Reverted turns are still on a branch.
    StillLanded(Vec<UndoneCommit>),
    /// Files outside of snapshots occupy paths that were to be written.
    NotInSnapshot(Vec<Vec<u8>>),
    /// Files outside of the requested paths occupy the path of a directory.
    OutsidePaths(Vec<Vec<u8>>),
    /// The plan with this title still waits.
    PlanWaits(String),
    /// Turns of other sessions were reverted together with these.
    TakenFromOthers(Vec<TurnName>),
}

impl RestoreNote {
    /// Returns whether the note explains why nothing changed.
    pub fn explains_overlap(&self) -> bool {
        matches!(
            self,
            RestoreNote::NotInSnapshot(_) | RestoreNote::OutsidePaths(_)
        )
    }
}

/// A commit on a branch with reverted turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneCommit {
    pub commit: CommitId,
    pub turns: Vec<u64>,
    pub branch: String,
    /// Whether it is checked out.
    pub is_current: bool,
}
