//! Switches a worktree to another commit: writes what differs, and removes what an earlier turn
//! left and git does not ignore.
//!
//! A plan can have changed files and index in any way, so files are compared with the index, and
//! those that differ are read. A file that equals the new tree keeps its mtime, so build tools do
//! not see a change.

use std::collections::{BTreeSet, HashSet};

use anyhow::Context;
use gix::bstr::ByteSlice as _;
use gix::index::entry::{Flags, Mode as IndexMode, Stage, Stat};
use gix::index::{Entry as IndexEntry, State};
use gix::worktree::stack::state::attributes;

use super::progress::{ProgressWatch, WriteProgress};
use super::scan::{Other, Scan};
use crate::git::ignore::IgnoreStack;
use crate::git::object::{EntryMode, TreeEntry, TreeId, large};
use crate::git::parallel::map_parallel;
use crate::git::path_handle::{IfMissing, PathHandle, Top, WalkResult};
use crate::git::paths::parent_dirs;
use crate::git::repository::Repository;
use crate::git::stat::as_in_index;
use crate::git::version::{self, TreeVersion};
use crate::git::worktree::scan::is_special_file;
use crate::git::{During, filter};
use crate::host::interrupt;

/// Up to this number of files, starting threads costs more than it saves.
const FEW: usize = 64;

pub(super) struct Switch<'a> {
    pub(super) repository: &'a Repository,
    pub(super) top: Top,
    /// Repository with the user's files.
    pub(super) user: &'a Repository,
    pub(super) tree: TreeId,
    /// The index before the switch.
    pub(super) old: State,
    /// Result of the comparison of the worktree with `old`.
    pub(super) scan: Scan,
    pub(super) watch: ProgressWatch<'a>,
}

