//! Checks worktrees, locks, interrupted turns and rescued files.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{HealthCheck, Patient, display_path, owned_by_another, path_word};
use crate::git::refs;
use crate::git::repository::Repository;
use crate::git::worktree::{self, RecordedWorktree, registered};
use crate::host::file::{read_regular, read_regular_text};
use crate::host::lock::{Lock, LockError};
use crate::project::Project;
use crate::session::name::{SESSIONS, SessionName};
use crate::text::counted;
use crate::text::sanitize::sanitize_line;
use crate::workflow::doctor::Repair;
use crate::workflow::gc::files_below;

/// In seconds. An older lock of git's was left by a dead process.
const OLD: u64 = 60 * 60;

const MAX_HOLDER: u64 = 400;

/// In bytes, of a record of git's.
const MAX_RECORD: u64 = 64 << 10;

/// Findings of a kind that are listed one by one.
const MOST: usize = 5;

pub(super) fn run_checks(patient: &Patient) -> Vec<HealthCheck> {
    let Ok(project) = &patient.project else {
        return check_orphans(patient, None);
    };
    if let Some(owner) = owned_by_another(project) {
        return vec![HealthCheck::problem("owner", owner.to_string())];
    }
    let mut checks = worktrees(project);
    checks.extend(check_orphans(patient, Some(project)));
    checks.extend(locks(project));
    checks.extend(locks_of_git(project));
    checks.push(pending(project));
    checks.extend(set_aside(project));
    checks
}

fn worktrees(project: &Project) -> Vec<HealthCheck> {
    let listed = worktree::session_worktrees(&project.repository);
    let references = refs::list(&project.repository, SESSIONS).unwrap_or_default();
    let names: HashSet<&str> = references
        .iter()
        .filter_map(|reference| reference.name.strip_prefix(SESSIONS))
        .collect();
    let is_known = |listed: &&RecordedWorktree| {
        let session = SessionName::from_dir_name(&listed.session);
        session.is_some_and(|session| names.contains(session.as_str()))
    };
    let (present, lost): (Vec<_>, Vec<_>) = listed.iter().partition(|one| one.path.exists());
    let orphans: Vec<&RecordedWorktree> = present
        .iter()
        .copied()
        .filter(|one| !is_known(one))
        .collect();

    let mut checks: Vec<HealthCheck> = lost.iter().take(MOST).map(|one| lost_one(one)).collect();
    checks.extend(orphans.iter().take(MOST).map(|one| orphan(one)));
    for left in registered::lost_records(&project.repository) {
        let reason = format!(
            "git lists a worktree of session `{}` that TeDDy has no record of",
            sanitize_line(&left)
        );
        checks.push(HealthCheck::note("worktrees", reason).remedy("teddy doctor --fix"));
    }

    checks.extend(check_missing_locked(&project.repository));

    if checks.is_empty() {
        let reason = counted(present.len(), "worktree");
        checks.push(HealthCheck::ok("worktrees", reason));
    }
    checks
}

/// git keeps the records of locked worktrees, and their branches count as checked out.
fn check_missing_locked(repository: &Repository) -> Vec<HealthCheck> {
    let records = std::fs::read_dir(repository.common_dir().join("worktrees"));
    let mut records: Vec<PathBuf> = records
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    records.sort();
    let missing = records.into_iter().filter_map(|record| {
        let text = read_regular_text(&record.join("gitdir"), MAX_RECORD).ok()?;
        let link = record.join(text.trim_end());
        let top = link.parent()?.to_owned();
        let reason = read_regular_text(&record.join("locked"), MAX_RECORD).ok()?;
        // Those of sessions are checked above.
        let is_gone = !link.exists() && !registered::is_lock_of_session(&reason);
        is_gone.then(|| {
            let head = read_regular_text(&record.join("HEAD"), MAX_RECORD).unwrap_or_default();
            let branch = head.trim_end().strip_prefix("ref: refs/heads/");
            let keeps = branch.map_or_else(String::new, |branch| {
                format!(", and `{}` counts as checked out there", sanitize_line(branch))
            });
            let reason = format!(
                "the linked worktree `{}` is not there and is locked, so git keeps its record{keeps}; if it is on a disk that is not mounted, all is well",
                display_path(&top)
            );
            let remedy = format!("git worktree remove --force --force {}", path_word(&top));
            HealthCheck::note("linked", reason).remedy(remedy)
        })
    });
    missing.take(MOST).collect()
}

fn lost_one(listed: &RecordedWorktree) -> HealthCheck {
    let reason = format!(
        "the worktree of `{}` is gone, and what was known of its files is not ({}); it is made anew when it is needed",
        sanitize_line(&listed.session),
        display_path(&listed.path)
    );
    HealthCheck::note("worktrees", reason)
        .remedy("teddy doctor --fix")
        .repair(Repair::ForgetWorktree(listed.session.clone()))
}

