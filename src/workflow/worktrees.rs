//! The worktrees of sessions that nobody uses: put right, taken over, removed.

use std::time::Duration;

use crate::host::lock::Lock;
use crate::session::name::SessionName;
use crate::workflow::project::Project;
use crate::workflow::user::{Event, User};

impl Project {
    /// Takes over the worktrees that a version before this one registered with git, where commands
    /// could write in git's record of them and stop the user's own git. Returns whether there were
    /// any.
    ///
    /// # Errors
    /// Where a record cannot be removed.
    pub(super) fn take_over_worktrees(&self, user: &mut dyn User) -> anyhow::Result<bool> {
        let (root, mut any) = (self.worktrees(), false);
        for session in self.repository.former_worktrees(&root) {
            let Some(_lock) = self.try_lock_worktree(&session, "recover") else {
                continue;
            };
            self.repository.take_over_worktree(&root, &session)?;
            user.tell(Event::Note(&format!(
                "git no longer lists the worktree of session `{session}`: an earlier TeDDy had registered it"
            )));
            any = true;
        }
        Ok(any)
    }

    /// Removes what commands or a crash left in the worktrees that no process uses. Returns whether
    /// there was anything.
    ///
    /// # Errors
    /// Where something cannot be moved out of the way.
    pub(super) fn tidy_worktrees(&self, user: &mut dyn User) -> anyhow::Result<bool> {
        let mut any = false;
        for listed in self.repository.session_worktrees() {
            let Some(_lock) = self.try_lock_worktree(&listed.session, "recover") else {
                continue;
            };
            if self.repository.tidy_session_worktree(&listed.session)? {
                let session = &listed.session;
                user.tell(Event::Note(&format!(
                    "removed what a run that was cut short left in the worktree of session `{session}`"
                )));
                any = true;
            }
        }
        Ok(any)
    }

    /// Takes the lock of the session whose worktree has a name; nothing where a process works on it.
    pub(super) fn try_lock_worktree(&self, name: &str, command: &str) -> Option<Lock> {
        let session =
            SessionName::from_folder(name).map_or_else(|| name.to_owned(), |name| name.to_string());
        let folder = self.repository.teddy_dir().join("locks").join(&session);
        let lock = Lock::take(&folder, command, Duration::ZERO).ok()?;
        // Commands can outlive their TeDDy for a moment.
        for name in [name, &session] {
            Lock::outlast(&self.commands_lock(name), Duration::ZERO).ok()?;
        }
        if lock.abandoned {
            crate::host::shell::end_orphans();
        }
        Some(lock)
    }
}
