//! Files outside of snapshots that occupy paths of a restore: ignored files, secrets, or files in a
//! directory where a turn has a file.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::git::diff;
use crate::git::object::{EntryMode, TreeId};
use crate::git::repository::Repository;
use crate::git::snapshot::limits::SnapshotLimits;
use crate::git::snapshot::paths;
use crate::workflow::project::Project;

/// A directory with more files, such as installed packages, is not recorded. It stays and is
/// reported.
const MAX_RECORDED_IN_DIR: usize = 1000;

/// Existing files outside of snapshots. A restore records them before it replaces them.
pub(super) struct HiddenFiles {
    /// At a path that a turn changes.
    at_paths: BTreeSet<Vec<u8>>,
    /// In or above such a path: a file instead of a directory, or the reverse.
    in_the_way: BTreeSet<Vec<u8>>,
}

impl HiddenFiles {
    pub(super) fn is_empty(&self) -> bool {
        self.at_paths.is_empty() && self.in_the_way.is_empty()
    }

    pub(super) fn all(&self) -> Vec<Vec<u8>> {
        self.at_paths.union(&self.in_the_way).cloned().collect()
    }

    /// Returns the files that stay. They must not become part of the turn: the next snapshot lacks
    /// them, so they would look deleted.
    pub(super) fn unchanged(
        &self,
        repository: &Repository,
        [from, to]: [TreeId; 2],
    ) -> anyhow::Result<Vec<Vec<u8>>> {
        let mut unchanged = Vec::new();
        for path in &self.in_the_way {
            let entry = repository.entry(from, path)?;
            if entry.is_some() && entry == repository.entry(to, path)? {
                unchanged.push(path.clone());
            }
        }
        Ok(unchanged)
    }
}

/// Returns the files outside of the snapshot `now` that are at the changed paths or occupy them.
/// Secrets are left out.
pub(super) fn find_hidden(
    project: &Project,
    now: TreeId,
    moves: &[[TreeId; 2]],
) -> anyhow::Result<HiddenFiles> {
    let (repository, limits) = (&project.repository, project.limits());
    let mut hidden = HiddenFiles {
        at_paths: BTreeSet::new(),
        in_the_way: BTreeSet::new(),
    };
    for &[from, to] in moves {
        let mut absent = BTreeSet::new();
        for tree in [from, to] {
            let missing = diff::changes(repository, tree, now)?.into_iter();
            absent.extend(
                missing
                    .filter(|change| change.new.is_none())
                    .map(|change| change.path),
            );
        }

        for change in diff::changes(repository, from, to)? {
            if !absent.contains(&change.path) {
                continue;
            }
            if is_file(&kind_on_disk(repository, &change.path)) {
                if !limits.is_secret(&change.path) {
                    hidden.at_paths.insert(change.path);
                }
            } else if change.new.is_some() {
                for path in required_in_snapshot(repository, &limits, &change.path) {
                    if repository.entry(now, &path)?.is_none() {
                        hidden.in_the_way.insert(path);
                    }
                }
            }
        }
    }

    Ok(hidden)
}

/// Returns the paths that cannot be written because of a file outside of the snapshot, with that
/// file.
pub(super) fn find_blocked(
    project: &Project,
    [from, to]: [TreeId; 2],
) -> anyhow::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let repository = &project.repository;
    let mut blocked = BTreeMap::new();
    for change in diff::changes(repository, from, to)? {
        let is_new = change.old.is_none();
        if !is_new
            || change
                .new
                .is_none_or(|entry| entry.mode == EntryMode::Gitlink)
        {
            continue;
        }

        let candidates = match is_file(&kind_on_disk(repository, &change.path)) {
            true if paths::are_paths_unchanged(
                repository,
                to,
                std::slice::from_ref(&change.path),
            )? =>
            {
                continue;
            }
            true => vec![change.path.clone()],
            false => match file_above(repository, &change.path) {
                Some(above) => vec![above],
                None => first_below(repository, from, &change.path)?,
            },
        };
        for path in candidates {
            if repository.entry(from, &path)?.is_none() {
                blocked.insert(change.path.clone(), path);
            }
        }
    }

    Ok(blocked)
}

/// Returns what a snapshot must contain before a new file can be written: the files in a directory of
/// its name, or a file with the name of a parent directory.
fn required_in_snapshot(
    repository: &Repository,
    limits: &SnapshotLimits,
    path: &[u8],
) -> Vec<Vec<u8>> {
    let mut files: Vec<Vec<u8>> = file_above(repository, path).into_iter().collect();
    let is_whole = each_below(repository, path, &mut |file| {
        files.push(file);
        files.len() <= MAX_RECORDED_IN_DIR
    });
    files.retain(|path| !limits.is_secret(path));
    if is_whole { files } else { Vec::new() }
}

/// Returns a file or link that occupies the path of a parent directory.
fn file_above(repository: &Repository, path: &[u8]) -> Option<Vec<u8>> {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let mut above = ends.map(|(end, _)| &path[..end]);
    let file = above.find(|dir| is_file(&kind_on_disk(repository, dir)));
    file.map(<[u8]>::to_vec)
}

fn first_below(repository: &Repository, tree: TreeId, dir: &[u8]) -> anyhow::Result<Vec<Vec<u8>>> {
    let (mut files, mut result) = (Vec::new(), Ok(()));
    each_below(
        repository,
        dir,
        &mut |file| match repository.entry(tree, &file) {
            Ok(Some(_)) => true,
            Ok(None) => {
                files.push(file);
                false
            }
            Err(error) => {
                result = Err(error);
                false
            }
        },
    );
    result.map(|()| files)
}

/// Calls `meet` with each file in a directory until it returns `false`; returns whether it never did.
/// An unreadable directory is passed itself.
fn each_below(repository: &Repository, dir: &[u8], meet: &mut dyn FnMut(Vec<u8>) -> bool) -> bool {
    let top = repository.workdir();
    let mut waiting: Vec<PathBuf> = Vec::new();
    if kind_on_disk(repository, dir).is_some_and(|kind| kind.is_dir()) {
        waiting.push(Path::new(OsStr::from_bytes(dir)).to_owned());
    }

    while let Some(dir) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(top.join(&dir)) else {
            if !meet(dir.as_os_str().as_bytes().to_vec()) {
                return false;
            }
            continue;
        };
        for entry in entries.flatten() {
            let path = dir.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(path),
                _ if meet(path.as_os_str().as_bytes().to_vec()) => {}
                _ => return false,
            }
        }
    }
    true
}

fn is_file(kind: &Option<std::fs::FileType>) -> bool {
    kind.is_some_and(|kind| !kind.is_dir())
}

/// Returns the metadata of a path; `None` if it does not exist.
fn kind_on_disk(repository: &Repository, path: &[u8]) -> Option<std::fs::FileType> {
    let path = repository.workdir().join(OsStr::from_bytes(path));
    Some(path.symlink_metadata().ok()?.file_type())
}
