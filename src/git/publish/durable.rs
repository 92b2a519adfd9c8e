//! Flushes, so that a power cut leaves each file old or new, never empty, and leaves it new once
//! `publish` has returned.
//!
//! `syncfs` waits for everything that any process wrote to the file system, for example a build.
//! Most turns change a few files, so these and their directories are flushed one by one; more than
//! `FEW` get one `syncfs`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::Publisher;
use crate::git::diff;
use crate::git::keep::fresh;
use crate::git::object::{EntryMode, TreeId};
use crate::git::path_handle::durable;
use crate::git::path_handle::{IfMissing, Top, WalkResult};
use crate::git::repository::Repository;
use crate::host::sync::sync_whole;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flush {
    None,
    /// `fsync` of each file when it is staged.
    Each,
    /// One `syncfs` for all files.
    FileSystem,
}

/// Above this number of files, or of directories, one `syncfs` replaces the single flushes.
const MAX_SINGLE_FLUSHES: usize = 8;

pub(super) fn choose_flush(publisher: &Publisher<'_>, count: usize) -> Flush {
    match (publisher.guard.durable, count > MAX_SINGLE_FLUSHES) {
        (false, _) => Flush::None,
        (true, false) => Flush::Each,
        (true, true) => Flush::FileSystem,
    }
}

/// Flushes staged files, given as pairs of a path and the temporary name next to it. Without this,
/// a power cut after a swap can leave empty files.
pub(super) fn flush_staged<'p>(
    publisher: &Publisher<'_>,
    prepared: impl Iterator<Item = (&'p [u8], &'p [u8])>,
) -> anyhow::Result<()> {
    if publisher.flush != Flush::FileSystem
        || sync_whole(publisher.repository.workdir()).context(FLUSH_ACTION)?
    {
        return Ok(());
    }
    for (path, temporary) in prepared {
        if let WalkResult::Handle(handle) = publisher.top.walk(path, IfMissing::Stop)? {
            durable::sync_contents(&handle.sibling(temporary)).context(FLUSH_ACTION)?;
        }
    }

    Ok(())
}

/// Flushes the directories of all changed names, including names that an earlier run changed before
/// it crashed.
pub(super) fn flush_names(publisher: &Publisher<'_>) -> anyhow::Result<()> {
    if !publisher.guard.durable {
        return Ok(());
    }

    let is_away = flush_displaced_dir(publisher).context(FLUSH_ACTION)?;
    if let Some(dirs) = &publisher.dirs
        && flush_dirs(publisher, dirs).context(FLUSH_ACTION)?
        && is_away
    {
        return Ok(());
    }
    if sync_whole(publisher.repository.workdir()).context(FLUSH_ACTION)? || publisher.dirs.is_some()
    {
        return Ok(());
    }

    // No `syncfs` on this system: flush directories one by one, however many.
    let changes = diff::changes(publisher.repository, publisher.from, publisher.to)?;
    let paths = changes.iter().map(|change| change.path.as_slice());
    flush_dirs(publisher, &all_parent_dirs(paths)).context(FLUSH_ACTION)?;
    Ok(())
}

fn flush_displaced_dir(publisher: &Publisher<'_>) -> io::Result<bool> {
    match Top::open(&publisher.repository.teddy_dir()) {
        Ok(top) => flush_dir(&top, b"undo/displaced/"),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Flushes directories one by one. Returns `false` if one could not be flushed: a symlink replaced
/// it, it is not readable, or its file system cannot flush it.
fn flush_dirs(publisher: &Publisher<'_>, dirs: &BTreeSet<PathBuf>) -> io::Result<bool> {
    let mut is_durable = true;
    for dir in dirs {
        let mut inside = dir.as_os_str().as_bytes().to_vec();
        if !inside.is_empty() {
            inside.push(b'/');
        }
        is_durable &= flush_dir(&publisher.top, &inside)?;
    }
    Ok(is_durable)
}

/// Flushes one directory below `top` without following symlinks. A missing directory counts as
/// flushed.
fn flush_dir(top: &Top, dir: &[u8]) -> io::Result<bool> {
    match top.walk(&[dir, b"x"].concat(), IfMissing::Stop)? {
        WalkResult::Handle(handle) => durable::sync_parent_dir(&handle),
        WalkResult::Missing => Ok(true),
        WalkResult::Blocked(_)
        | WalkResult::Denied
        | WalkResult::Boundary
        | WalkResult::Refused => Ok(false),
    }
}

const FLUSH_ACTION: &str = "making the files durable";

/// Returns the directories whose entries change: the parents of the paths, and the parent of each
/// directory that is itself new or removed (`stays` returns false). `None` if there are more than
/// `FEW`.
pub(super) fn changed_dirs<'p>(
    paths: impl Iterator<Item = &'p [u8]>,
    persists: impl Fn(&Path) -> anyhow::Result<bool>,
) -> anyhow::Result<Option<BTreeSet<PathBuf>>> {
    let mut dirs = BTreeSet::new();
    for path in paths {
        for dir in parent_dirs(path) {
            let is_known = dirs.contains(&dir);
            let is_last = is_known || dir.as_os_str().is_empty() || persists(&dir)?;
            dirs.insert(dir);
            if is_last {
                break;
            }
        }
        if dirs.len() > MAX_SINGLE_FLUSHES {
            return Ok(None);
        }
    }
    Ok(Some(dirs))
}

/// Returns whether a directory exists before and after, with its own name already on disk.
///
/// Both trees must have it. That is not enough: a sparse checkout leaves directories out, so the
/// user or a killed run can have created it just now. So its parent must not have changed recently
/// either.
pub(super) fn dir_persists(
    repository: &Repository,
    trees: [TreeId; 2],
    dir: &Path,
) -> anyhow::Result<bool> {
    for tree in trees {
        let entry = repository.entry(tree, dir.as_os_str().as_bytes())?;
        if entry.is_none_or(|entry| entry.mode != EntryMode::Tree) {
            return Ok(false);
        }
    }

    let inside = repository.workdir().join(dir);
    let is_there = inside
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_dir());
    let parent = inside.parent().and_then(|parent| parent.metadata().ok());
    // A recent change of the parent can be the creation of this directory.
    Ok(is_there && parent.is_some_and(|parent| !fresh::is_recent(&parent)))
}

