//! Finds the checkout that an interrupted command was updating.

use crate::git::repository::Repository;
use crate::session::journal::Pending;

/// `Some(None)` if the intent belongs to this checkout, `Some(Some(..))` for another one, `None` if
/// that checkout is gone.
///
/// Fails if the other checkout exists and is not accessible: recovery must not give up its intent
/// then.
pub(super) fn checkout_of(
    repository: &Repository,
    pending: &Pending,
) -> anyhow::Result<Option<Option<Box<Repository>>>> {
    let here = repository;
    if pending.workspace == here.workdir() || pending.worktree == here.worktree_name() {
        return Ok(Some(None));
    }

    // Without `.git`, opening the directory could find another repository further up.
    if !pending.workspace.join(".git").exists() {
        return Ok(None);
    }

    let other = match Repository::open(&pending.workspace) {
        Ok(other) => other,
        Err(error) if is_closed(&error) => return Err(error),
        Err(_) => return Ok(None),
    };
    Ok((other.common_dir() == here.common_dir()).then(|| Some(Box::new(other))))
}

fn is_closed(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let cause = cause.downcast_ref::<std::io::Error>();
        cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::PermissionDenied)
    })
}
