//! Finds out what commands did in paths that no snapshot includes: tracked files that they moved
//! there, and nested repositories in which they worked.
//!
//! A moved file keeps its size, mtime and content. Only files with the size and mtime of a missing
//! file are opened and compared, or with its size if its mtime is unknown.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::bstr::ByteSlice as _;
use gix::index::entry::Mode as IndexMode;
use gix::index::entry::stat::Time;
use gix::index::{Entry, State};

use super::{SessionWorktree, index};
use crate::git::diff::{self, TreeChange};
use crate::git::irregular::link_target;
use crate::git::keep::damaged::FsTime;
use crate::git::object::large::{self, LARGE};
use crate::git::object::{BlobId, TreeEntry, TreeId};
use crate::git::path_handle::{IfMissing, Top, WalkResult};
use crate::git::paths;
use crate::git::publish;
use crate::git::repository::Repository;
use crate::git::version::{self, TreeVersion};
use crate::host::file::{Root, open_regular};
use crate::text::transplant::without_ids;

const MAX_NAMES: usize = 1_000_000;

/// Missing files by size and mtime.
type MissingFiles<'a> = BTreeMap<(u32, Option<Time>), Vec<(&'a [u8], &'a TreeEntry)>>;

/// Files of a worktree before commands run: its index.
pub struct Before(Arc<State>);

impl SessionWorktree {
    /// Returns whether a file was made, changed and moved before a moment.
    pub fn is_older(&self, path: &[u8], time: FsTime) -> bool {
        let file = self.files.join(OsStr::from_bytes(path)).symlink_metadata();
        file.is_ok_and(|file| FsTime::of(&file) < time)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub from: Vec<u8>,
    pub to: Vec<u8>,
    /// Whether the new path is in a nested repository.
    pub opaque: bool,
}

struct WorktreeName {
    path: Vec<u8>,
    /// Whether it is in a nested repository.
    opaque: bool,
    metadata: Metadata,
}

impl Before {
    pub fn of(worktree: &SessionWorktree) -> anyhow::Result<Before> {
        Ok(Before(match &worktree.lower {
            Some(lower) => Arc::clone(&lower.index),
            None => Arc::new(index::read(&worktree.repository)?),
        }))
    }

    /// Returns the moved files among `deleted`: those whose new path is not in `tree`. `old` is the
    /// tree before.
    pub fn moved(
        &self,
        worktree: &SessionWorktree,
        deleted: &[TreeChange],
        old: TreeId,
        tree: TreeId,
    ) -> anyhow::Result<Vec<Moved>> {
        let mut missing: MissingFiles<'_> = BTreeMap::new();
        if deleted.is_empty() {
            return Ok(Vec::new());
        }

        for change in deleted {
            let indexed = self.0.entry_by_path(change.path.as_bstr());
            if let (Some(indexed), Some(entry)) = (indexed, &change.old) {
                let key = key_of(&worktree.repository, indexed, entry);
                missing.entry(key).or_default().push((&change.path, entry));
            }
        }

        let mut moved = Vec::new();
        if missing.is_empty() {
            return Ok(moved);
        }

        for candidate in worktree.names_in(vec![(Vec::new(), false)], false)? {
            let (size, time) = key(&candidate.metadata);
            let keys = [(size, Some(time)), (size, None)];
            if !keys.iter().any(|key| missing.contains_key(key)) {
                continue;
            }
            // Files in a nested repository are not in the tree.
            if !candidate.opaque && worktree.repository.entry(tree, &candidate.path)?.is_some() {
                continue;
            }

            for key in keys {
                let Some(same) = missing.get_mut(&key) else {
                    continue;
                };
                if let Some(at) = worktree.position(same, old, &candidate)? {
                    let (from, _) = same.remove(at);
                    moved.push(Moved {
                        from: from.to_vec(),
                        to: candidate.path,
                        opaque: candidate.opaque,
                    });
                    break;
                }
            }
        }

        Ok(moved)
    }

