//! The policy that a plan's commands get unless the user says otherwise.

use std::path::{Path, PathBuf};

use super::private::private;
use crate::host::env;
use crate::host::sandbox::{Network, Policy};

/// Where a plan runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'p> {
    /// The worktree in which commands run.
    pub worktree: &'p Path,
    /// The worktree's own git directory.
    pub git_dir: &'p Path,
    /// The user's git directory.
    pub common_dir: &'p Path,
    /// The user's own files, which commands must not see: the snapshot may have left out secrets.
    pub workspace: &'p Path,
    /// The caches that commands write.
    pub caches: &'p Path,
}

/// Devices that harm nobody.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];
/// The folder of memory that processes share by name.
const SHARED_MEMORY: &str = "/dev/shm";

/// Returns the usual policy: the worktree, its git directory and caches of their own may be written,
/// git objects added; keys, credentials and the user's own files may not be read; no network.
pub(super) fn standard(places: Places<'_>) -> Policy {
    let Places {
        worktree,
        git_dir,
        common_dir,
        workspace,
        caches,
    } = places;
    let mut policy = Policy {
        write: [worktree, git_dir, caches].map(Path::to_owned).to_vec(),
        // Not the whole folder: git would leave the lock of its maintenance in it for ever.
        add: (0..=0xff)
            .map(|start| common_dir.join(format!("objects/{start:02x}")))
            .collect(),
        read: vec![common_dir.to_owned()],
        hidden: vec![workspace.to_owned(), common_dir.join("teddy")],
        private: vec![SHARED_MEMORY.into()],
        network: Network::Off,
    };
    policy.write.extend(DEVICES.map(PathBuf::from));
    let path = env::var("PATH").unwrap_or_default();
    policy.read.extend(programs(&path, workspace));
    policy.hidden.extend(private());
    policy
}

/// Returns the folders of the workspace from which the user runs programs, such as an active
/// virtual environment: what `PATH` names there, with the libraries beside it.
fn programs(path: &str, workspace: &Path) -> Vec<PathBuf> {
    let inside = std::env::split_paths(path)
        .filter(|folder| folder.starts_with(workspace) && folder != workspace);
    let with_libraries = |folder: PathBuf| match folder.parent() {
        Some(parent) if parent != workspace => parent.to_owned(),
        _ => folder,
    };
    inside.map(with_libraries).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_active_environment_of_the_workspace_can_be_read() {
        let found = programs(
            "/usr/bin:/w/.venv/bin:/w/bin:/w:/w2/x/bin:bin",
            Path::new("/w"),
        );
        assert_eq!(found, ["/w/.venv", "/w/bin"].map(PathBuf::from));
    }

    #[test]
    fn the_standard_policy_opens_the_worktree_and_closes_the_workspace() {
        let [worktree, git_dir, common_dir, workspace, caches] =
            ["/t", "/w/.git/worktrees/t", "/w/.git", "/w", "/c"].map(Path::new);
        let policy = standard(Places {
            worktree,
            git_dir,
            common_dir,
            workspace,
            caches,
        });
        assert_eq!(policy.network, Network::Off);
        let writable = ["/t", "/w/.git/worktrees/t", "/c"].map(PathBuf::from);
        assert!(policy.write.starts_with(&writable));
        assert_eq!(
            (policy.add.first(), policy.add.len()),
            (Some(&PathBuf::from("/w/.git/objects/00")), 256)
        );
        assert!(policy.hidden.contains(&"/w".into()) && policy.read.contains(&"/w/.git".into()));
        assert_eq!(policy.private, [PathBuf::from("/dev/shm")]);
    }
}
