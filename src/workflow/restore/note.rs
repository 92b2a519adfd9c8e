//! What a restore has to say besides the files that it changed; `ui` has the words.

use crate::git::object::CommitId;
use crate::workspace::drift::TurnName;
use crate::workspace::notice::FileObstacle;

/// Something that the user should hear of after a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreNote {
    /// The ref that would say which turns are in the files is gone.
    NoRecord,
    /// Something stood in the way of writing a file.
    Obstacle(FileObstacle),
    /// Turns that were taken out of the files are still on a branch.
    StillLanded(Vec<UndoneCommit>),
    /// These files are in the way of what was to be written, and no snapshot has them.
    NotInSnapshot(Vec<Vec<u8>>),
    /// These files are in the way of a directory on the paths that were named, and are not on them.
    OutsidePaths(Vec<Vec<u8>>),
    /// The plan with this title waited before and waits still.
    PlanWaits(String),
    /// Turns of other sessions went out of the files with those that were taken out.
    TakenFromOthers(Vec<TurnName>),
}

impl RestoreNote {
    /// Returns whether it says why nothing was changed, and what helps.
    pub fn explains_overlap(&self) -> bool {
        matches!(
            self,
            RestoreNote::NotInSnapshot(_) | RestoreNote::OutsidePaths(_)
        )
    }
}

/// A commit on a branch with turns that a restore took out of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneCommit {
    /// The commit.
    pub commit: CommitId,
    /// The numbers of these turns.
    pub turns: Vec<u64>,
    /// The branch.
    pub branch: String,
    /// Whether the user is on it.
    pub is_current: bool,
}
