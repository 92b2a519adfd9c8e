//! Ancestry of commits.

use std::collections::{BinaryHeap, HashSet};

use super::During;
use super::refs;
use super::repository::Repository;
use crate::git::object::CommitId;
use crate::git::object::absent;

/// Returns the `back`-th first parent of a commit.
pub fn first_parent(
    repository: &Repository,
    from: CommitId,
    back: u64,
) -> anyhow::Result<CommitId> {
    let mut id = from.0;
    for _ in 0..back {
        let commit = absent::find(|| repository.gix.find_commit(id))
            .during(format_args!("reading commit {id}"))?;
        let parent = commit.parent_ids().next().map(gix::Id::detach);
        id = parent.ok_or_else(|| anyhow::anyhow!("commit {id} has no parent"))?;
    }

    Ok(CommitId(id))
}

/// Returns the best common ancestor of two commits; `None` if there is none.
pub fn merge_base(
    repository: &Repository,
    one: CommitId,
    other: CommitId,
) -> anyhow::Result<Option<CommitId>> {
    let base = repository.gix.merge_base(one.0, other.0);
    Ok(base
        .during("comparing commits")?
        .map(|base| CommitId(base.detach())))
}

/// Returns whether a branch, given by its short name, contains a commit. `false` if either cannot
/// be read.
pub fn is_on_branch(repository: &Repository, commit: CommitId, branch: &str) -> bool {
    let tip = match branch {
        "HEAD" => refs::resolve(repository, "HEAD"),
        name => refs::resolve(repository, &format!("refs/heads/{name}")),
    };
    tip.is_ok_and(|tip| is_ancestor(repository, commit, tip).unwrap_or(false))
}

/// Returns the newest commit whose message matches, among the `limit` newest of a branch.
pub fn find_commit_by_message(
    repository: &Repository,
    branch: &str,
    limit: usize,
    is_it: &dyn Fn(&str) -> bool,
) -> anyhow::Result<Option<CommitId>> {
    let Some(tip) = refs::read(repository, &format!("refs/heads/{branch}"))? else {
        return Ok(None);
    };
    let (mut waiting, mut visited) = (BinaryHeap::new(), HashSet::new());
    waiting.push((i64::MAX, tip.to_string(), tip));
    while let Some((.., id)) = waiting.pop() {
        if !visited.insert(id) || visited.len() > limit {
            continue;
        }
        // A shallow clone has commits without their parents.
        let Ok(commit) = repository.commit(id) else {
            continue;
        };
        if is_it(&commit.message) {
            return Ok(Some(id));
        }
        for parent in commit.parents {
            let seconds = repository
                .commit(parent)
                .map_or(i64::MIN, |commit| commit.seconds);
            waiting.push((seconds, parent.to_string(), parent));
        }
    }
    Ok(None)
}

/// Returns whether `ancestor` is `descendant` or reachable from it.
pub fn is_ancestor(
    repository: &Repository,
    ancestor: CommitId,
    descendant: CommitId,
) -> anyhow::Result<bool> {
    if ancestor == descendant {
        return Ok(true);
    }

    let base = repository
        .gix
        .merge_base(ancestor.0, descendant.0)
        .during("comparing commits")?;
    Ok(base.is_some_and(|base| base.detach() == ancestor.0))
}
