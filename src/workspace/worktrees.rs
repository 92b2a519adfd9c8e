//! Maintains session worktrees that no process uses.

use std::time::Duration;

use crate::git::worktree;
use crate::git::worktree::former;
use crate::host::lock::Lock;
use crate::session::name::SessionName;
use crate::workspace::Checkout;
use crate::workspace::notice::{FilesNotice, Tell};

/// Takes over worktrees that an early version registered with git. Commands could write into git's
/// record of such a worktree and block the user's own git. Returns whether there were any.
pub fn take_over_worktrees(checkout: &Checkout<'_>, tell: &mut Tell<'_>) -> anyhow::Result<bool> {
    let (root, mut any) = (&checkout.worktrees, false);
    for session in former::former_worktrees(checkout.repository, root) {
        let Some(_lock) = try_lock_worktree(checkout, &session, "recover") else {
            continue;
        };
        former::take_over_worktree(checkout.repository, root, &session)?;
        tell(FilesNotice::WorktreeTakenOver(session.clone()));
        any = true;
    }

    Ok(any)
}

/// Removes what commands or a crash left in unused worktrees. Returns whether there was anything.
pub fn tidy_worktrees(checkout: &Checkout<'_>, tell: &mut Tell<'_>) -> anyhow::Result<bool> {
    let mut any = false;
    for listed in worktree::session_worktrees(checkout.repository) {
        let Some(_lock) = try_lock_worktree(checkout, &listed.session, "recover") else {
            continue;
        };
        if worktree::tidy_session_worktree(checkout.repository, &listed.session)? {
            tell(FilesNotice::LeftoversRemoved(listed.session));
            any = true;
        }
    }

    Ok(any)
}

/// Takes the lock of the session that owns a worktree. `None` if a process is using it.
pub fn try_lock_worktree(checkout: &Checkout<'_>, name: &str, command: &str) -> Option<Lock> {
    let session =
        SessionName::from_folder(name).map_or_else(|| name.to_owned(), |name| name.to_string());
    let folder = checkout.repository.teddy_dir().join("locks").join(&session);
    let lock = Lock::take(&folder, command, Duration::ZERO).ok()?;

    // A plan's commands can outlive their TeDDy for a moment.
    for name in [name, &session] {
        Lock::outlast(&checkout.commands_lock(name), Duration::ZERO).ok()?;
    }

    if lock.abandoned {
        crate::host::shell::end_orphans();
    }

    Some(lock)
}
