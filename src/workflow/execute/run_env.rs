//! Describes the environment of a run.

use crate::git::object::{CommitId, TreeId};
use crate::session::artifact::Artifacts;
use crate::session::turn::Turn;

pub(in crate::workflow) struct RunEnv<'a> {
    /// Name of the worktree, usually that of the session.
    pub name: &'a str,
    pub tip: &'a Turn,
    pub before: CommitId,
    pub tree: TreeId,
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
    AsConfigured,
    /// For a replay: only recorded pages and searches, and no network for confined commands.
    Recorded(&'a Artifacts),
}
