//! Switches a worktree to another commit: writes what differs, and removes what an earlier turn
//! left and git does not ignore.
//!
//! A plan can have changed files and index in any way, so files are compared with the index, and
//! those that differ are read. A file that equals the new tree keeps its mtime, so build tools do
//! not see a change.

use std::collections::BTreeSet;

use gix::bstr::ByteSlice as _;
use gix::index::entry::{Flags, Mode as IndexMode, Stage, Stat};
use gix::index::{Entry as IndexEntry, State};

use super::file_writer::FileWriter;
use super::progress::{ProgressWatch, WriteProgress};
use super::scan::{Other, Scan};
use crate::git::ignore::IgnoreStack;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::parallel::map_parallel;
use crate::git::path_handle::{IfMissing, PathHandle, Top, WalkResult};
use crate::git::paths::parent_dirs;
use crate::git::repository::Repository;
use crate::git::stat::as_in_index;
use crate::git::version::{self, Mark, TreeVersion};
use crate::git::worktree::scan::is_special_file;

/// Up to this number of files, starting a thread costs more than it saves.
const FEW: usize = 64;

/// Counts a file. Fails if the user pressed ctrl-c.
type Count<'a> = &'a dyn Fn() -> anyhow::Result<()>;

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
        let is_empty = self.old.entries().is_empty() && self.scan.others.is_empty();
        let files = match is_empty {
            true => differing.to_vec(),
            false => self.check_targets(new, differing)?,
        };

        // Deletions first: a deleted file can be in the way of a new directory.
        self.delete(new)?;
        self.write(new, files)?;
        // After the new files, because their ignore rules apply.
        self.remove_leftovers(new)?;
        make_gitlink_dirs(self.repository, new)
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

    /// Writes the files of entries, in several threads if there are many, and sets their stats.
    fn write(&self, new: &mut State, files: Vec<usize>) -> anyhow::Result<()> {
        let progress = WriteProgress::begin(self.watch, files.len());
        let (top, user, tree, index) = (&self.top, self.user.workdir(), self.tree, &*new);
        let write = |repository: &Repository, part: Vec<usize>, count: Count<'_>| {
            let paths = part
                .iter()
                .map(|&at| index.entry(at).path(index).as_bytes());
            let mut writer = FileWriter::new(repository, top, user, tree, paths)?;
            let mut stats = Vec::with_capacity(part.len());
            for at in part {
                let entry = index.entry(at);
                if let Some(file) = tree_entry_of(entry) {
                    stats.push((at, writer.write(entry.path(index), &file)?));
                    count()?;
                }
            }
            Ok::<_, anyhow::Error>(stats)
        };

        let stats = if files.len() <= FEW {
            vec![write(self.repository, files, &|| progress.one_more())?]
        } else {
            let index = self.repository.gix.index_path();
            let own = self
                .repository
                .with_worktree(self.repository.workdir(), &index)?;
            let (write, written) = (&write, &progress.written);
            progress.during(move || {
                map_parallel(&own, files, |repository, part| {
                    write(repository, part, &|| written.one_more())
                })
            })?
        };
        for (at, stat) in stats.into_iter().flatten() {
            new.entries_mut()[at].stat = stat;
        }
        Ok(())
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

// Finds out which files a switch has to write.
//
// Changes nothing, so all cores can work on it.

impl Switch<'_> {
    /// Checks the paths of entries. Sets the stat of up-to-date files and returns the others.
    fn check_targets(&self, new: &mut State, differing: &[usize]) -> anyhow::Result<Vec<usize>> {
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
                let stat = match before.is_some_and(|before| same[before]) {
                    true => None,
                    false => checker.at(path, index.entry(at))?,
                };
                Ok((at, stat))
            };
            let checked = part.into_iter().zip(&paths).map(check);
            checked.collect::<anyhow::Result<Vec<_>>>()
        })?;

        let mut files = Vec::new();
        for (at, stat) in results.into_iter().flatten() {
            match stat {
                Some(stat) => new.entries_mut()[at].stat = stat,
                None => files.push(at),
            }
        }

        Ok(files)
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
    /// Returns the stat of a file that equals an entry. `None` if the file must be written.
    fn at(&mut self, path: &[u8], entry: &IndexEntry) -> anyhow::Result<Option<Stat>> {
        let Some(entry) = tree_entry_of(entry) else {
            return Ok(None);
        };
        match self.top.walk(path, IfMissing::Stop)? {
            WalkResult::Handle(handle) => self.compare(path, &entry, &handle),
            WalkResult::Boundary => {
                anyhow::bail!("`{}` is in a repository of its own", path.to_str_lossy())
            }
            _ => Ok(None),
        }
    }

    fn compare(
        &mut self,
        path: &[u8],
        entry: &TreeEntry,
        handle: &PathHandle,
    ) -> anyhow::Result<Option<Stat>> {
        // The stat is taken before reading, so a later write is noticed.
        let Some(stat) = handle.stat()? else {
            return Ok(None);
        };
        let version = match &mut self.version {
            Some(version) => version,
            none => {
                let paths = self.paths.iter().map(Vec::as_slice);
                none.insert(version::tree_version(self.repository, self.tree, paths)?)
            }
        };
        let current = version::read_disk(self.repository, handle)?;
        // git can store the same for other bytes, such as other line ends.
        let is_same = version.is(path, Some(entry), &current)?
            && match current.mark {
                Mark::File(id, _) => version.checked_out_id(path, entry)? == id,
                _ => true,
            };
        Ok(is_same.then(|| as_in_index(&stat)))
    }
}

/// Returns the tree entry of a file or symlink; `None` for a submodule.
pub(super) fn tree_entry_of(entry: &IndexEntry) -> Option<TreeEntry> {
    let mode = EntryMode::from(entry.mode.to_tree_entry_mode()?);
    let entry = TreeEntry { mode, id: entry.id };
    (entry.is_file() || mode == EntryMode::Link).then_some(entry)
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
