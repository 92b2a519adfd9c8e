//! Switches a worktree to another commit: writes what differs, and removes what an earlier turn
//! left and git does not ignore.
//!
//! A plan can have changed files and index in any way. So each file is compared with the index, and
//! one that differs is read. If it already equals the new tree, it keeps its mtime, so build tools
//! do not see a change. If no command will run, only the relevant files are checked; the next
//! complete switch finds the others.

use std::collections::{BTreeSet, HashSet};

use anyhow::Context;
use gix::bstr::ByteSlice;
use gix::index::entry::{Flags, Mode as IndexMode, Stage, Stat};
use gix::index::{Entry as IndexEntry, State};
use gix::worktree::stack::state::attributes;

use super::path::parent_dir;
use super::progress::{ProgressWatch, WriteProgress};
use super::scan::Scan;
use super::targets::{TargetCheck, Writes, tree_entry_of};
use crate::git::During;
use crate::git::filter;
use crate::git::object::TreeId;
use crate::git::object::large;
use crate::git::path_handle::{IfMissing, Top, WalkResult};
use crate::git::repository::Repository;
use crate::git::stat::as_in_index;
use crate::git::version;
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
            true => Writes::into_nothing(differing),
            false => self.before().check_targets(new, differing)?,
        };

        // Deletions first: a deleted file can be in the way of a new directory.
        self.delete(new)?;
        self.make(new, &writes)?;
        // After the new files, because their ignore rules apply.
        self.remove_leftovers(new)?;
        make_gitlink_dirs(self.repository, new)
    }

    fn before(&self) -> TargetCheck<'_> {
        TargetCheck {
            repository: self.repository,
            top: &self.top,
            old: &self.old,
            same: &self.scan.same,
            tree: self.tree,
        }
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

    /// Returns whether an index has the same files as the old one.
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
            self.remove_file(path)?;

            dirs.extend(parent_dir(path).map(<[u8]>::to_vec));
        }

        self.remove_empty_dirs(dirs)
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
    /// neither are UTF-16 files, which gix writes as UTF-8.
    fn write(
        &self,
        new: &mut State,
        to_write: &[usize],
        progress: &WriteProgress<'_>,
    ) -> anyhow::Result<()> {
        let wide = self.in_utf16(new, to_write)?;
        let (own, others): (Vec<usize>, Vec<usize>) = to_write.iter().partition(|&&at| {
            wide.contains(&at) || large::find_large(self.repository, new.entry(at).id).is_some()
        });
        self.check_out(new, &others, progress)?;
        self.write_large(new, &own, progress)
    }

    fn in_utf16(&self, new: &State, to_write: &[usize]) -> anyhow::Result<HashSet<usize>> {
        if !filter::mentions_encodings(self.repository, new) {
            return Ok(HashSet::new());
        }
        let mut filter = self.filter_of(new, to_write)?;
        let mut utf16 = HashSet::new();
        for &at in to_write {
            if filter.is_utf16(new.entry(at).path(new))? {
                utf16.insert(at);
            }
        }
        Ok(utf16)
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
            WalkResult::Blocked(end) => self.remove_file(&path[..end]),
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

    pub(super) fn remove_file(&self, path: &[u8]) -> anyhow::Result<()> {
        remove_file(&self.top, path)
    }

    pub(super) fn remove_empty_dirs(&self, dirs: BTreeSet<Vec<u8>>) -> anyhow::Result<()> {
        remove_empty_dirs(&self.top, &dirs)
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
        let mut path = Some(dir.as_slice());
        while let Some(dir) = path {
            let WalkResult::Handle(handle) = top.walk(dir, IfMissing::Stop)? else {
                break;
            };
            if !handle.remove_empty_dir()? && !handle.read()?.is_absent() {
                break;
            }
            path = parent_dir(dir);
        }
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
