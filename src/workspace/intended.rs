//! The checkout that an interrupted call was bringing along.

use crate::git::repository::Repository;
use crate::session::journal::Pending;

/// Returns the checkout of an intent where it is another one than this; nothing where it is
/// gone.
pub(super) fn checkout_of(
    repository: &Repository,
    pending: &Pending,
) -> anyhow::Result<Option<Option<Box<Repository>>>> {
    let here = repository;
    if pending.workspace == here.workdir() || pending.worktree == here.worktree_name() {
        return Ok(Some(None));
    }

    // A folder of that name may be another one by now.
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

/// Returns whether something could not be opened because that is not permitted.
fn is_closed(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let cause = cause.downcast_ref::<std::io::Error>();
        cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::PermissionDenied)
    })
}
