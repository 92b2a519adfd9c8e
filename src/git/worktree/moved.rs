//! Finds out what commands did in paths that no snapshot includes: tracked files that they moved
//! there, and nested repositories in which they worked.
//!
//! A moved file keeps its size, mtime and content. Only files with the size and mtime of a missing
//! file are opened and compared.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::bstr::ByteSlice as _;
use gix::index::State;
use gix::index::entry::Mode as IndexMode;

use super::layer::index::LayerIndex;
use super::{SessionWorktree, index};
use crate::git::diff::TreeChange;
use crate::git::keep::corrupt::Moment;
use crate::git::object::large;
use crate::git::object::{TreeEntry, TreeId};
use crate::git::place::{IfMissing, Top, WalkResult};
use crate::git::version;
use crate::host::file::{open_regular, read_regular_text};

const MAX_NAMES: usize = 1_000_000;
const MAX_LINK: u64 = 64 << 10;

/// Missing files by size and mtime.
type Lost<'a> = BTreeMap<(u32, u32, u32), Vec<(&'a [u8], &'a TreeEntry)>>;

/// Files of a worktree before commands run.
pub enum Before {
    /// Index of a copy.
    Read(Box<State>),
    /// Index of a layer, decoded only if a file is missing.
    Written(Arc<LayerIndex>),
}

impl SessionWorktree {
    /// Returns whether a file was made, changed and moved before a moment.
    pub fn is_older(&self, path: &[u8], moment: Moment) -> bool {
        let file = self.files.join(OsStr::from_bytes(path)).symlink_metadata();
        file.is_ok_and(|file| Moment::of(&file) < moment)
    }
}

/// A look into a worktree.
struct Look<'a>(&'a SessionWorktree);

/// A tracked file that was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Old path.
    pub from: Vec<u8>,
    /// New path.
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
    /// Records the state before commands run.
    pub fn of(worktree: &SessionWorktree) -> anyhow::Result<Before> {
        match &worktree.below {
            Some(below) => Ok(Before::Written(Arc::clone(&below.index))),
            None => Ok(Before::Read(Box::new(index::read(&worktree.repository)?))),
        }
    }

    /// Returns the moved files among `gone`: those whose new path is not in `tree`. `old` is the
    /// tree before.
    pub fn moved(
        &self,
        worktree: &SessionWorktree,
        gone: &[TreeChange],
        (old, tree): (TreeId, TreeId),
    ) -> anyhow::Result<Vec<Moved>> {
        let mut lost: Lost<'_> = BTreeMap::new();
        if gone.is_empty() {
            return Ok(Vec::new());
        }

        let (before, look) = (&*self.state()?, Look(worktree));
        for change in gone {
            let known = before.entry_by_path(change.path.as_bstr());
            if let (Some(known), Some(entry)) = (known, &change.old) {
                let (time, size) = (known.stat.mtime, known.stat.size);
                let same = lost.entry((size, time.secs, time.nsecs)).or_default();
                same.push((&change.path, entry));
            }
        }

        let mut moved = Vec::new();
        if lost.is_empty() {
            return Ok(moved);
        }

        for found in look.names()? {
            let Some(same) = lost.get_mut(&key(&found.metadata)) else {
                continue;
            };
            // Files in a nested repository are not in the tree.
            if !found.opaque && worktree.repository.entry(tree, &found.path)?.is_some() {
                continue;
            }

            for at in 0..same.len() {
                let (from, entry) = same[at];
                if look.is_same(old, (from, entry), &found)? {
                    moved.push(Moved {
                        from: from.to_vec(),
                        to: found.path,
                        opaque: found.opaque,
                    });
                    same.remove(at);
                    break;
                }
            }
        }

        Ok(moved)
    }

    /// Returns the nested repositories in which something changed since a moment.
    pub fn worked_in(
        &self,
        worktree: &SessionWorktree,
        more: &[Vec<u8>],
        since: Moment,
    ) -> anyhow::Result<Vec<Vec<u8>>> {
        let mut repositories = self.repositories();
        let look = Look(worktree);
        repositories.extend(more.iter().cloned());
        repositories.sort();
        repositories.dedup();

        let mut worked_in = Vec::new();
        for path in repositories {
            let inside = look.names_in(vec![(path.clone(), true)], true)?;
            let names = inside.iter().map(|found| Moment::of(&found.metadata));
            if names
                .chain(look.moves_of(&path))
                .any(|moment| moment >= since)
            {
                worked_in.push(path);
            }
        }

        Ok(worked_in)
    }

    fn state(&self) -> anyhow::Result<Cow<'_, State>> {
        Ok(match self {
            Before::Read(state) => Cow::Borrowed(&**state),
            Before::Written(index) => Cow::Owned(index.state()?),
        })
    }

    fn repositories(&self) -> Vec<Vec<u8>> {
        match self {
            Before::Written(index) => index.repositories.clone(),
            Before::Read(state) => {
                let known = state.entries().iter();
                known
                    .filter(|entry| entry.mode == IndexMode::COMMIT)
                    .map(|entry| entry.path(state).to_vec())
                    .collect()
            }
        }
    }
}