impl Switch<'_> {
    /// Writes the files that differ, and removes those that are neither in the tree nor ignored.
    pub(super) fn put(&self, new: &mut State, differing: &[usize]) -> anyhow::Result<()> {
        // A new worktree has nothing to compare.
        let writes = match self.is_empty() {
            true => Writes {
                files: differing.to_vec(),
                occupied: Vec::new(),
            },
            false => self.check_targets(new, differing)?,
        };

        // Deletions first: a deleted file can be in the way of a new directory.
        self.delete(new)?;
        self.make(new, &writes)?;
        // After the new files, because their ignore rules apply.
        self.remove_leftovers(new)?;
        make_gitlink_dirs(self.repository, new)
    }

    fn is_empty(&self) -> bool {
        self.old.entries().is_empty() && self.scan.others.is_empty()
    }

    /// Copies the stats of unchanged files from the old index, and returns the other entries.
    pub(super) fn carry_over_stats(&self, new: &mut State) -> Vec<usize> {
        let (mut at, old) = (0, self.old.entries());
        let mut differing = Vec::new();
        for (position, (entry, path)) in new.entries_mut_with_paths().enumerate() {
            while at < old.len() && old[at].path(&self.old) < path {
                at += 1;
            }

            let old_entry = old.get(at).filter(|old_entry| {
                old_entry.path(&self.old) == path && old_entry.stage() == Stage::Unconflicted
            });
            match old_entry {
                _ if is_hidden(entry) => {}
                Some(old_entry)
                    if self.scan.same[at]
                        && old_entry.id == entry.id
                        && old_entry.mode == entry.mode =>
                {
                    entry.stat = old_entry.stat
                }
                _ if entry.mode == IndexMode::COMMIT => {}
                _ => differing.push(position),
            }
        }

        differing
    }

    pub(super) fn has_same_files(&self, new: &State) -> bool {
        let files = |state: &State| -> Vec<_> {
            let entries = state.entries().iter();
            let file = |entry: &IndexEntry| (entry.path(state).to_owned(), entry.id, entry.mode);
            entries.map(file).collect()
        };
        files(&self.old) == files(new)
    }

    /// Deletes files that are only in the old index, or that a sparse checkout now leaves out.
    fn delete(&self, new: &State) -> anyhow::Result<()> {
        let mut dirs = BTreeSet::new();
        for entry in self.old.entries() {
            let path = entry.path(&self.old);
            if entry.mode == IndexMode::COMMIT
                || is_hidden(entry)
                || new.entry_by_path(path).is_some_and(|new| !is_hidden(new))
            {
                continue;
            }
            remove_file(&self.top, path)?;

            dirs.extend(parent_dirs(path).next().map(<[u8]>::to_vec));
        }

        remove_empty_dirs(&self.top, &dirs)
    }

    fn make(&self, new: &mut State, writes: &Writes) -> anyhow::Result<()> {
        for &at in &writes.occupied {
            self.clear(new.entry(at).path(new))?;
        }

        let progress = WriteProgress::begin(self.watch, writes.files.len());
        let to_write = self.share_files(new, &writes.files, &progress)?;
        self.write(new, &to_write, &progress)
    }

    /// Writes files. Large files are not written with gix, which reads each into memory, and
    /// neither are UTF-16 and UTF-32 files, which gix writes as UTF-8.
    fn write(
        &self,
        new: &mut State,
        to_write: &[usize],
        progress: &WriteProgress<'_>,
    ) -> anyhow::Result<()> {
        let wide = self.in_wide(new, to_write)?;
        let (own, others): (Vec<usize>, Vec<usize>) = to_write.iter().partition(|&&at| {
            wide.contains(&at) || large::find_large(self.repository, new.entry(at).id).is_some()
        });
        self.check_out(new, &others, progress)?;
        self.write_large(new, &own, progress)
    }

    fn in_wide(&self, new: &State, to_write: &[usize]) -> anyhow::Result<HashSet<usize>> {
        if !filter::mentions_encodings(self.repository, new) {
            return Ok(HashSet::new());
        }
        let mut filter = self.filter_of(new, to_write)?;
        let mut wide = HashSet::new();
        for &at in to_write {
            if filter.is_wide(new.entry(at).path(new))? {
                wide.insert(at);
            }
        }
        Ok(wide)
    }

    /// Writes files one after another: block by block if a file is large and no filter changes it.
    fn write_large(
        &self,
        new: &mut State,
        large: &[usize],
        progress: &WriteProgress<'_>,
    ) -> anyhow::Result<()> {
        let paths: Vec<_> = large
            .iter()
            .map(|&at| new.entry(at).path(new).to_vec())
            .collect();
        let mut version = match paths.is_empty() {
            true => return Ok(()),
            false => {
                version::tree_version(self.repository, self.tree, paths.iter().map(Vec::as_slice))?
            }
        };

        for (&at, path) in large.iter().zip(&paths) {
            let during = || format!("cannot write `{}`", path.to_str_lossy());
            let Some(entry) = tree_entry_of(new.entry(at)) else {
                continue;
            };
            let WalkResult::Handle(handle) = self.top.walk(path, IfMissing::Make)? else {
                anyhow::bail!("{}: its directory does not exist", during());
            };
            let contents = version.contents(path, &entry, None)?;

            handle.create(&contents, false).with_context(during)?;
            let stat = handle.stat()?.with_context(during)?;
            new.entries_mut()[at].stat = as_in_index(&stat);
            progress.one_more()?;
        }

        Ok(())
    }

    fn check_out(
        &self,
        new: &mut State,
        to_write: &[usize],
        progress: &WriteProgress<'_>,
    ) -> anyhow::Result<()> {
        if to_write.is_empty() {
            return Ok(());
        }

        let mut partial = self.partial(new, to_write);
        let mut options = self
            .repository
            .gix
            .checkout_options(attributes::Source::IdMapping)
            .during("reading the configuration")?;
        options.overwrite_existing = true;
        options.destination_is_initially_empty = self.is_empty();
        if to_write.len() <= FEW {
            options.thread_limit = Some(1);
        }

        let objects = self
            .repository
            .gix
            .objects
            .clone()
            .into_arc()
            .context("opening the object store")?;
        let top = self.repository.workdir();
        let (files, bytes) = (progress.counter(), gix::progress::Discard);
        let stop = interrupt::flag();
        let write = || {
            let index = &mut partial;
            gix::worktree::state::checkout(index, top, objects, &files, &bytes, &stop, options)
        };
        let outcome = match to_write.len() {
            ..=FEW => write(),
            _ => progress.during(write),
        };
        let outcome = outcome.during("writing the files of a worktree")?;
        progress.is_on()?;

        if let Some(error) = outcome.errors.first() {
            anyhow::bail!("cannot write `{}`: {:#}", error.path, error.error);
        }

        if let Some(collision) = outcome.collisions.first() {
            anyhow::bail!(
                "cannot write `{}`: another file has its name on this file system",
                collision.path
            );
        }

        let written = partial
            .entries()
            .iter()
            .filter(|entry| !entry.flags.contains(Flags::SKIP_WORKTREE));
        for (&at, written) in to_write.iter().zip(written) {
            new.entries_mut()[at].stat = written.stat;
        }

        Ok(())
    }

    /// Returns an index of the files to write, and of the attribute files that apply to them.
    fn partial(&self, new: &State, to_write: &[usize]) -> State {
        let mut partial = State::new(self.repository.gix.object_hash());
        let mut to_write = to_write.iter().copied().peekable();
        for (position, entry) in new.entries().iter().enumerate() {
            let path = entry.path(new);
            let flags = if to_write.next_if_eq(&position).is_some() {
                Flags::empty()
            } else if path.ends_with(b".gitattributes") {
                Flags::SKIP_WORKTREE
            } else {
                continue;
            };
            partial.dangerously_push_entry(Stat::default(), entry.id, flags, entry.mode, path);
        }

        partial
    }

    /// Removes whatever occupies a path that is to be written, including a file or symlink in place
    /// of a parent directory.
    ///
    /// gix writes into an existing file: it would block on a pipe, and change all other names of a
    /// hard link.
    fn clear(&self, path: &[u8]) -> anyhow::Result<()> {
        match self.top.walk(path, IfMissing::Stop)? {
            WalkResult::Handle(handle) => match handle.file_type()? {
                Some(_) => Ok(handle.remove_all()?),
                None => Ok(()),
            },
            WalkResult::Blocked(end) => remove_file(&self.top, &path[..end]),
            WalkResult::Boundary => {
                anyhow::bail!("`{}` is in a repository of its own", path.to_str_lossy())
            }
            WalkResult::Refused => {
                anyhow::bail!("`{}` is not a valid file name", path.to_str_lossy())
            }
            WalkResult::Denied => anyhow::bail!(
                "`{}` is in a directory that cannot be entered",
                path.to_str_lossy()
            ),
            WalkResult::Missing => Ok(()),
        }
    }
}

