//! How the commands of a plan are confined.

mod caches;
mod policy;
mod private;
mod remark;

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::config::settings::Sandbox;
use crate::git::worktree::SessionWorktree;
use crate::host::sandbox::{Availability, Network, Policy, availability, describe};
use crate::workflow::project::Project;

use policy::Places;
pub(super) use remark::remark;

impl Project {
    /// Returns in a few words how commands will be confined, for the person who approves.
    pub fn confinement(&self) -> String {
        let nowhere = Path::new("/nonexistent");
        let policy = self.policy_of(Places {
            worktree: nowhere,
            common_dir: nowhere,
            workspace: nowhere,
            caches: nowhere,
        });
        describe(policy.as_ref())
    }

    /// Returns what commands in a worktree may do; nothing where they are not confined.
    ///
    /// # Errors
    /// Where a sandbox is required that this machine does not have.
    pub fn policy(&self, worktree: &SessionWorktree) -> anyhow::Result<Option<Policy>> {
        if self.settings.execute.sandbox == Sandbox::Require
            && let Availability::None(why) | Availability::Partly(why) = availability()
        {
            anyhow::bail!("`execute.sandbox` is `require`, which this machine cannot do: {why}");
        }
        let common = self.repository.common_dir();
        let caches = self.tool_caches();
        let policy = self.policy_of(Places {
            worktree: &worktree.path,
            common_dir: &common,
            workspace: self.repository.workdir(),
            caches: &caches,
        });
        if let Some(policy) = &policy {
            caches::prepare(&caches, &policy.write)
                .with_context(|| format!("making `{}`", caches.display()))?;
        }
        Ok(policy)
    }

    /// Returns the variables that lead the tools of confined commands to caches that they may
    /// write.
    pub fn cache_variables(&self, policy: &Policy) -> Vec<(String, String)> {
        caches::variables(&self.tool_caches(), policy.network)
    }

    /// Returns the folder of the caches that this repository's commands write.
    pub fn tool_caches(&self) -> PathBuf {
        let tools = self.places.cache.join("tools");
        tools.join(self.repository.identity())
    }

    /// Makes the policy that the settings describe.
    fn policy_of(&self, places: Places<'_>) -> Option<Policy> {
        let settings = &self.settings.execute;
        if settings.sandbox == Sandbox::Off {
            return None;
        }
        let mut policy = policy::standard(places);
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