fn all_parent_dirs<'p>(paths: impl Iterator<Item = &'p [u8]>) -> BTreeSet<PathBuf> {
    paths.flat_map(parent_dirs).collect()
}

/// Returns the ancestors of a path, innermost first. The last one is the empty path, the top.
fn parent_dirs(path: &[u8]) -> impl Iterator<Item = PathBuf> {
    let above = Path::new(OsStr::from_bytes(path)).ancestors().skip(1);
    above.map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::sample;

    #[track_caller]
    fn check(paths: &[&str], expected: &[&str]) {
        // A directory named "new" is created, and so is everything in it.
        let persists = |dir: &Path| Ok(dir.iter().all(|part| part != "new"));
        let paths_of = paths.iter().map(|path| path.as_bytes());
        let actual = changed_dirs(paths_of, persists).unwrap().unwrap();
        let expected = expected.iter().map(PathBuf::from).collect();
        assert_eq!(actual, expected, "{paths:?}");
    }

    #[test]
    fn every_folder_whose_names_change_is_flushed() {
        check(&[], &[]);
        check(&["a"], &[""]);
        check(&["a/b/c", "a/d"], &["a", "a/b"]);
        check(&["a/new/b/c"], &["a", "a/new", "a/new/b"]);
        check(&["new/c", "new/d", "new/new/e"], &["", "new", "new/new"]);
    }

    /// Simulates a sparse checkout that left out directories of both trees.
    #[test]
    fn a_folder_that_is_made_or_was_just_made_does_not_stay() {
        let outer = tempfile::tempdir().unwrap();
        gix::init(outer.path()).unwrap();
        let repository = Repository::open(outer.path()).unwrap();
        let tree = sample::write(&repository, &[("d/e/f".to_owned(), 1)].into());
        let persists = |dir: &str| dir_persists(&repository, [tree; 2], Path::new(dir)).unwrap();
        assert!(!persists("d") && !persists("d/e"));
        std::fs::create_dir_all(outer.path().join("d/e")).unwrap();
        assert!(!persists("d") && !persists("d/e"));
    }

    #[test]
    fn a_folder_is_flushed_through_no_link() {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(outer.path().join("top/a/b")).unwrap();
        std::fs::create_dir(outer.path().join("outside")).unwrap();
        std::os::unix::fs::symlink("../outside", outer.path().join("top/link")).unwrap();
        let top = Top::open(&outer.path().join("top")).unwrap();
        for (dir, expected) in [
            ("", true),
            ("a/", true),
            ("a/b/", true),
            ("gone/", true),
            ("link/", false),
        ] {
            let actual = flush_dir(&top, dir.as_bytes()).unwrap();
            assert_eq!(actual, expected, "`{dir}`");
        }
    }

    #[test]
    fn many_folders_are_not_flushed_one_by_one() {
        let paths: Vec<_> = (0..MAX_SINGLE_FLUSHES)
            .map(|number| format!("{number}/x"))
            .collect();
        let paths = paths.iter().map(|path| path.as_bytes());
        let actual = changed_dirs(paths, |_| Ok(false)).unwrap();
        assert_eq!(actual, None);
    }
}
