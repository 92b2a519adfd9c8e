//! Revisions: what a person types to name a commit.

use super::During;
use super::object::{CommitId, TreeId};
use super::repository::Repository;

impl Repository {
    /// Returns the commit that an expression of `git rev-parse` names.
    ///
    /// # Errors
    /// Where it names nothing, or something that is no commit.
    pub fn rev_parse(&self, expression: &str) -> anyhow::Result<CommitId> {
        let id = self
            .gix
            .rev_parse_single(expression)
            .during(format_args!("`{expression}` names no commit"))?;
        let object = id.object().during(format_args!("reading `{expression}`"))?;
        let commit = object
            .peel_to_commit()
            .during(format_args!("`{expression}` is not a commit"))?;
        Ok(CommitId(commit.id))
    }

    /// Returns the commit that is so many first parents back.
    ///
    /// # Errors
    /// Where a commit cannot be read or has no parent.
    pub fn first_parent(&self, from: CommitId, back: u64) -> anyhow::Result<CommitId> {
        let mut id = from.0;
        for _ in 0..back {
            let commit = self
                .gix
                .find_commit(id)
                .during(format_args!("reading commit {id}"))?;
            let parent = commit.parent_ids().next().map(gix::Id::detach);
            id = parent.ok_or_else(|| anyhow::anyhow!("commit {id} has no parent"))?;
        }
        Ok(CommitId(id))
    }

    /// Returns the commit that HEAD points at, or nothing on an unborn branch.
    ///
    /// # Errors
    /// Where HEAD is damaged.
    pub fn head(&self) -> anyhow::Result<Option<CommitId>> {
        let head = self.gix.head().during("reading HEAD")?;
        Ok(head.id().map(|id| CommitId(id.detach())))
    }

    /// Returns the short name of the branch that HEAD is on, or nothing when it is detached.
    ///
    /// # Errors
    /// Where HEAD is damaged.
    pub fn branch(&self) -> anyhow::Result<Option<String>> {
        let name = self.gix.head_name().during("reading HEAD")?;
        Ok(name.map(|name| name.shorten().to_string()))
    }

    /// Returns what `git rev-parse --abbrev-ref HEAD` says: the branch, `HEAD` when it is detached.
    ///
    /// # Errors
    /// Where HEAD is damaged.
    pub fn branch_or_head(&self) -> anyhow::Result<String> {
        Ok(self.branch()?.unwrap_or_else(|| "HEAD".to_owned()))
    }

    /// Returns the tree of HEAD, or the empty tree on an unborn branch.
    ///
    /// # Errors
    /// Where HEAD is damaged.
    pub fn head_tree(&self) -> anyhow::Result<TreeId> {
        Ok(TreeId(
            self.gix
                .head_tree_id_or_empty()
                .during("reading HEAD")?
                .detach(),
        ))
    }

    /// Returns whether `ancestor` is `descendant` or reachable from it.
    ///
    /// # Errors
    /// Where a commit cannot be read.
    pub fn is_ancestor(&self, ancestor: CommitId, descendant: CommitId) -> anyhow::Result<bool> {
        if ancestor == descendant {
            return Ok(true);
        }
        let base = self
            .gix
            .merge_base(ancestor.0, descendant.0)
            .during("comparing commits")?;
        Ok(base.is_some_and(|base| base.detach() == ancestor.0))
    }
}
