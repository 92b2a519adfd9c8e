//! Finds the checkout that an interrupted command was updating.

use anyhow::Context as _;

use crate::git::repository::Repository;
use crate::session::journal::Pending;

/// `Some(None)` if the intent belongs to this checkout, `Some(Some(..))` for another one, `None` if
/// that checkout is gone.
///
/// Fails if the other checkout exists and is not accessible: recovery must not give up its intent
/// then.
pub(super) fn intended_checkout(
    repository: &Repository,
    pending: &Pending,
) -> anyhow::Result<Option<Option<Box<Repository>>>> {
    let own = repository;
    if pending.workspace == own.workdir() || pending.worktree == own.worktree_name() {
        return Ok(Some(None));
    }

    // A directory of that name may be another one by now.
    let link = pending.workspace.join(".git");
    let is_there = link.try_exists();
    if !is_there.with_context(|| format!("cannot read `{}`", link.display()))? {
        return Ok(None);
    }

    let other = match Repository::open(&pending.workspace) {
        Ok(other) => other,
        Err(_) if is_worktree_pruned(own, &pending.worktree)? => return Ok(None),
        Err(error) => {
            let path = pending.workspace.display();
            let message = format!("a turn is not finished in `{path}`, which cannot be opened");
            return Err(error.context(message));
        }
    };
    Ok((other.common_dir() == own.common_dir()).then(|| Some(Box::new(other))))
}

/// Returns whether git has no record of a linked worktree any more.
fn is_worktree_pruned(repository: &Repository, worktree: &str) -> anyhow::Result<bool> {
    let Some(id) = worktree.strip_prefix("linked-") else {
        return Ok(false);
    };
    let record = repository.common_dir().join("worktrees").join(id);
    let is_there = record.try_exists();
    Ok(!is_there.with_context(|| format!("cannot read `{}`", record.display()))?)
}
