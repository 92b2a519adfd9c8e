//! Finds and removes files that are no longer needed: old undo data and leftovers of killed
//! processes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;

use crate::git::keep::durable;
use crate::git::keep::protect::{self, MergePolicy};
use crate::git::object::{CommitId, NewCommit};
use crate::git::refs::{self, Expected, Reference};
use crate::git::repository::Repository;
use crate::git::worktree::{self, RecordedWorktree};
use crate::host::file::{Root, remove_below};
use crate::host::lock::Lock;
use crate::host::{clock, fault};
use crate::project::Project;
use crate::session::name::SessionName;
use crate::workspace::recover;
use crate::workspace::snapshot::KEEPER;

pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// State files, indexes, clock probes, and loose objects by gix.
const TEMPORARY: [&str; 4] = [
    crate::host::file::TEMPORARY,
    "tmp-index-",
    "moment-",
    ".tmp",
];

/// Their file names are session names.
const SESSION_DIRS: [&str; 8] = [
    "tips",
    "own-drafts",
    "models",
    "log",
    "spent",
    "locks",
    "current",
    "archive",
];

/// In `teddy/undo`, with old damaged state and abandoned temporary files.
pub(super) fn old_files(repository: &Repository, days: u32) -> Vec<PathBuf> {
    let teddy = repository.teddy_dir();
    let mut files: Vec<PathBuf> = files_below(&teddy.join("undo")).collect();
    let is_set_aside = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("pending.json.bad"))
    };
    files.extend(
        std::fs::read_dir(&teddy)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(is_set_aside),
    );

    let is_old = |path: &PathBuf| age(path).is_some_and(|age| age >= DAY * days);
    let (old, young): (Vec<_>, Vec<_>) = files.into_iter().partition(is_old);
    let mut old = without_earlier_versions(old, young);
    old.extend(abandoned(repository));
    old
}

/// Leaves out replaced files of which a later version stays: it is found only if the versions are
/// numbered without a gap.
fn without_earlier_versions(mut old: Vec<PathBuf>, young: Vec<PathBuf>) -> Vec<PathBuf> {
    let entry = |path: &Path| {
        let is_replaced = path.parent()?.ends_with("undo/replaced");
        let name = path.file_name()?.to_string_lossy();
        let (entry, _) = name.split_once('.').filter(|_| is_replaced)?;
        Some(entry.to_owned())
    };
    let entries: BTreeSet<String> = young.iter().filter_map(|path| entry(path)).collect();
    old.retain(|path| entry(path).is_none_or(|entry| !entries.contains(&entry)));
    old
}

pub(super) fn remove_files(files: &[PathBuf]) -> anyhow::Result<()> {
    files.iter().try_for_each(|path| {
        std::fs::remove_file(path).with_context(|| format!("removing `{}`", path.display()))
    })
}

/// Unchecked quarantines and unfinished signatures.
pub(super) fn find_leftovers(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let Ok(root) = Root::open_strictly(dir) else {
        return Ok(Vec::new());
    };
    let paths = root.names()?.into_iter().map(|name| dir.join(name));
    Ok(paths
        .filter(|path| age(path).is_some_and(|age| age >= DAY))
        .collect())
}

/// The content is untrusted. Follows no symlink.
pub(super) fn remove_foreign(paths: &[PathBuf]) -> anyhow::Result<()> {
    for path in paths {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            continue;
        };
        remove_below(&Root::open_strictly(dir)?, name)?;
    }
    Ok(())
}

/// At least a day old.
fn abandoned(repository: &Repository) -> impl Iterator<Item = PathBuf> {
    let objects = std::fs::read_dir(repository.common_dir().join("objects"))
        .into_iter()
        .flatten()
        .flatten();
    let files = files_below(&repository.teddy_dir()).chain(objects.map(|entry| entry.path()));
    let of_sessions = SESSION_DIRS.map(|folder| repository.teddy_dir().join(folder));
    let is_temporary = move |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Session names can start like our temporary files, except for the first prefix.
        let prefixes = if of_sessions.iter().any(|dir| path.starts_with(dir)) {
            &TEMPORARY[..1]
        } else {
            &TEMPORARY
        };
        prefixes.iter().any(|start| name.starts_with(start)) && path.is_file()
    };

    files.filter(move |path| is_temporary(path) && age(path).is_some_and(|age| age >= DAY))
}

