//! Checks the paths that a switch would write: up to date, occupied or free.
//!
//! Changes nothing, so all cores can work on it.

use gix::bstr::ByteSlice as _;
use gix::index::entry::{Mode, Stage, Stat};
use gix::index::{Entry, State};

use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::parallel::map_parallel;
use crate::git::path_handle::{IfMissing, PathHandle, Top, WalkResult};
use crate::git::repository::Repository;
use crate::git::stat::as_in_index;
use crate::git::version;
use crate::git::version::TreeVersion;

#[derive(Debug, Default)]
pub(super) struct Writes {
    /// Index entries of the files, in order.
    pub(super) files: Vec<usize>,
    /// Subset of `files` whose path, or a parent of it, is occupied.
    pub(super) occupied: Vec<usize>,
}

impl Writes {
    /// Returns the entries as writes to an empty worktree.
    pub(super) fn into_nothing(entries: &[usize]) -> Writes {
        Writes {
            files: entries.to_vec(),
            occupied: Vec::new(),
        }
    }
}

enum Occupancy {
    /// The new version, with its stat.
    UpToDate(Box<Stat>),
    /// Something else, or not checked.
    Occupied,
    Free,
}

pub(super) struct TargetCheck<'a> {
    pub(super) repository: &'a Repository,
    pub(super) top: &'a Top,
    pub(super) old: &'a State,
    /// For each entry of `old`, whether the file is certainly unchanged.
    pub(super) same: &'a [bool],
    pub(super) tree: TreeId,
}

impl TargetCheck<'_> {
    /// Checks the paths of entries. Sets the stat of up-to-date files and returns the others.
    pub(super) fn check_targets(
        &self,
        new: &mut State,
        differing: &[usize],
    ) -> anyhow::Result<Writes> {
        let (top, old, same) = (self.top, self.old, self.same);
        let (tree, index) = (self.tree, &*new);
        let results = map_parallel(
            self.repository,
            differing.to_vec(),
            |repository, _, part| {
                let paths = part.iter().map(|&at| index.entry(at).path(index).to_vec());
                let paths: Vec<Vec<u8>> = paths.collect();
                let mut checker = TargetChecker {
                    repository,
                    top,
                    tree,
                    paths: &paths,
                    version: None,
                };
                let check = |(at, path): (usize, &Vec<u8>)| {
                    let before =
                        old.entry_index_by_path_and_stage(path.as_bstr(), Stage::Unconflicted);
                    // A file that equals the old index does not equal the new tree.
                    let occupancy = match before.is_some_and(|before| same[before]) {
                        true => Occupancy::Occupied,
                        false => checker.at(path, index.entry(at))?,
                    };
                    Ok((at, occupancy))
                };
                let checked = part.into_iter().zip(&paths).map(check);
                checked.collect::<anyhow::Result<Vec<_>>>()
            },
        )?;

        let mut writes = Writes::default();
        for (at, occupancy) in results.into_iter().flatten() {
            match occupancy {
                Occupancy::UpToDate(stat) => new.entries_mut()[at].stat = *stat,
                Occupancy::Occupied => {
                    writes.files.push(at);
                    writes.occupied.push(at);
                }
                Occupancy::Free => writes.files.push(at),
            }
        }

        Ok(writes)
    }
}

struct TargetChecker<'a> {
    repository: &'a Repository,
    top: &'a Top,
    tree: TreeId,
    paths: &'a [Vec<u8>],
    /// Loaded with the first file that exists.
    version: Option<TreeVersion<'a>>,
}

impl TargetChecker<'_> {
    fn at(&mut self, path: &[u8], entry: &Entry) -> anyhow::Result<Occupancy> {
        let Some(entry) = tree_entry_of(entry) else {
            return Ok(Occupancy::Occupied);
        };
        match self.top.walk(path, IfMissing::Stop)? {
            WalkResult::Handle(handle) => self.compare(path, &entry, &handle),
            WalkResult::Boundary => {
                anyhow::bail!("`{}` is in a repository of its own", path.to_str_lossy())
            }
            WalkResult::Missing => Ok(Occupancy::Free),
            WalkResult::Blocked(_) | WalkResult::Denied | WalkResult::Refused => {
                Ok(Occupancy::Occupied)
            }
        }
    }

    fn compare(
        &mut self,
        path: &[u8],
        entry: &TreeEntry,
        handle: &PathHandle,
    ) -> anyhow::Result<Occupancy> {
        // The stat is taken before reading, so a later write is noticed.
        let Some(stat) = handle.stat()? else {
            return Ok(Occupancy::Free);
        };
        let version = match &mut self.version {
            Some(version) => version,
            none => {
                let paths = self.paths.iter().map(Vec::as_slice);
                none.insert(version::tree_version(self.repository, self.tree, paths)?)
            }
        };
        let current = version::read_disk(self.repository, handle)?;

        Ok(match version.is(path, Some(entry), &current)? {
            true => Occupancy::UpToDate(Box::new(as_in_index(&stat))),
            false => Occupancy::Occupied,
        })
    }
}

/// Returns the tree entry of a file or symlink; `None` for a submodule.
pub(super) fn tree_entry_of(entry: &Entry) -> Option<TreeEntry> {
    let mode = match entry.mode {
        Mode::FILE => EntryMode::File,
        Mode::FILE_EXECUTABLE => EntryMode::Executable,
        Mode::SYMLINK => EntryMode::Link,
        _ => return None,
    };
    Some(TreeEntry { mode, id: entry.id })
}
