//! What is at the places of files that a switch would write: the very file already, something else
//! that goes first, or nothing.
//!
//! Nothing is changed meanwhile, so that all processors can look at once.

use gix::bstr::ByteSlice as _;
use gix::index::entry::{Mode, Stage, Stat};
use gix::index::{Entry, State};

use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::place::{IfMissing, Place, Top, WalkResult};
use crate::git::repository::Repository;
use crate::git::spread::spread;
use crate::git::stat::as_in_index;
use crate::git::version;
use crate::git::version::TreeVersion;

/// What a switch has to write.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// The entries whose files are written, in order.
    pub(super) files: Vec<usize>,
    /// Those among them with something in their place, or on the way to it.
    pub(super) occupied: Vec<usize>,
}

impl Writes {
    /// Returns the files of these entries, for a place with nothing in it.
    pub(super) fn into_nothing(entries: &[usize]) -> Writes {
        Writes {
            files: entries.to_vec(),
            occupied: Vec::new(),
        }
    }
}

/// What is at the place of a file.
enum Occupancy {
    /// What the new tree says, with its times and numbers.
    Right(Box<Stat>),
    /// Something else, or nobody looked.
    Occupied,
    /// Nothing.
    Free,
}

/// A worktree before files are written.
pub(super) struct BeforeWriting<'a> {
    /// The repository.
    pub(super) repository: &'a Repository,
    /// The top of the worktree.
    pub(super) top: &'a Top,
    /// What the index said.
    pub(super) old: &'a State,
    /// For each entry of it, whether the file is surely as it says.
    pub(super) same: &'a [bool],
    /// The new tree.
    pub(super) tree: TreeId,
}

impl BeforeWriting<'_> {
    /// Looks at the places of entries; what is right already gets its times and numbers, and the
    /// others are returned.
    pub(super) fn judge(&self, new: &mut State, differing: &[usize]) -> anyhow::Result<Writes> {
        let (top, old, same) = (self.top, self.old, self.same);
        let (tree, known) = (self.tree, &*new);
        let judged = spread(
            self.repository,
            differing.to_vec(),
            |repository, _, part| {
                let paths = part.iter().map(|&at| known.entry(at).path(known).to_vec());
                let paths: Vec<Vec<u8>> = paths.collect();
                let mut look = PlaceLook {
                    repository,
                    top,
                    tree,
                    paths: &paths,
                    version: None,
                };
                let judge = |(at, path): (usize, &Vec<u8>)| {
                    let before =
                        old.entry_index_by_path_and_stage(path.as_bstr(), Stage::Unconflicted);
                    // What is surely as it was is not what the new tree says.
                    let found = match before.is_some_and(|before| same[before]) {
                        true => Occupancy::Occupied,
                        false => look.at(path, known.entry(at))?,
                    };
                    Ok((at, found))
                };
                let found = part.into_iter().zip(&paths).map(judge);
                found.collect::<anyhow::Result<Vec<_>>>()
            },
        )?;

        let mut writes = Writes::default();
        for (at, found) in judged.into_iter().flatten() {
            match found {
                Occupancy::Right(stat) => new.entries_mut()[at].stat = *stat,
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

/// A look at places under way, in one thread.
struct PlaceLook<'a> {
    /// The repository.
    repository: &'a Repository,
    /// The top of the worktree.
    top: &'a Top,
    /// The new tree.
    tree: TreeId,
    /// The places.
    paths: &'a [Vec<u8>],
    /// How the files of the tree look on disk, once that matters.
    version: Option<TreeVersion<'a>>,
}

impl PlaceLook<'_> {
    /// Looks at the place of an entry.
    fn at(&mut self, path: &[u8], entry: &Entry) -> anyhow::Result<Occupancy> {
        let Some(entry) = entry_of(entry) else {
            return Ok(Occupancy::Occupied);
        };
        match self.top.walk(path, IfMissing::Stop)? {
            WalkResult::Place(place) => self.found(path, &entry, &place),
            WalkResult::Boundary => {
                anyhow::bail!("`{}` is in a repository of its own", path.to_str_lossy())
            }
            WalkResult::Missing => Ok(Occupancy::Free),
            WalkResult::Blocked(_) | WalkResult::Closed | WalkResult::Refused => {
                Ok(Occupancy::Occupied)
            }
        }
    }

    /// Compares what is at a place with what the new tree says.
    fn found(
        &mut self,
        path: &[u8],
        entry: &TreeEntry,
        place: &Place,
    ) -> anyhow::Result<Occupancy> {
        // The time is taken before the file is read: a later write shows.
        let Some(stat) = place.stat()? else {
            return Ok(Occupancy::Free);
        };
        let version = match &mut self.version {
            Some(version) => version,
            none => {
                let paths = self.paths.iter().map(Vec::as_slice);
                none.insert(version::version(self.repository, self.tree, paths)?)
            }
        };
        let seen = version::look(self.repository, place)?;

        Ok(match version.is(path, Some(entry), &seen)? {
            true => Occupancy::Right(Box::new(as_in_index(&stat))),
            false => Occupancy::Occupied,
        })
    }
}

/// Returns the file or link of an index's entry.
pub(super) fn entry_of(entry: &Entry) -> Option<TreeEntry> {
    let mode = match entry.mode {
        Mode::FILE => EntryMode::File,
        Mode::FILE_EXECUTABLE => EntryMode::Executable,
        Mode::SYMLINK => EntryMode::Link,
        _ => return None,
    };
    Some(TreeEntry { mode, id: entry.id })
}