/// Since the last modification or move.
pub(super) fn age(path: &Path) -> Option<Duration> {
    use std::os::unix::fs::MetadataExt as _;

    let metadata = std::fs::symlink_metadata(path).ok()?;
    // A rename changes only the `ctime`. The age of a quarantined file starts with its move.
    let moved = SystemTime::UNIX_EPOCH
        + Duration::from_secs(u64::try_from(metadata.ctime()).unwrap_or_default());
    let modified = metadata.modified().ok()?.max(moved);
    let now = SystemTime::UNIX_EPOCH
        + Duration::from_secs(u64::try_from(clock::now().timestamp().as_second()).ok()?);

    Some(now.duration_since(modified).unwrap_or_default())
}

/// Follows no symlink, not even `dir` itself.
pub(in crate::workflow) fn files_below(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let mut dirs = vec![dir.to_owned()];
    dirs.retain(|dir| !dir.is_symlink());
    let mut files = Vec::new();
    std::iter::from_fn(move || {
        while files.is_empty() {
            for entry in std::fs::read_dir(dirs.pop()?)
                .into_iter()
                .flatten()
                .flatten()
            {
                match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    true => dirs.push(entry.path()),
                    false => files.push(entry.path()),
                }
            }
        }
        files.pop()
    })
}

pub(in crate::workflow) fn dir_size(dir: &Path) -> u64 {
    files_below(dir).map(|path| file_size(&path)).sum()
}

pub(in crate::workflow) fn file_size(path: &Path) -> u64 {
    std::fs::symlink_metadata(path).map_or(0, |metadata| metadata.len())
}

const PUBLISHED_LINKED: &str = "refs/teddy/published/linked-";

#[derive(Debug, Clone)]
pub(super) struct RemovedWorktree {
    pub session: String,
    pub bytes: u64,
}

#[derive(Default)]
pub(super) struct IdleWorktrees {
    pub(super) idle: Vec<(RemovedWorktree, Lock)>,
    pub(super) in_use: Vec<String>,
}

/// Also finds worktrees of deleted sessions. Locks all of them. `deleted` lose theirs with the session.
pub(super) fn find_idle_worktrees(
    project: &Project,
    deleted: &[SessionName],
    idle_days: u32,
) -> anyhow::Result<IdleWorktrees> {
    let mut result = IdleWorktrees::default();
    let deleted: Vec<String> = deleted.iter().map(SessionName::dir_name).collect();
    for listed in worktree::session_worktrees(&project.repository) {
        if deleted.contains(&listed.session) || !is_idle_worktree(project, &listed, idle_days)? {
            continue;
        }

        match recover::try_lock_worktree(&project.checkout(), &listed.session, "gc") {
            Some(lock) => {
                let bytes = dir_size(&listed.path) + dir_size(&listed.layer);
                let session = listed.session;
                result.idle.push((RemovedWorktree { session, bytes }, lock));
            }
            None => result.in_use.push(listed.session),
        }
    }

    Ok(result)
}

fn is_idle_worktree(
    project: &Project,
    listed: &RecordedWorktree,
    idle_days: u32,
) -> anyhow::Result<bool> {
    let session = SessionName::from_dir_name(&listed.session);
    let exists = match &session {
        Some(session) => project.store().has(session)?,
        None => false,
    };
    let used = age(&listed.used);
    Ok(!exists || used.is_none_or(|age| age >= DAY * idle_days))
}

/// Also removes the index. `dir_name` is that of the session.
pub(super) fn remove_worktree(project: &Project, dir_name: &str) -> anyhow::Result<bool> {
    let removed = worktree::remove_session_worktree(&project.repository, dir_name)?;
    let _ = std::fs::remove_file(project.checkout().index(&format!("session-{dir_name}")));
    Ok(removed)
}

/// With the name of the worktree.
pub(super) fn missing_checkouts(project: &Project) -> anyhow::Result<Vec<(String, Reference)>> {
    let repository = &project.repository;
    let linked = repository.common_dir().join("worktrees");
    let all = refs::list(repository, "refs/teddy/published/")?;
    let mut missing = Vec::new();
    for reference in all {
        let Some(name) = reference
            .name
            .strip_prefix(PUBLISHED_LINKED)
            .map(str::to_owned)
        else {
            continue;
        };
        // A path that cannot be read can still exist.
        let path = linked.join(&name);
        let is_there = path.try_exists();
        if !is_there.with_context(|| format!("cannot read `{}`", path.display()))? {
            missing.push((name, reference));
        }
    }
    Ok(missing)
}