    /// Returns the nested repositories in which something changed since a moment.
    pub fn changed_repositories(
        &self,
        worktree: &SessionWorktree,
        more: &[Vec<u8>],
        since: FsTime,
    ) -> anyhow::Result<Vec<Vec<u8>>> {
        let entries = self.0.entries().iter();
        let own = entries.filter(|entry| entry.mode == IndexMode::COMMIT);
        let own = own.map(|entry| entry.path(&self.0).to_vec());
        let mut repositories: Vec<_> = own.chain(more.iter().cloned()).collect();
        repositories.sort();
        repositories.dedup();

        let mut changed = Vec::new();
        for path in repositories {
            let inside = worktree.names_in(vec![(path.clone(), true)], true)?;
            let names = inside.iter().map(|file| FsTime::of(&file.metadata));
            if names
                .chain(worktree.moves_of(&path))
                .any(|time| time >= since)
            {
                changed.push(path);
            }
        }

        Ok(changed)
    }
}

impl SessionWorktree {
    /// Returns the times at which a nested repository was created and at which its HEAD moved.
    fn moves_of(&self, path: &[u8]) -> Vec<FsTime> {
        let top = self.full_path(path);
        let git = top.join(".git");
        let git = link_target(&git).unwrap_or(git);
        let moves = ["HEAD", "logs/HEAD", "reftable/tables.list"].map(|name| git.join(name));
        let looked_at = std::iter::once(&top).chain(&moves);
        let metadata = looked_at.flat_map(std::fs::symlink_metadata);

        metadata.map(|metadata| FsTime::of(&metadata)).collect()
    }

