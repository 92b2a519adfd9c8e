//! What commands did in a worktree where no snapshot looks: files of the commit that they moved
//! there, and repositories within that they worked in.
//!
//! A moved file keeps its size and its time, and has the content that it had; so it is told from
//! what a command made. Nothing is opened whose size and time are not those of a file that is gone.

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

/// More names than this are not looked at.
const MAX_NAMES: usize = 1_000_000;
/// A file that says where a git directory is has no more bytes.
const MAX_LINK: u64 = 64 << 10;

/// Files that are gone from their places, by size and time.
type Lost<'a> = BTreeMap<(u32, u32, u32), Vec<(&'a [u8], &'a TreeEntry)>>;

/// The files of a worktree before commands run in it.
pub enum Before {
    /// What the index of a worktree says.
    Read(Box<State>),
    /// What the index of a layer says, which is read when something is gone.
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

/// A file of the commit that is elsewhere now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Where it was.
    pub from: Vec<u8>,
    /// Where it is.
    pub to: Vec<u8>,
    /// Whether that is in a repository of its own.
    pub opaque: bool,
}

/// A name found in the worktree.
struct WorktreeName {
    /// Its path.
    path: Vec<u8>,
    /// Whether it is in a repository of its own.
    opaque: bool,
    /// What the system tells of it.
    metadata: Metadata,
}

impl Before {
    /// Notes what the files are before commands run.
    ///
    /// # Errors
    /// Where git's index of the worktree cannot be read.
    pub fn of(worktree: &SessionWorktree) -> anyhow::Result<Before> {
        match &worktree.below {
            Some(below) => Ok(Before::Written(Arc::clone(&below.index))),
            None => Ok(Before::Read(Box::new(index::read(&worktree.repository)?))),
        }
    }

    /// Returns which files are gone from their places and are where a tree has nothing; `old` is
    /// the tree that they were of.
    ///
    /// # Errors
    /// Where a file cannot be compared.
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
            // A tree has nothing of what is in a repository within.
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

    /// Returns the repositories within in which something changed since a moment.
    ///
    /// # Errors
    /// Where a folder cannot be read.
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

    /// Returns the files with what is known of them.
    fn state(&self) -> anyhow::Result<Cow<'_, State>> {
        Ok(match self {
            Before::Read(state) => Cow::Borrowed(&**state),
            Before::Written(index) => Cow::Owned(index.state()?),
        })
    }

    /// Returns the repositories within.
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
    /// Returns when a repository within was made, and when its HEAD moved.
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

    /// Returns whether a file is what a tree says of another path.
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

    /// Returns every file and link of the worktree.
    fn names(&self) -> anyhow::Result<Vec<WorktreeName>> {
        self.names_in(vec![(Vec::new(), false)], false)
    }

    /// Returns every file and link in some folders, and if wanted the folders within; what may not
    /// be read is passed over.
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

    /// Returns whether a folder is a repository of its own, here or where the user has it.
    fn is_repository(&self, folder: &[u8]) -> bool {
        let folder = Path::new(OsStr::from_bytes(folder)).join(".git");
        let below = self.0.below.as_ref().map(|below| &below.files);
        let tops = std::iter::once(&self.0.files).chain(below);
        tops.map(|top| top.join(&folder)).any(|git| git.exists())
    }

    /// Returns where a path of the worktree is.
    fn place(&self, path: &[u8]) -> PathBuf {
        self.0.files.join(OsStr::from_bytes(path))
    }
}

/// Returns what a moved file keeps, as git's index has it: size and time.
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
