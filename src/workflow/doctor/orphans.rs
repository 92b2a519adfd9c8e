//! Finds worktree directories that no repository uses: the repository was deleted, or it has no
//! record of the session.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{HealthCheck, Patient, display_path, path_word};
use crate::git::worktree;
use crate::host::file::read_regular;
use crate::workflow::project::Project;

/// Subdirectory of ours in a worktree root, with a directory for each worktree.
const OWN_DIR: &str = ".teddy-worktrees";
/// File that names the owning repository.
const OWNER_FILE: &str = "owner";
const MAX_OWNER: u64 = 64 * 1024;
const MAX_SCANNED_DIRS: usize = 1000;
const MAX_ORPHANS: usize = 5;

pub(super) fn check_orphans(patient: &Patient, project: Option<&Project>) -> Vec<HealthCheck> {
    let mut checks = check_lost_repositories(&patient.user_dirs.cache.join("worktrees"));
    if let Some(project) = project.filter(|project| !project.repository.is_bare()) {
        checks.extend(check_unknown_worktrees(project));
    }
    checks
}

fn check_lost_repositories(root: &Path) -> Vec<HealthCheck> {
    let lost = list_subdirs(root).into_iter().filter_map(|dir| {
        let claim = list_subdirs(&dir.join(OWN_DIR)).into_iter().next()?;
        let owner = read_owner(&claim)?;
        // An inaccessible path can still exist.
        let error = owner.symlink_metadata().err()?;
        (error.kind() == std::io::ErrorKind::NotFound).then_some((dir, owner))
    });
    let checks = lost.take(MAX_ORPHANS).map(|(dir, owner)| {
        let reason = format!(
            "`{}` has worktrees of the repository `{}`, which is gone",
            display_path(&dir),
            display_path(&owner)
        );
        HealthCheck::note("stray", reason).remedy(format!("rm -rf {}", path_word(&dir)))
    });
    checks.collect()
}

fn check_unknown_worktrees(project: &Project) -> Vec<HealthCheck> {
    let root = project.worktrees();
    let listed = worktree::session_worktrees(&project.repository);
    let registered: HashSet<PathBuf> = listed.into_iter().map(|one| one.path).collect();
    let canonical = root.canonicalize().unwrap_or_else(|_| root.clone());
    let common = project.repository.common_dir();

    let claims = list_subdirs(&root.join(OWN_DIR)).into_iter();
    let own_claims = claims.filter(|claim| read_owner(claim).as_deref() == Some(&common));
    let orphans = own_claims.filter_map(|claim| {
        let name = claim.file_name()?.to_owned();
        let path = root.join(&name);
        let is_known = registered.contains(&path) || registered.contains(&canonical.join(&name));
        (!is_known && path.is_dir()).then_some(path)
    });
    let checks = orphans.take(MAX_ORPHANS).map(|path| {
        let reason = format!(
            "`{}` was a session's worktree, of which nothing is known any more",
            display_path(&path)
        );
        HealthCheck::note("stray", reason).remedy(format!("rm -rf {}", path_word(&path)))
    });
    checks.collect()
}

fn list_subdirs(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let is_dir = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let mut dirs: Vec<PathBuf> = entries
        .take(MAX_SCANNED_DIRS)
        .filter(is_dir)
        .map(|entry| entry.path())
        .collect();
    dirs.sort();
    dirs
}

fn read_owner(claim: &Path) -> Option<PathBuf> {
    let bytes = read_regular(&claim.join(OWNER_FILE), MAX_OWNER).ok()?;
    let path = Path::new(OsStr::from_bytes(&bytes));
    // A relative path is not ours; the caller would resolve it against the current directory.
    path.is_absolute().then(|| path.to_owned())
}
