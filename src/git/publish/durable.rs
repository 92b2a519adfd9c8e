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
use crate::git::place::durable;
use crate::git::place::{IfMissing, Top, WalkResult};
use crate::git::repository::Repository;
use crate::host::sync::sync_whole;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flush {
    None,
    /// `fsync` of each file when it is staged.
    Each,
    /// One `syncfs` for all files.
    Whole,
}

/// Above this number of files, or of directories, one `syncfs` replaces the single flushes.
const FEW: usize = 8;

pub(super) fn flush_of(publisher: &Publisher<'_>, count: usize) -> Flush {
    match (publisher.guard.durable, count > FEW) {
        (false, _) => Flush::None,
        (true, false) => Flush::Each,
        (true, true) => Flush::Whole,
    }
}

/// Flushes staged files, given as pairs of a path and the temporary name next to it. Without this,
/// a power cut after a swap can leave empty files.
pub(super) fn flush_prepared<'p>(
    publisher: &Publisher<'_>,
    prepared: impl Iterator<Item = (&'p [u8], &'p [u8])>,
) -> anyhow::Result<()> {
    if publisher.flush != Flush::Whole
        || sync_whole(publisher.repository.workdir()).context(WORDS)?
    {
        return Ok(());
    }
    for (path, temporary) in prepared {
        if let WalkResult::Place(place) = publisher.top.walk(path, IfMissing::Stop)? {
            durable::sync(&place.sibling(temporary)).context(WORDS)?;
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

    let is_away = flush_displaced(publisher).context(WORDS)?;
    if let Some(folders) = &publisher.folders
        && flush_folders(publisher, folders).context(WORDS)?
        && is_away
    {
        return Ok(());
    }
    if sync_whole(publisher.repository.workdir()).context(WORDS)? || publisher.folders.is_some() {
        return Ok(());
    }

    // No `syncfs` on this system: flush directories one by one, however many.
    let changes = diff::changes(publisher.repository, publisher.from, publisher.to)?;
    let paths = changes.iter().map(|change| change.path.as_slice());
    flush_folders(publisher, &all_folders_of(paths)).context(WORDS)?;
    Ok(())
}

fn flush_displaced(publisher: &Publisher<'_>) -> io::Result<bool> {
    match Top::open(&publisher.repository.teddy_dir()) {
        Ok(top) => flush_folder(&top, b"undo/displaced/"),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Flushes directories one by one. Returns `false` if one could not be flushed: a symlink replaced
/// it, it is not readable, or its file system cannot flush it.
fn flush_folders(publisher: &Publisher<'_>, folders: &BTreeSet<PathBuf>) -> io::Result<bool> {
    let mut is_durable = true;
    for folder in folders {
        let mut inside = folder.as_os_str().as_bytes().to_vec();
        if !inside.is_empty() {
            inside.push(b'/');
        }
        is_durable &= flush_folder(&publisher.top, &inside)?;
    }
    Ok(is_durable)
}

/// Flushes one directory below `top` without following symlinks. A missing directory counts as
/// flushed.
fn flush_folder(top: &Top, folder: &[u8]) -> io::Result<bool> {
    match top.walk(&[folder, b"x"].concat(), IfMissing::Stop)? {
        WalkResult::Place(place) => durable::sync_folder(&place),
        WalkResult::Missing => Ok(true),
        WalkResult::Blocked(_)
        | WalkResult::Closed
        | WalkResult::Boundary
        | WalkResult::Refused => Ok(false),
    }
}

const WORDS: &str = "making the files durable";

/// Returns the directories whose entries change: the parents of the paths, and the parent of each
/// directory that is itself new or removed (`stays` returns false). `None` if there are more than
/// `FEW`.
pub(super) fn folders_of<'p>(
    paths: impl Iterator<Item = &'p [u8]>,
    stays: impl Fn(&Path) -> anyhow::Result<bool>,
) -> anyhow::Result<Option<BTreeSet<PathBuf>>> {
    let mut folders = BTreeSet::new();
    for path in paths {
        for folder in above(path) {
            let is_known = folders.contains(&folder);
            let is_last = is_known || folder.as_os_str().is_empty() || stays(&folder)?;
            folders.insert(folder);
            if is_last {
                break;
            }
        }
        if folders.len() > FEW {
            return Ok(None);
        }
    }
    Ok(Some(folders))
}

/// Returns whether a directory exists before and after, with its own name already on disk.
///
/// Both trees must have it. That is not enough: a sparse checkout leaves directories out, so the
/// user or a killed run can have created it just now. So its parent must not have changed recently
/// either.
pub(super) fn stays(
    repository: &Repository,
    trees: [TreeId; 2],
    folder: &Path,
) -> anyhow::Result<bool> {
    for tree in trees {
        let entry = repository.entry(tree, folder.as_os_str().as_bytes())?;
        if entry.is_none_or(|entry| entry.mode != EntryMode::Tree) {
            return Ok(false);
        }
    }

    let inside = repository.workdir().join(folder);
    let is_there = inside.symlink_metadata().is_ok_and(|found| found.is_dir());
    let beside = inside.parent().and_then(|beside| beside.metadata().ok());
    // A recent change of the parent can be the creation of this directory.
    Ok(is_there && beside.is_some_and(|beside| !fresh::is_young(&beside)))
}

fn all_folders_of<'p>(paths: impl Iterator<Item = &'p [u8]>) -> BTreeSet<PathBuf> {
    paths.flat_map(above).collect()
}

/// Returns the ancestors of a path, innermost first. The last one is the empty path, the top.
fn above(path: &[u8]) -> impl Iterator<Item = PathBuf> {
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
        let stays = |folder: &Path| Ok(folder.iter().all(|part| part != "new"));
        let paths_of = paths.iter().map(|path| path.as_bytes());
        let found = folders_of(paths_of, stays).unwrap().unwrap();
        let expected = expected.iter().map(PathBuf::from).collect();
        assert_eq!(found, expected, "{paths:?}");
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
        let stays = |folder: &str| stays(&repository, [tree; 2], Path::new(folder)).unwrap();
        assert!(!stays("d") && !stays("d/e"));
        std::fs::create_dir_all(outer.path().join("d/e")).unwrap();
        assert!(!stays("d") && !stays("d/e"));
    }

    #[test]
    fn a_folder_is_flushed_through_no_link() {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(outer.path().join("top/a/b")).unwrap();
        std::fs::create_dir(outer.path().join("outside")).unwrap();
        std::os::unix::fs::symlink("../outside", outer.path().join("top/link")).unwrap();
        let top = Top::open(&outer.path().join("top")).unwrap();
        for (folder, expected) in [
            ("", true),
            ("a/", true),
            ("a/b/", true),
            ("gone/", true),
            ("link/", false),
        ] {
            let found = flush_folder(&top, folder.as_bytes()).unwrap();
            assert_eq!(found, expected, "`{folder}`");
        }
    }

    #[test]
    fn many_folders_are_not_flushed_one_by_one() {
        let paths: Vec<_> = (0..FEW).map(|number| format!("{number}/x")).collect();
        let paths = paths.iter().map(|path| path.as_bytes());
        let found = folders_of(paths, |_| Ok(false)).unwrap();
        assert_eq!(found, None);
    }
}
