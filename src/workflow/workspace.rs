//! The user's files as commits: what they are before a turn, on which commit that stands, and how
//! a turn's result becomes the next one.

use crate::git::object::{CommitId, NewCommit, TreeId};
use crate::git::reference::Expected;
use crate::git::snapshot::Snapshot;
use crate::host::clock;
use crate::session::meta::NotCaptured;
use crate::session::turn::Turn;
use crate::workflow::project::Project;

/// The user's files, recorded.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The workspace commit, reachable from a ref.
    pub commit: CommitId,
    /// Its tree.
    pub tree: TreeId,
    /// What the snapshot does not have.
    pub not_captured: Vec<NotCaptured>,
}

/// Returns what a snapshot does not have.
pub fn not_captured(snapshot: &Snapshot) -> Vec<NotCaptured> {
    snapshot.left_out.iter().map(|left| NotCaptured { path: left.path.clone(), reason: left.reason.to_string() }).collect()
}

impl Project {
    /// Takes a snapshot of the user's files.
    ///
    /// # Errors
    /// Where a file changes all the time or the repository cannot be written.
    pub fn snapshot(&self, force: &[Vec<u8>]) -> anyhow::Result<Snapshot> {
        let name = self.repository.worktree_name();
        self.repository.snapshot(&self.index(&name), &self.limits(), force)
    }

    /// Records the user's files as a workspace commit and makes it reachable.
    ///
    /// # Errors
    /// As for [`Project::snapshot`].
    pub fn record(&self, tip: &Turn, force: &[Vec<u8>]) -> anyhow::Result<Recorded> {
        let snapshot = self.snapshot(force)?;
        let commit = self.place(snapshot.tree, tip)?;
        self.keep(commit)?;
        Ok(Recorded { commit, tree: snapshot.tree, not_captured: not_captured(&snapshot) })
    }

    /// Returns a commit with this tree: HEAD, the newest workspace commit, or a new one on them.
    fn place(&self, tree: TreeId, tip: &Turn) -> anyhow::Result<CommitId> {
        let repository = &self.repository;
        let (head, last) = (repository.head()?, tip.workspace);
        for known in [head, last].into_iter().flatten() {
            if repository.commit(known)?.tree == tree {
                return Ok(known);
            }
        }
        let parents = match (head, last) {
            (Some(head), Some(last)) if repository.is_ancestor(head, last)? => vec![last],
            (head, last) => head.into_iter().chain(last).collect(),
        };
        let message = format!("Workspace before turn {} of {}\n", tip.number() + 1, tip.session);
        repository.write_commit(&NewCommit { tree, parents: &parents, message: &message, time: &clock::now() })
    }

    /// Keeps a workspace commit reachable, so that nothing that is overwritten after it is lost.
    ///
    /// # Errors
    /// Where the ref cannot be written.
    pub fn keep(&self, commit: CommitId) -> anyhow::Result<()> {
        let name = format!("refs/teddy/snapshots/{}", self.repository.worktree_name());
        if self.repository.reference(&name)? == Some(commit) {
            return Ok(());
        }
        Ok(self.repository.move_reference(&name, Expected::Any, commit, "teddy: snapshot")?)
    }

    /// Returns the workspace commit that holds a turn's result: `base` itself where nothing changed.
    ///
    /// # Errors
    /// Where the repository cannot be written.
    pub fn advance(&self, base: CommitId, tree: TreeId, message: &str) -> anyhow::Result<CommitId> {
        if self.repository.commit(base)?.tree == tree {
            return Ok(base);
        }
        self.repository.write_commit(&NewCommit { tree, parents: &[base], message, time: &clock::now() })
    }
}
