//! How the commands of a plan are confined.

use std::path::{Path, PathBuf};

use crate::config::settings::Sandbox;
use crate::git::worktree::SessionWorktree;
use crate::host::sandbox::{Availability, Network, Places, Policy, availability, describe};
use crate::workflow::project::Project;

impl Project {
    /// Returns in a few words how commands will be confined, for the person who approves.
    pub fn confinement(&self) -> String {
        let nowhere = Path::new("/nonexistent");
        let policy = self.policy_of(Places {
            worktree: nowhere,
            git_dir: nowhere,
            common_dir: nowhere,
            workspace: nowhere,
        });
        describe(policy.as_ref())
    }

    /// Returns what commands in a worktree may do; nothing where they are not confined.
    ///
    /// # Errors
    /// Where a sandbox is required that this machine does not have.
    pub fn policy(&self, worktree: &SessionWorktree) -> anyhow::Result<Option<Policy>> {
        if self.settings.execute.sandbox == Sandbox::Require
            && let Availability::None(why) | Availability::FilesOnly(why) = availability()
        {
            anyhow::bail!("`execute.sandbox` is `require`, and this machine has none: {why}");
        }
        let (common, git_dir) = (
            self.repository.common_dir(),
            worktree.repository.git_dir().to_owned(),
        );
        Ok(self.policy_of(Places {
            worktree: &worktree.path,
            git_dir: &git_dir,
            common_dir: &common,
            workspace: self.repository.workdir(),
        }))
    }

    /// Makes the policy that the settings describe.
    fn policy_of(&self, places: Places<'_>) -> Option<Policy> {
        let settings = &self.settings.execute;
        if settings.sandbox == Sandbox::Off {
            return None;
        }
        let mut policy = Policy::standard(places);
        policy.network = if settings.network {
            Network::On
        } else {
            Network::Off
        };
        // The worktree's links lead into the workspace, which is closed otherwise.
        policy.read.extend(
            self.settings
                .worktree
                .link
                .iter()
                .map(|name| self.repository.workdir().join(name)),
        );
        policy
            .write
            .extend(settings.writable.iter().map(|folder| self.expand(folder)));
        Some(policy)
    }

    /// Returns a folder of the settings: below the home directory with `~/`, else below the
    /// project.
    fn expand(&self, folder: &str) -> PathBuf {
        match (folder.strip_prefix("~/"), &self.places.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.repository.workdir().join(folder),
        }
    }
}
