//! Describes the environment of a run.

use crate::git::object::{CommitId, TreeId};
use crate::session::artifact::Artifacts;
use crate::session::turn::Turn;

/// Environment of a run.
pub(in crate::workflow) struct RunEnv<'a> {
    /// Name of the worktree, usually that of the session.
    pub name: &'a str,
    /// The previous turn.
    pub tip: &'a Turn,
    /// Commit with the files at the start.
    pub before: CommitId,
    /// Its tree.
    pub tree: TreeId,
    /// External resources.
    pub reach: Reach<'a>,
    /// The files at the start are the user's current files, so commands can see them through an
    /// overlay.
    pub users_own: bool,
    /// Artifacts of the plan's turn, from which TAKE reads.
    pub artifacts: &'a Artifacts,
}

/// External resources that a plan can use.
#[derive(Clone, Copy)]
pub(in crate::workflow) enum Reach<'a> {
    /// As the settings say.
    AsConfigured,
    /// For a replay: only recorded pages and searches, and no network for confined commands.
    Recorded(&'a Artifacts),
}
