//! Metadata of turns without a plan: restores, picks, landings and recorded work.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::git::object::CommitId;
use crate::session::limited::{self, LimitedEntry};

/// The target of a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// The turn that the workspace was restored to.
    pub turn: u64,
    /// The command.
    #[serde(default)]
    pub by: RestoreCommand,
    /// The turns that `redo` would step through, next one last.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limited::list"
    )]
    pub redo: Vec<u64>,
    /// The turns that this undo or redo crossed, in order.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limited::list"
    )]
    pub over: Vec<u64>,
}

/// The source of a pick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picked {
    /// Name of its session.
    pub session: String,
    /// Number of the turn.
    pub turn: u64,
    /// Id of the turn.
    pub turn_id: Uuid,
    /// Commit of the turn.
    pub commit: CommitId,
    /// Title of the turn.
    pub title: String,
}

/// Work that was done without TeDDy, as reported by the caller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Author: a program, an agent or a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The agent's own conversation id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Exit code of the program that did the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// A landing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landed {
    /// Short name of the branch.
    pub branch: String,
    /// The new commits, oldest first.
    #[serde(deserialize_with = "limited::list")]
    pub commits: Vec<LandedCommit>,
}

/// A commit on one of the user's branches that contains turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandedCommit {
    /// Its id.
    pub commit: CommitId,
    /// The turns in it, oldest first.
    #[serde(deserialize_with = "limited::list")]
    pub turns: Vec<LandedTurn>,
}

impl LimitedEntry for LandedCommit {
    fn text_bytes(&self) -> usize {
        self.turns.len() * size_of::<LandedTurn>()
    }
}

impl LimitedEntry for LandedTurn {
    fn text_bytes(&self) -> usize {
        0
    }
}

/// A turn that landed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandedTurn {
    /// Its number.
    pub number: u64,
    /// Its id, which is the same in every fork of the session.
    pub turn_id: Uuid,
}

/// The command of a restore.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RestoreCommand {
    /// `teddy restore`: recorded as a new step, which can be undone.
    #[default]
    Restore,
    /// `teddy undo` or `teddy redo`: a move along the recorded steps.
    Undo,
}
