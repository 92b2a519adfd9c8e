//! Running an approved plan in a worktree: actions in order, each with an outcome.

use std::time::Duration;

use crate::text::edit::Place;
use crate::text::path::RepoPath;
use crate::text::resource::Resource;

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// It did what it says.
    Success,
    /// It did not.
    Failure,
    /// It was not tried: switched off by the user, or an action before it failed.
    Skipped,
}

/// The result of one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// One sentence, lower case, without a full stop.
    pub detail: String,
    /// How long it took.
    pub duration: Duration,
    /// EXECUTE: the exit code; 124 after the time limit, 128 + n after signal n.
    pub exit_code: Option<i32>,
    /// EXECUTE and RESEARCH: what came out, whole up to the capture limit.
    pub output: Vec<u8>,
    /// EXECUTE: bytes that were produced beyond the capture limit.
    pub lost_output: u64,
    /// EDIT: where each pair applied.
    pub places: Vec<Place>,
    /// The files that it wrote itself; they are in the snapshot even where an ignore rule covers them.
    pub written: Vec<RepoPath>,
    /// What it does to the next turn.
    pub effect: Option<Effect>,
}

/// What an action does to the next turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// READ: the resource joins the context.
    Add(Resource),
    /// PRUNE: the resource leaves it.
    Remove(Resource),
    /// INVOKE.
    Invoke {
        /// The agent's name.
        agent: String,
        /// Its whole context.
        resources: Vec<Resource>,
        /// What it is told.
        message: String,
    },
    /// CONCLUDE.
    Conclude {
        /// What the caller gets besides its own context.
        resources: Vec<Resource>,
        /// What it is told.
        message: String,
    },
    /// CHAT_WITH_USER: waits for the user's answer.
    Chat {
        /// The Markdown.
        message: String,
    },
}