/// Removes a file or symlink, if it exists.
pub(super) fn remove_file(top: &Top, path: &[u8]) -> anyhow::Result<()> {
    let WalkResult::Handle(handle) = top.walk(path, IfMissing::Stop)? else {
        return Ok(());
    };
    match handle.file_type()? {
        Some(kind) if !kind.is_dir() => Ok(handle.remove()?),
        _ => Ok(()),
    }
}

/// Removes directories if they are empty, and then their empty parents.
pub(super) fn remove_empty_dirs(top: &Top, dirs: &BTreeSet<Vec<u8>>) -> anyhow::Result<()> {
    for dir in dirs.iter().rev() {
        top.remove_empty_dirs([dir.as_slice()].into_iter().chain(parent_dirs(dir)))?;
    }

    Ok(())
}

fn is_hidden(entry: &IndexEntry) -> bool {
    entry.flags.contains(Flags::SKIP_WORKTREE)
}

/// Creates an empty directory for each submodule, as git does.
fn make_gitlink_dirs(repository: &Repository, index: &State) -> anyhow::Result<()> {
    let top = Top::open_own(repository.workdir())?;
    for entry in index
        .entries()
        .iter()
        .filter(|entry| entry.mode == IndexMode::COMMIT)
    {
        let path: &[u8] = entry.path(index);
        top.walk(&[path, b"/x"].concat(), IfMissing::Make)?;
    }

    Ok(())
}

// Checks the paths that a switch would write: up to date, occupied or free.
//
// Changes nothing, so all cores can work on it.

#[derive(Debug, Default)]
struct Writes {
    /// Index entries of the files, in order.
    files: Vec<usize>,
    /// Subset of `files` whose path, or a parent of it, is occupied.
    occupied: Vec<usize>,
}

enum Occupancy {
    /// The new version, with its stat.
    UpToDate(Box<Stat>),
    /// Something else, or not checked.
    Occupied,
    Free,
}

