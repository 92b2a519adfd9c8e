//! Where a plan runs, and what is in its reach.

use crate::git::object::{CommitId, TreeId};
use crate::session::artifact::Artifacts;
use crate::session::turn::Turn;

/// Where a plan runs.
pub(in crate::workflow) struct RunEnv<'a> {
    /// The name of the worktree: mostly the session's.
    pub name: &'a str,
    /// The turn before.
    pub tip: &'a Turn,
    /// The files at the start, as a commit.
    pub before: CommitId,
    /// Their tree.
    pub tree: TreeId,
    /// What is in reach.
    pub reach: Reach<'a>,
    /// Whether these are the user's own files as they lie there.
    pub users_own: bool,
    /// The artifacts of the plan's turn, whose bytes TAKE takes.
    pub artifacts: &'a Artifacts,
}

/// What is in reach of a plan besides the files.
#[derive(Clone, Copy)]
pub(in crate::workflow) enum Reach<'a> {
    /// What the settings allow.
    AsConfigured,
    /// The pages and searches that a turn has recorded, and no network for commands that can be
    /// confined.
    Recorded(&'a Artifacts),
}
