//! What a restore changed, and notes besides; `ui` formats them.

use serde::Serialize;

use crate::git::object::CommitId;
use crate::git::publish::Published;
use crate::session::meta::RestoreCommand;
use crate::text::path::lossy_paths;
use crate::workspace::drift::{MissingChange, TurnName};
use crate::workspace::notice::FileObstacle;

#[derive(Debug, Clone, Default, Serialize)]
pub struct RestoreResult {
    pub turn: u64,
    /// Records the restore. `None` after a dry run or a conflict, and if nothing had to change.
    pub commit: Option<CommitId>,
    /// Reverted or applied by an undo or redo.
    pub over: Vec<u64>,
    pub passed_over: Vec<PassedOver>,
    /// Exactly the turns are applied that were applied after the target.
    pub same_turns: bool,
    pub written: Vec<String>,
    pub deleted: Vec<String>,
    /// With edits of the user's that were kept.
    pub kept: Vec<String>,
    /// Kept files that lack something of a turn.
    pub missing: Vec<MissingChange>,
    /// The turn of the same session whose files have what is missing.
    #[serde(skip)]
    pub compared: u64,
    /// Written with conflict markers.
    pub conflicts: Vec<String>,
    /// Conflicting files, unchanged; once the turn is recorded, files that could not be written.
    pub overlaps: Vec<String>,
    /// The user's side of a conflict was kept, so turns are reverted or applied only in part.
    #[serde(skip)]
    pub is_partial: bool,
    #[serde(skip)]
    pub notes: Vec<RestoreNote>,
    /// Outside of snapshots, unchanged.
    pub not_captured: Vec<String>,
}

impl RestoreResult {
    /// Some files could not be written: reports what really changed.
    pub(super) fn add_unapplied(&mut self, published: &Published) {
        self.overlaps = lossy_paths(&published.conflict_paths());
        self.written = lossy_paths(&published.written);
        self.deleted = lossy_paths(&published.deleted);
        self.conflicts.retain(|path| self.written.contains(path));
        self.kept.clear();
        self.missing.clear();
        self.same_turns = false;
        if !self.is_applied() {
            self.over.clear();
        }
    }

    pub fn is_applied(&self) -> bool {
        !(self.written.is_empty() && self.deleted.is_empty())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreNote {
    /// The ref with the applied turns is missing.
    NoRecord,
    /// Occupied path, or another reason why a file could not be written.
    Obstacle(FileObstacle),
    /// Reverted turns are still on a branch.
    StillLanded(RestoreCommand, Vec<UndoneCommit>),
    /// The same, if a dry run were carried out.
    WouldStayLanded(Vec<UndoneCommit>),
    /// Files outside of snapshots occupy paths that were to be written.
    NotInSnapshot(Vec<Vec<u8>>),
    /// Files outside of the requested paths occupy the path of a directory.
    OutsidePaths(Vec<Vec<u8>>),
    /// Title.
    PlanWaits(String),
    /// Title.
    ForeignPlanDropped(String),
    /// Reverted together with the session's own turns.
    TakenFromOthers(Vec<TurnName>),
    /// The same, of sessions that do not exist here.
    TakenFromDeleted(Vec<TurnName>),
    /// The same, if a dry run were carried out.
    WouldTakeFromOthers(Vec<TurnName>),
}

impl RestoreNote {
    /// Explains why nothing changed.
    pub fn explains_overlap(&self) -> bool {
        matches!(
            self,
            RestoreNote::NotInSnapshot(_) | RestoreNote::OutsidePaths(_)
        )
    }
}

/// On a branch, with reverted turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneCommit {
    pub commit: CommitId,
    pub turns: Vec<u64>,
    pub branch: String,
    pub is_current: bool,
}

/// The files have nothing of the turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PassedOver {
    pub turn: u64,
    pub why: WhyPassedOver,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhyPassedOver {
    Unchanged,
    /// Only committed what other turns did.
    Landed,
    /// Conflicted with the user's edits and was not applied.
    NotBrought,
    /// Reverted by a turn of another session.
    TakenBack,
}