impl Switch<'_> {
    /// Checks the paths of entries. Sets the stat of up-to-date files and returns the others.
    fn check_targets(&self, new: &mut State, differing: &[usize]) -> anyhow::Result<Writes> {
        let (top, old, same) = (&self.top, &self.old, &self.scan.same);
        let (tree, index) = (self.tree, &*new);
        let results = map_parallel(self.repository, differing.to_vec(), |repository, part| {
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
                let before = old.entry_index_by_path_and_stage(path.as_bstr(), Stage::Unconflicted);
                // A file that equals the old index does not equal the new tree.
                let occupancy = match before.is_some_and(|before| same[before]) {
                    true => Occupancy::Occupied,
                    false => checker.at(path, index.entry(at))?,
                };
                Ok((at, occupancy))
            };
            let checked = part.into_iter().zip(&paths).map(check);
            checked.collect::<anyhow::Result<Vec<_>>>()
        })?;

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
    fn at(&mut self, path: &[u8], entry: &IndexEntry) -> anyhow::Result<Occupancy> {
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
pub(super) fn tree_entry_of(entry: &IndexEntry) -> Option<TreeEntry> {
    let mode = EntryMode::from(entry.mode.to_tree_entry_mode()?);
    let is_leaf = mode.is_file() || mode == EntryMode::Link;
    is_leaf.then_some(TreeEntry { mode, id: entry.id })
}

/// Directories below this depth are removed without checking for ignored files: no build is that
/// deep, and the check takes quadratic time.
const MAX_PRUNE_DEPTH: usize = 128;

impl Switch<'_> {
    /// Removes everything that is neither in the index nor ignored. Nested repositories stay.
    pub(super) fn remove_leftovers(&self, new: &State) -> anyhow::Result<()> {
        if self.scan.others.is_empty() {
            return Ok(());
        }

        let mut rules = IgnoreStack::of(&self.repository.gix, new)?;
        let mut dirs = BTreeSet::new();
        let mut others = self.without_pipes(self.scan.others.clone())?;

        while let Some(Other { path, dir }) = others.pop() {
            let is_known = new.entry_by_path(path.as_bstr()).is_some();
            if !dir && is_known {
                continue;
            }

            let mode = if dir { IndexMode::DIR } else { IndexMode::FILE };
            if !is_known && rules.ignores(&path, mode)? {
                continue;
            }

            if !dir {
                remove_file(&self.top, &path)?;
                dirs.extend(parent_dirs(&path).next().map(<[u8]>::to_vec));
                continue;
            }

            if path.iter().filter(|&&byte| byte == b'/').count() >= MAX_PRUNE_DEPTH && !is_known {
                self.remove_whole(&path)?;
                dirs.extend(parent_dirs(&path).next().map(<[u8]>::to_vec));
                continue;
            }

            others.extend(self.without_pipes(self.inside(&path)?)?);
            dirs.insert(path);
        }

        remove_empty_dirs(&self.top, &dirs)
    }

    /// Removes pipes, sockets and devices, even ignored ones: reading a pipe named like a rule file
    /// would block.
    fn without_pipes(&self, mut others: Vec<Other>) -> anyhow::Result<Vec<Other>> {
        let mut removed = Ok(());
        others.retain(|other| {
            let special = |handle: &PathHandle| {
                Ok::<_, std::io::Error>(handle.file_type()?.is_some_and(is_special_file))
            };
            match self.top.walk(&other.path, IfMissing::Stop) {
                Ok(WalkResult::Handle(handle))
                    if !other.dir && special(&handle).unwrap_or(false) =>
                {
                    removed = std::mem::replace(&mut removed, Ok(())).and(handle.remove());
                    false
                }
                _ => true,
            }
        });

        removed?;
        Ok(others)
    }

    fn remove_whole(&self, path: &[u8]) -> anyhow::Result<()> {
        match self.top.walk(path, IfMissing::Stop)? {
            WalkResult::Handle(handle) => Ok(handle.remove_all()?),
            _ => Ok(()),
        }
    }

    /// Lists a directory; empty if it is a nested repository.
    fn inside(&self, path: &[u8]) -> anyhow::Result<Vec<Other>> {
        let WalkResult::Handle(inside) = self.top.walk(&[path, b"/x"].concat(), IfMissing::Stop)?
        else {
            return Ok(Vec::new());
        };
        let mut others = Vec::new();

        for name in inside.siblings()? {
            let dir = inside
                .sibling(&name)
                .file_type()?
                .is_some_and(rustix::fs::FileType::is_dir);
            others.push(Other {
                path: [path, b"/", &name].concat(),
                dir,
            });
        }

        Ok(others)
    }
}