impl Look<'_> {
    /// Returns the times at which a nested repository was created and at which its HEAD moved.
    fn moves_of(&self, path: &[u8]) -> Vec<Moment> {
        let top = self.place(path);
        let git = top.join(".git");
        let elsewhere = read_regular_text(&git, MAX_LINK).ok();
        let elsewhere = elsewhere.as_deref().and_then(|text| {
            let target = text.trim_end().strip_prefix("gitdir: ")?;
            Some(top.join(target))
        });
        let git = elsewhere.unwrap_or(git);
        let moves = ["HEAD", "logs/HEAD", "reftable/tables.list"].map(|name| git.join(name));
        let looked_at = std::iter::once(&top).chain(&moves);
        let metadata = looked_at.flat_map(std::fs::symlink_metadata);

        metadata.map(|metadata| Moment::of(&metadata)).collect()
    }

    /// Returns whether a file equals the tree's entry of another path.
    fn is_same(
        &self,
        old: TreeId,
        (from, entry): (&[u8], &TreeEntry),
        found: &WorktreeName,
    ) -> anyhow::Result<bool> {
        if found.opaque {
            let Ok(file) = open_regular(&self.place(&found.path)) else {
                return Ok(false);
            };
            let size = file.metadata()?.len();
            let id = large::id_of(&self.0.repository, &file, size);
            return Ok(id.is_ok_and(|id| id == Some(entry.id)));
        }

        let WalkResult::Place(place) =
            Top::open_own(&self.0.files)?.walk(&found.path, IfMissing::Stop)?
        else {
            return Ok(false);
        };
        let mut version = version::version(&self.0.repository, old, std::iter::once(from))?;
        version.is(
            from,
            Some(entry),
            &version::look(&self.0.repository, &place)?,
        )
    }

    fn names(&self) -> anyhow::Result<Vec<WorktreeName>> {
        self.names_in(vec![(Vec::new(), false)], false)
    }

    /// Lists directories recursively, optionally with subdirectories. Unreadable directories are
    /// skipped.
    fn names_in(
        &self,
        mut folders: Vec<(Vec<u8>, bool)>,
        with_folders: bool,
    ) -> anyhow::Result<Vec<WorktreeName>> {
        let mut names = Vec::new();
        while let Some((folder, opaque)) = folders.pop() {
            let place = self.place(&folder);
            let opaque = opaque || (!folder.is_empty() && self.is_repository(&folder));
            for entry in std::fs::read_dir(&place).into_iter().flatten().flatten() {
                let name = entry.file_name().into_vec();
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                if name == b".git" || names.len() >= MAX_NAMES {
                    continue;
                }

                let path = if folder.is_empty() {
                    name
                } else {
                    [&folder, b"/".as_slice(), &name].concat()
                };

                if metadata.is_dir() {
                    folders.push((path.clone(), opaque));
                }

                if with_folders || metadata.is_file() || metadata.is_symlink() {
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
    fn is_repository(&self, folder: &[u8]) -> bool {
        let folder = Path::new(OsStr::from_bytes(folder)).join(".git");
        let below = self.0.below.as_ref().map(|below| &below.files);
        let tops = std::iter::once(&self.0.files).chain(below);
        tops.map(|top| top.join(&folder)).any(|git| git.exists())
    }

    fn place(&self, path: &[u8]) -> PathBuf {
        self.0.files.join(OsStr::from_bytes(path))
    }
}

/// Returns the size and mtime, truncated as in git's index. A move changes neither.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the index keeps the low bits"
)]
fn key(metadata: &Metadata) -> (u32, u32, u32) {
    (
        metadata.len() as u32,
        metadata.mtime() as u32,
        metadata.mtime_nsec() as u32,
    )
}
