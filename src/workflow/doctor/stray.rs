//! Finds worktree directories that no repository uses: the repository was deleted, or it has no
//! record of the session.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{HealthCheck, Patient, path_word, shown};
use crate::git::worktree;
use crate::host::file::read_regular;
use crate::workflow::project::Project;

/// Subdirectory of ours in a worktree root, with a directory for each worktree.
const OWN: &str = ".teddy-worktrees";
/// File that names the owning repository.
const OWNER: &str = "owner";
const MAX_OWNER: u64 = 64 * 1024;
const MOST_LOOKED_AT: usize = 1000;
const MOST: usize = 5;

pub(super) fn look(patient: &Patient, project: Option<&Project>) -> Vec<HealthCheck> {
    let mut checks = of_lost_repositories(&patient.places.cache.join("worktrees"));
    if let Some(project) = project.filter(|project| !project.repository.is_bare()) {
        checks.extend(forgotten(project));
    }
    checks
}

fn of_lost_repositories(root: &Path) -> Vec<HealthCheck> {
    let lost = folders(root).into_iter().filter_map(|folder| {
        let claim = folders(&folder.join(OWN)).into_iter().next()?;
        let owner = owner(&claim)?;
        // An inaccessible path can still exist.
        let gone = owner.symlink_metadata().err()?;
        (gone.kind() == std::io::ErrorKind::NotFound).then_some((folder, owner))
    });
    let told = lost.take(MOST).map(|(folder, owner)| {
        let reason = format!(
            "`{}` has worktrees of the repository `{}`, which is gone",
            shown(&folder),
            shown(&owner)
        );
        HealthCheck::note("stray", reason).remedy(format!("rm -rf {}", path_word(&folder)))
    });
    told.collect()
}

fn forgotten(project: &Project) -> Vec<HealthCheck> {
    let root = project.worktrees();
    let listed = worktree::session_worktrees(&project.repository);
    let known: HashSet<PathBuf> = listed.into_iter().map(|one| one.path).collect();
    let canonical = root.canonicalize().unwrap_or_else(|_| root.clone());
    let common = project.repository.common_dir();

    let claims = folders(&root.join(OWN)).into_iter();
    let ours = claims.filter(|claim| owner(claim).as_deref() == Some(&common));
    let left = ours.filter_map(|claim| {
        let name = claim.file_name()?.to_owned();
        let place = root.join(&name);
        let is_known = known.contains(&place) || known.contains(&canonical.join(&name));
        (!is_known && place.is_dir()).then_some(place)
    });
    let told = left.take(MOST).map(|place| {
        let reason = format!(
            "`{}` was a session's worktree, of which nothing is known any more",
            shown(&place)
        );
        HealthCheck::note("stray", reason).remedy(format!("rm -rf {}", path_word(&place)))
    });
    told.collect()
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_folder = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let mut folders: Vec<PathBuf> = entries
        .take(MOST_LOOKED_AT)
        .filter(is_folder)
        .map(|entry| entry.path())
        .collect();
    folders.sort();
    folders
}

fn owner(claim: &Path) -> Option<PathBuf> {
    let bytes = read_regular(&claim.join(OWNER), MAX_OWNER).ok()?;
    let path = Path::new(OsStr::from_bytes(&bytes));
    // A relative path is not ours; the caller would resolve it against the current directory.
    path.is_absolute().then(|| path.to_owned())
}
