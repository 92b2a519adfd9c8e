//! What a turn without a plan did: restored, picked or landed others, or recorded what somebody
//! else did.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::git::object::CommitId;
use crate::session::limited::{self, LimitedEntry};

/// Where a restore went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// The turn whose state the workspace has now.
    pub turn: u64,
    /// What asked for it.
    #[serde(default)]
    pub by: RestoreCommand,
    /// The turns that `redo` goes through, the next one last.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limited::list"
    )]
    pub redo: Vec<u64>,
    /// The turns that an undo took back or a redo did again, in this order.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limited::list"
    )]
    pub over: Vec<u64>,
}

/// A turn that was picked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picked {
    /// Its session.
    pub session: String,
    /// Its number.
    pub turn: u64,
    /// Its id.
    pub turn_id: Uuid,
    /// Its commit.
    pub commit: CommitId,
    /// Its title.
    pub title: String,
}

/// What TeDDy took no part in, as far as whoever recorded it says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Who did it: a program, an agent, a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The conversation in which an agent did it, by the agent's own id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The exit code of the program that did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// What landed, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landed {
    /// The short name of the branch.
    pub branch: String,
    /// The commits, oldest first.
    #[serde(deserialize_with = "limited::list")]
    pub commits: Vec<LandedCommit>,
}

/// A commit on a branch of the user's that has what turns did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandedCommit {
    /// The commit.
    pub commit: CommitId,
    /// The turns, oldest first.
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
    /// Its id, by which a turn is known in every session that has it.
    pub turn_id: Uuid,
}

/// What asked for a restore.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RestoreCommand {
    /// `teddy restore`: a step of its own, which can be undone.
    #[default]
    Restore,
    /// `teddy undo` or `teddy redo`: a move over the steps.
    Undo,
}