    /// Returns the position of the missing file that has the content of the candidate.
    fn position(
        &self,
        missing: &[(&[u8], &TreeEntry)],
        old: TreeId,
        candidate: &WorktreeName,
    ) -> anyhow::Result<Option<usize>> {
        for (at, (from, entry)) in missing.iter().enumerate() {
            if self.has_same_content(old, from, entry, candidate)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Returns whether a file equals the tree's entry of another path.
    fn has_same_content(
        &self,
        old: TreeId,
        from: &[u8],
        entry: &TreeEntry,
        candidate: &WorktreeName,
    ) -> anyhow::Result<bool> {
        if candidate.opaque {
            let Ok(file) = open_regular(&self.full_path(&candidate.path)) else {
                return Ok(false);
            };
            let size = file.metadata()?.len();
            let id = large::id_of(&self.repository, &file, size);
            return Ok(id.is_ok_and(|id| id == Some(entry.id)));
        }

        let WalkResult::Handle(handle) =
            Top::open_own(&self.files)?.walk(&candidate.path, IfMissing::Stop)?
        else {
            return Ok(false);
        };
        let mut version = version::tree_version(&self.repository, old, std::iter::once(from))?;
        version.is(
            from,
            Some(entry),
            &version::read_disk(&self.repository, &handle)?,
        )
    }

    /// Lists directories recursively, optionally with subdirectories. Unreadable directories are
    /// skipped.
    fn names_in(
        &self,
        mut dirs: Vec<(Vec<u8>, bool)>,
        with_dirs: bool,
    ) -> anyhow::Result<Vec<WorktreeName>> {
        let mut names = Vec::new();
        while let Some((dir, opaque)) = dirs.pop() {
            let dir_path = self.full_path(&dir);
            let opaque = opaque || (!dir.is_empty() && self.is_repository(&dir));
            for entry in std::fs::read_dir(&dir_path).into_iter().flatten().flatten() {
                let name = entry.file_name().into_vec();
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                if name == b".git" || names.len() >= MAX_NAMES {
                    continue;
                }

                let path = paths::join(&dir, &name);

                if metadata.is_dir() {
                    dirs.push((path.clone(), opaque));
                }

                if with_dirs || metadata.is_file() || metadata.is_symlink() {
                    names.push(WorktreeName {
                        path,
                        opaque,
                        metadata,
                    });
                }
            }
        }

        names.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(names)
    }

    /// Returns whether a directory is a nested repository, here or in the user's files.
    fn is_repository(&self, dir: &[u8]) -> bool {
        let dir = Path::new(OsStr::from_bytes(dir)).join(".git");
        let lower = self.lower.as_ref().map(|lower| &lower.files);
        let tops = std::iter::once(&self.files).chain(lower);
        tops.map(|top| top.join(&dir)).any(|git| git.exists())
    }

    fn full_path(&self, path: &[u8]) -> PathBuf {
        self.files.join(OsStr::from_bytes(path))
    }
}

/// Returns the size and mtime, truncated as in git's index. A move changes neither.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the index keeps the low bits"
)]
fn key(metadata: &Metadata) -> (u32, Time) {
    let time = Time {
        secs: metadata.mtime() as u32,
        nsecs: metadata.mtime_nsec() as u32,
    };
    (metadata.len() as u32, time)
}

/// The time is unknown if the user's files have another version, or if the file was written at the
/// time of the snapshot.
fn key_of(repository: &Repository, indexed: &Entry, entry: &TreeEntry) -> (u32, Option<Time>) {
    if indexed.stat.mtime.secs != 0 {
        return (indexed.stat.size, Some(indexed.stat.mtime));
    }
    // If a filter changes the size, the file is not found.
    let header = repository.gix.find_header(entry.id);
    let size = header.map(|header| header.size()).unwrap_or_default();
    (u32::try_from(size).unwrap_or(u32::MAX), None)
}

// Keeps bytes that commands wrote and that git does not store, such as the output of a notebook
// that a filter drops: the turn's tree lacks them, and the worktree can be removed.

/// Keeps the bytes of the files of a worktree that differ between two trees and are not what a
/// checkout of the second one has. The publication that follows writes them.
pub fn keep_unstored(
    repository: &Repository,
    worktree: &SessionWorktree,
    from: TreeId,
    to: TreeId,
) -> anyhow::Result<()> {
    let changes = diff::changes(repository, from, to)?;
    let files: Vec<(&[u8], TreeEntry)> = changes
        .iter()
        .filter_map(|change| Some((change.path.as_slice(), change.new.clone()?)))
        .filter(|(_, entry)| entry.is_file())
        .collect();
    if files.is_empty() {
        return Ok(());
    }

    let root = Root::open_strictly(&worktree.files)?;
    let mut version = version::tree_version(repository, to, files.iter().map(|(path, _)| *path))?;
    for (path, entry) in &files {
        if let Some(bytes) = read_unstored(repository, &root, &mut version, path, entry)? {
            publish::keep_replaced_bytes(repository, entry.id, path, &bytes)?;
        }
    }
    Ok(())
}

/// Returns the bytes of a file if git stores them as an entry and would check out others.
fn read_unstored(
    repository: &Repository,
    root: &Root,
    version: &mut TreeVersion<'_>,
    path: &[u8],
    entry: &TreeEntry,
) -> anyhow::Result<Option<Vec<u8>>> {
    let file = Path::new(OsStr::from_bytes(path));
    let Ok(Some(metadata)) = root.entry(file) else {
        return Ok(None);
    };
    let size = repository.blob_size(BlobId::of(entry.id))?;
    // Without a filter, only other line endings make a difference, and those have another length.
    if version.filter.keeps(path)? && metadata.size == size {
        return Ok(None);
    }
    let Ok(bytes) = root.read(file, LARGE) else {
        return Ok(None);
    };
    let Ok(plain) = version.checked_out(path, entry) else {
        return Ok(None);
    };
    // The id in `$Id$` is that of the version before.
    let is_own =
        without_ids(&plain) != without_ids(&bytes) && version.stores(path, &bytes, entry)?;
    Ok(is_own.then_some(bytes))
}