pub(super) fn forget_checkouts(
    project: &Project,
    missing: &[(String, Reference)],
) -> anyhow::Result<()> {
    for (_, reference) in missing {
        let expected = Expected::At(reference.target);
        refs::delete(&project.repository, &reference.name, expected)?;
    }
    Ok(())
}

#[derive(Debug)]
pub(super) struct AgedSnapshots {
    reference: Reference,
    /// Newest first.
    retained: Vec<CommitId>,
    pub(super) old: usize,
}

pub(super) fn find_aged_snapshots(
    repository: &Repository,
    days: u32,
) -> anyhow::Result<Vec<AgedSnapshots>> {
    let oldest = clock::now().timestamp().as_second() - i64::from(days) * 24 * 60 * 60;
    let mut snapshots = Vec::new();
    for reference in refs::list(repository, "refs/teddy/snapshots/")? {
        let mut retained: Vec<CommitId> = Vec::new();
        let (mut at, mut old) = (Some(reference.target), 0);
        while let Some(id) = at {
            let commit = repository.commit(id)?;
            let keeper = commit.message.trim_end() == KEEPER;
            // The newest snapshot is the last recorded state of the files, whatever its age.
            let stays = retained.is_empty() || commit.seconds >= oldest;
            if stays {
                retained.extend(if keeper {
                    commit.parents.first().copied()
                } else {
                    Some(id)
                })
            } else {
                old += 1
            }

            at = commit.parents.get(1).copied().filter(|_| keeper);
        }

        if old > 0 {
            snapshots.push(AgedSnapshots {
                reference,
                retained,
                old,
            });
        }
    }

    Ok(snapshots)
}

pub(super) fn forget_snapshots(
    repository: &Repository,
    aged: &[AgedSnapshots],
) -> anyhow::Result<()> {
    aged.iter().try_for_each(|one| {
        move_snapshot_ref(
            repository,
            &one.reference,
            &rebuild_chain(repository, &one.retained)?,
        )
    })
}

/// `retained` is newest first.
fn rebuild_chain(repository: &Repository, retained: &[CommitId]) -> anyhow::Result<Vec<CommitId>> {
    let (mut remaining, message) = (retained.iter().rev(), format!("{KEEPER}\n"));
    let mut tip = *remaining
        .next()
        .context("the newest snapshot is always kept")?;
    let mut commits = vec![tip];
    for &commit in remaining {
        let tree = repository.commit(commit)?.tree;
        tip = repository.stage_commit(&NewCommit {
            tree,
            parents: &[commit, tip],
            message: &message,
            time: &clock::now(),
        })?;
        commits.push(tip);
    }

    Ok(commits)
}

fn move_snapshot_ref(
    repository: &Repository,
    reference: &Reference,
    commits: &[CommitId],
) -> anyhow::Result<()> {
    let trees = commits
        .iter()
        .map(|&commit| Ok(repository.commit(commit)?.tree))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let protected = protect::protect_commits(repository, commits, &trees, MergePolicy::Separate)?;
    let protected = protected.context(
        "`git gc` removed objects while they were written; nothing was forgotten, try again",
    )?;

    // Moving the ref makes the old commits unreachable, so the new ones must be durable first.
    durable::flush(repository)?;
    fault::point("before-snapshot-ref")?;
    let tip = *commits
        .last()
        .context("the newest snapshot is always kept")?;
    refs::move_to(
        repository,
        &reference.name,
        Expected::At(reference.target),
        tip,
        "teddy: gc",
    )?;

    protect::release_protected(repository, &protected)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bug: an undo found no version of a file once the first one was removed.
    #[test]
    fn a_version_stays_as_long_as_a_later_one() {
        let paths = |names: &[&str]| -> Vec<PathBuf> {
            let undo = Path::new("/teddy/undo");
            names.iter().map(|name| undo.join(name)).collect()
        };
        let old = paths(&["replaced/a-1.1.x", "replaced/b-1.1.x", "rescued/a-1.1.x"]);
        let young = paths(&["replaced/a-1.2.x", "rescued/b-1.2.x"]);
        let expected = paths(&["replaced/b-1.1.x", "rescued/a-1.1.x"]);
        assert_eq!(without_earlier_versions(old, young), expected);
    }
}
