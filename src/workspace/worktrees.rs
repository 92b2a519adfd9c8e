//! Maintains session worktrees that no process uses.

use std::time::Duration;

use crate::git::worktree;
use crate::git::worktree::legacy;
use crate::host::lock::Lock;
use crate::session::name::SessionName;
use crate::workspace::Checkout;
use crate::workspace::notice::{FilesNotice, Notify};

/// Takes over worktrees that an early version registered with git. Commands could write into git's
/// record of such a worktree and block the user's own git. Returns whether there were any.
pub fn take_over_worktrees(
    checkout: &Checkout<'_>,
    notify: &mut Notify<'_>,
) -> anyhow::Result<bool> {
    let (root, mut any) = (&checkout.worktrees, false);
    for session in legacy::list_legacy_worktrees(checkout.repository, root) {
        let Some(_lock) = try_lock_worktree(checkout, &session, "recover") else {
            continue;
        };
        legacy::adopt_worktree(checkout.repository, root, &session)?;
        notify(FilesNotice::WorktreeTakenOver(session.clone()));
        any = true;
    }

    Ok(any)
}

/// Removes what commands or a crash left in unused worktrees. Returns whether there was anything.
pub fn tidy_worktrees(checkout: &Checkout<'_>, notify: &mut Notify<'_>) -> anyhow::Result<bool> {
    let mut any = false;
    for listed in worktree::session_worktrees(checkout.repository) {
        let Some(_lock) = try_lock_worktree(checkout, &listed.session, "recover") else {
            continue;
        };
        if worktree::tidy_session_worktree(checkout.repository, &listed.session)? {
            notify(FilesNotice::LeftoversRemoved(listed.session));
            any = true;
        }
    }

    Ok(any)
}

/// Takes the lock of the session that owns a worktree. `None` if a process is using it.
pub fn try_lock_worktree(checkout: &Checkout<'_>, name: &str, command: &str) -> Option<Lock> {
    let session =
        SessionName::from_dir_name(name).map_or_else(|| name.to_owned(), |name| name.to_string());
    let dir = checkout.repository.teddy_dir().join("locks").join(&session);
    let lock = Lock::take(&dir, command, Duration::ZERO).ok()?;

    // A plan's commands can outlive their TeDDy for a moment.
    for name in [name, &session] {
        Lock::wait_released(&checkout.commands_lock(name), Duration::ZERO).ok()?;
    }

    if lock.holder_crashed {
        crate::host::shell::end_orphans();
    }

    Some(lock)
}