fn orphan(listed: &RecordedWorktree) -> HealthCheck {
    let reason = format!(
        "the worktree `{}` is of the session `{}`, which is gone",
        display_path(&listed.path),
        sanitize_line(&listed.session)
    );
    HealthCheck::note("worktrees", reason).remedy("teddy gc")
}

fn locks(project: &Project) -> Vec<HealthCheck> {
    let dir = project.repository.teddy_dir();
    let of_sessions = files_below(&dir.join("locks"));
    let of_sessions = of_sessions.filter(|path| path.ends_with("lock"));
    let paths = std::iter::once(dir.join("lock")).chain(of_sessions);
    let lock_files = paths.filter_map(|path| Some((holder(&path)?, path)));
    let mut checks: Vec<HealthCheck> = lock_files
        .take(MOST)
        .map(|(holder, path)| match is_held(&path) {
            true => HealthCheck::ok("locks", format!("{holder} is at work here")),
            false => {
                let reason = format!(
                    "{holder} ended without letting go of `{}`",
                    display_path(&path)
                );
                HealthCheck::note("locks", reason).remedy("teddy doctor --fix")
            }
        })
        .collect();

    if checks.is_empty() {
        checks.push(HealthCheck::ok("locks", "no command is running"));
    }
    checks
}

/// `None` if it was released.
fn holder(path: &Path) -> Option<String> {
    let text = read_regular_text(path, MAX_HOLDER).ok()?;
    (!text.is_empty()).then(|| sanitize_line(&text).into_owned())
}

fn is_held(path: &Path) -> bool {
    // The name in a lock file outlives a killed process; the `flock` does not.
    let free = Lock::wait_released(path, Duration::ZERO);
    matches!(free, Err(LockError::Busy { .. }))
}

/// Only reported: a git process might still hold them.
fn locks_of_git(project: &Project) -> Vec<HealthCheck> {
    let repository = &project.repository;
    let head = repository.git_dir().join("HEAD.lock");
    let mut lock_files = refs::repair::foreign_locks(repository);
    if let Some(seconds) = age(&head).filter(|_| lock_files.iter().all(|lock| lock.path != head)) {
        lock_files.push(refs::repair::ForeignLock {
            path: head,
            seconds,
        });
    }

    let (old, young): (Vec<_>, Vec<_>) = lock_files.iter().partition(|lock| lock.seconds >= OLD);
    let mut checks: Vec<HealthCheck> = old
        .iter()
        .take(MOST)
        .map(|lock| {
            let reason = format!(
                "git's lock `{}` is {} old: a git that was killed has left it, and no other gets past it",
                display_path(&lock.path),
                hours(lock.seconds)
            );
            let remedy = format!("rm {}  # if no git is running", path_word(&lock.path));
            HealthCheck::problem("git-locks", reason).remedy(remedy)
        })
        .collect();
    if checks.is_empty() {
        let reason = match young.len() {
            0 => "git has left no lock".to_owned(),
            _ => "git is at work".to_owned(),
        };
        checks.push(HealthCheck::ok("git-locks", reason));
    }
    checks
}

fn age(path: &Path) -> Option<u64> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    let age = metadata.modified().ok()?.elapsed().unwrap_or_default();
    Some(age.as_secs())
}

fn hours(seconds: u64) -> String {
    match seconds / 3600 {
        hours if hours < 48 => counted(hours, "hour"),
        hours => counted(hours / 24, "day"),
    }
}

fn pending(project: &Project) -> HealthCheck {
    let dir = project.repository.teddy_dir();
    if dir.join("pending.json").symlink_metadata().is_err() {
        return HealthCheck::ok("pending", "no turn was interrupted");
    }
    if is_held(&dir.join("lock")) {
        return HealthCheck::ok("pending", "a turn is being completed");
    }
    HealthCheck::warning(
        "pending",
        "a crash interrupted a turn on the way to your files; whatever changes something next finishes it first",
    )
    .remedy("teddy doctor --fix")
}

fn set_aside(project: &Project) -> Option<HealthCheck> {
    let rescued = project.repository.teddy_dir().join("undo/rescued");
    let saves: Vec<PathBuf> = files_below(&rescued).collect();
    let first = saves.first()?;
    let reason = format!(
        "{} of yours could not be put back beside what was written, as `{}`",
        counted(saves.len(), "save"),
        display_path(first)
    );
    Some(HealthCheck::note("saves", reason).remedy("teddy gc -n  # lists them"))
}

// Worktree directories that no repository uses: the repository was deleted, or it has no record of
// the session.

/// In a worktree root. Has a directory for each worktree.
const OWN_DIR: &str = ".teddy-worktrees";

/// Names the owning repository.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_hours_and_days() {
        assert_eq!(
            [3600, 7300, 47 * 3600, 72 * 3600].map(hours),
            ["1 hour", "2 hours", "47 hours", "3 days"]
        );
    }
}
