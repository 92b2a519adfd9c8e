//! The default sandbox policy for a plan's commands.

use std::path::{Component, Path, PathBuf};

use super::private::private_defaults;
use crate::host::env;
use crate::host::sandbox::{Network, Policy};

#[derive(Debug, Clone, Copy)]
pub(super) struct RunPaths<'p> {
    /// The worktree, with a git directory of its own.
    pub worktree: &'p Path,
    pub common_dir: &'p Path,
    /// The user's files. Hidden, because the snapshot can have left out secrets in them.
    pub workspace: &'p Path,
    pub caches: &'p Path,
}

const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];
/// Shared memory of all processes; commands get a private one.
const SHARED_MEMORY: &str = "/dev/shm";

/// The part of the user's git directory that is readable. The worktree's git directory borrows
/// objects from a store with what refs reach.
const LFS: &str = "lfs";
/// Can be a symbolic link that leads out of the git directory.
const OBJECTS: &str = "objects";

/// The default policy (docs/decisions/0024-sandbox.md).
///
/// Writable are the worktree, including its git directory, and the caches. Hidden are keys,
/// credentials, the user's files and their git directory. No network.
pub(super) fn default_policy(paths: RunPaths<'_>) -> Policy {
    let RunPaths {
        worktree,
        common_dir,
        workspace,
        caches,
    } = paths;
    let mut policy = Policy {
        write: [worktree, caches].map(Path::to_owned).to_vec(),
        add: Vec::new(),
        read: vec![common_dir.join(LFS)],
        hidden: vec![
            workspace.to_owned(),
            common_dir.to_owned(),
            common_dir.join(OBJECTS),
        ],
        private: vec![SHARED_MEMORY.into()],
        network: Network::Off,
    };

    policy.write.extend(DEVICES.map(PathBuf::from));
    policy.read.extend(program_dirs_in_path(workspace));
    policy.hidden.extend(private_defaults());
    policy
}

pub(super) fn program_dirs_in_path(workspace: &Path) -> Vec<PathBuf> {
    program_dirs(&env::var("PATH").unwrap_or_default(), workspace)
}

/// Directories in `PATH` below the workspace, including the libraries next to them.
fn program_dirs(path: &str, workspace: &Path) -> Vec<PathBuf> {
    // Resolve symlinks and `..` before the comparison: `scripts/..` would open the whole workspace.
    let real = |dir: PathBuf| dir.canonicalize().unwrap_or(dir);
    let leads_back = |dir: &PathBuf| dir.components().any(|part| part == Component::ParentDir);
    let inside = std::env::split_paths(path)
        .map(real)
        .filter(|dir| dir.starts_with(workspace) && dir != workspace)
        .filter(|dir| !leads_back(dir));
    let with_libraries = |dir: PathBuf| match dir.parent() {
        Some(parent) if parent != workspace => parent.to_owned(),
        _ => dir,
    };
    inside.map(with_libraries).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_active_environment_of_the_workspace_can_be_read() {
        let actual = program_dirs(
            "/usr/bin:/w/.venv/bin:/w/bin:/w:/w2/x/bin:bin",
            Path::new("/w"),
        );
        assert_eq!(actual, ["/w/.venv", "/w/bin"].map(PathBuf::from));
    }

    /// Regression: such a path opened the whole workspace, including its secrets.
    #[test]
    fn a_path_that_leads_back_opens_what_it_leads_to() {
        let outer = tempfile::tempdir().unwrap();
        let workspace = outer.path().canonicalize().unwrap();
        for dir in ["bin", "scripts"] {
            std::fs::create_dir(workspace.join(dir)).unwrap();
        }
        let check = |path: &str, expected: &[&str]| {
            let actual = program_dirs(&workspace.join(path).to_string_lossy(), &workspace);
            let expected: Vec<_> = expected.iter().map(|path| workspace.join(path)).collect();
            assert_eq!(actual, expected, "{path}");
        };
        check("scripts/../bin", &["bin"]);
        check("gone/../bin", &[]);
        check("scripts/..", &[]);
    }

    #[test]
    fn the_standard_policy_opens_the_worktree_and_closes_the_workspace() {
        let [worktree, common_dir, workspace, caches] =
            ["/t", "/c/.git", "/w", "/tools"].map(Path::new);
        let policy = default_policy(RunPaths {
            worktree,
            common_dir,
            workspace,
            caches,
        });
        assert_eq!(policy.network, Network::Off);
        assert!(
            policy
                .write
                .starts_with(&["/t", "/tools"].map(PathBuf::from))
        );
        assert!(!policy.write.iter().any(|path| path.starts_with("/c")));
        assert!(policy.add.is_empty());
        assert!(policy.hidden.starts_with(&["/w".into(), "/c/.git".into()]));
        assert!(policy.hidden.contains(&"/c/.git/objects".into()));
        assert!(policy.read.contains(&"/c/.git/lfs".into()));
        assert_eq!(policy.private, [PathBuf::from("/dev/shm")]);
    }
}
