//! Updates the user's files from one tree to another without losing a byte.
//!
//! A file has two versions under one name, and the swap is atomic, so one of the two always has a
//! temporary name next to it (`.teddy-tmp-*`):
//!
//! - Before the swap the new version is *staged* (`staged`). It gets its name by one rename, or is
//!   discarded.
//! - After the swap the old version is *displaced* (`displaced`), as is a deleted file. It is
//!   settled: moved to `undo/displaced`, or back to its name if it changed in between.
//!
//! The steps of a publication, each for all paths before the next:
//!
//! 1. Classify: the file on disk is compared with the old tree, and the kernel is asked whether a
//!    process has it open for writing. Either makes the path a conflict.
//! 2. Stage the new versions and flush them.
//! 3. Delete, and settle what that displaced, so that directories become empty.
//! 4. Swap the staged files in. The file is old or new and never torn.
//! 5. Settle: the displaced old version is compared again. If it changed or a process has it open,
//!    it is swapped back. Otherwise it stays in `undo/displaced` until the next command, because a
//!    program that resolved the name before the swap can still write to it.
//! 6. Flush the names.
//!
//! Recovery from a crash: run it again, which skips what is applied, then [`discard_temporaries`]
//! disposes of staged and displaced files by their content. [`clear_displaced`] runs at the next
//! command. Content that is not as expected always moves to `undo/rescued`, never away. Paths
//! outside the two trees are never touched: ignored files, nested repositories, and what no
//! snapshot includes.
//!
//! Limitations: steps 1 and 5 need leases (Linux, own files, a local file system); `undo/displaced`
//! needs `.git` on the same file system. See docs/decisions/0012-late-writes.md.
//!
//! # Example
//!
//! ```
//! # use std::process::Command;
//! # use teddy::git::repository::Repository;
//! # let dir = tempfile::tempdir()?;
//! # let git = |args: &[&str]| {
//! #     let mut git = Command::new("git");
//! #     git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
//! #     git.current_dir(&dir).args(args).status()
//! # };
//! # git(&["init", "-q", "-b", "main"])?;
//! # let repository = Repository::discover(dir.path(), None)?;
//! use teddy::git::publish::{Conflict, Guard, publish};
//! use teddy::git::snapshot::limits::SnapshotLimits;
//! use teddy::git::snapshot::take_snapshot;
//! use teddy::host::file::read_regular_text;
//!
//! let file = dir.path().join("a.txt");
//! let index = dir.path().join(".git/example");
//! let mut versions = Vec::new();
//! for text in ["one\n", "two\n"] {
//!     std::fs::write(&file, text)?;
//!     versions.push(take_snapshot(&repository, &index, &SnapshotLimits::default(), &[])?.tree);
//! }
//!
//! let guard = Guard::default();
//! publish(&repository, versions[1], versions[0], &guard)?;
//! assert_eq!(read_regular_text(&file, 100)?, "one\n");
//!
//! // A file that is not as the old tree has it is a conflict, and stays.
//! std::fs::write(&file, "three\n")?;
//! let published = publish(&repository, versions[1], versions[0], &guard)?;
//! assert_eq!(published.conflicts[b"a.txt".as_slice()], Conflict::Changed);
//! assert_eq!(read_regular_text(&file, 100)?, "three\n");
//! # Ok::<(), anyhow::Error>(())
//! ```

mod displaced;
mod staged;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::mem;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;

pub(in crate::git) use displaced::keep_replaced_bytes;
pub use displaced::{Conflict, Salvaged, clear_displaced};
pub use staged::{Guard, OverlapRule};

use super::diff::{self, TreeChange};
use super::path_handle::{self, IfMissing, Top, WalkResult};
use super::paths::{self, parent_dirs};
use super::private_files::{self, PrivateFiles};
use super::repository::Repository;
use super::sparse::Hidden;
use crate::git::keep::durable;
use crate::git::object::{EntryMode, TreeId};
use crate::git::parallel;
use crate::host::fault;
use crate::host::file::sync_whole;
use displaced::{Displaced, MOST_OPEN, Shared, TemporaryFiles};
use staged::{PartPublisher, PathVerdict, PublishStep, Staged, Staging};

/// Result of a publication. Lists are sorted by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Published {
    pub written: Vec<Vec<u8>>,
    pub deleted: Vec<Vec<u8>>,
    /// Paths left unchanged.
    pub conflicts: BTreeMap<Vec<u8>, Conflict>,
    /// Files with unknown content that were moved out of the way.
    pub salvaged: Vec<Salvaged>,
}

impl Published {
    pub fn conflict_paths(&self) -> Vec<Vec<u8>> {
        self.conflicts.keys().cloned().collect()
    }
}

struct Publisher<'repo> {
    repository: &'repo Repository,
    from: TreeId,
    to: TreeId,
    guard: &'repo Guard,
    changes: Vec<TreeChange>,
    /// Directories to flush at the end. `None` if there are too many to flush one by one.
    dirs: Option<BTreeSet<Vec<u8>>>,
    part: PartPublisher<'repo>,
    /// Displaced files to be settled.
    displaced: Vec<Displaced>,
    published: Published,
}

/// Updates the worktree's files from tree `from` to tree `to`. The caller holds the repository
/// lock.
///
/// Idempotent: run again after a crash or an error, it skips what is already applied and finishes
/// the rest. An error leaves every file whole, either old or new.
pub fn publish(
    repository: &Repository,
    from: TreeId,
    to: TreeId,
    guard: &Guard,
) -> anyhow::Result<Published> {
    let mut publisher = Publisher::new(repository, from, to, guard)?;
    let mut steps = publisher.judge_all()?;
    if !publisher.changes.is_empty() && !publisher.must_stop() {
        close_private(repository, &mut steps)?;
        publisher.apply(steps)?;
    }

    let mut published = publisher.published;
    published.written.sort();
    published.deleted.sort();
    published.salvaged.append(&mut publisher.part.files.rescued);
    Ok(published)
}

/// Closes new files to others if they are noted as private, and notes those that are to be deleted.
fn close_private(repository: &Repository, steps: &mut [PublishStep]) -> anyhow::Result<()> {
    let mut private = PrivateFiles::of(repository);
    for step in steps {
        let path = &step.change.path;
        match (&step.change.new, step.permissions) {
            (None, Some(permissions)) => private.note(path, permissions),
            (Some(_), None) if private.has(path) => {
                step.permissions = Some(private_files::PRIVATE);
            }
            _ => {}
        }
    }
    private.save().context("noting which files are private")
}

/// Removes the temporary files of an interrupted publication. No other publication may run.
///
/// A file whose content is in neither tree is a save of the user's that was displaced. It moves to
/// `undo/rescued` and is returned.
pub fn discard_temporaries(
    repository: &Repository,
    from: TreeId,
    to: TreeId,
    guard: &Guard,
) -> anyhow::Result<Vec<Salvaged>> {
    let Publisher {
        changes, mut part, ..
    } = Publisher::new(repository, from, to, guard)?;
    let prefix = part.files.shared.prefix().into_bytes();
    let entries = changes.iter().flat_map(|change| [&change.old, &change.new]);
    let ids: HashSet<_> = entries.flatten().map(|entry| entry.id).collect();
    let dirs = changes.iter().flat_map(|change| dirs_of(&change.path));
    for dir in dirs.collect::<BTreeSet<_>>() {
        let WalkResult::Handle(inside) = part
            .files
            .shared
            .top
            .walk(&paths::join(dir, b"x"), IfMissing::Stop)?
        else {
            continue;
        };
        let mut names = inside.siblings()?;
        names.retain(|name| name.starts_with(&prefix));
        for name in &names {
            part.sweep(
                &inside.sibling(name),
                &paths::join(dir, name),
                &changes,
                &ids,
            )?;
        }
        // The temporary file kept its directory from being removed.
        if !names.is_empty() {
            part.files.remove_empty_dirs(&paths::join(dir, b"x"))?;
        }
    }
    Ok(part.files.rescued)
}

/// Returns the directories above a path, innermost first. The last one is the top, which is empty.
fn dirs_of(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    parent_dirs(path).chain([b"".as_slice()])
}

impl<'repo> Publisher<'repo> {
    fn new(
        repository: &'repo Repository,
        from: TreeId,
        to: TreeId,
        guard: &'repo Guard,
    ) -> anyhow::Result<Publisher<'repo>> {
        let shared = Arc::new(Shared::open(repository, &guard.operation)?);
        let files = TemporaryFiles::new(repository, shared);
        let mut changes = diff::changes(repository, from, to)?;
        // Files that a sparse checkout leaves out do not exist on disk.
        let hidden = Hidden::of(repository)?;
        let absent = changes.iter_mut().filter(|change| hidden.has(&change.path));
        absent.for_each(|change| change.old = None);
        let paths = changes.iter().map(|change| change.path.as_slice());
        let persists = |dir: &[u8]| dir_persists(repository, from, to, dir);
        Ok(Publisher {
            repository,
            from,
            to,
            guard,
            dirs: changed_dirs(paths.clone(), persists)?,
            part: PartPublisher::new(files, from, to, guard, paths)?,
            changes,
            displaced: Vec::new(),
            published: Published::default(),
        })
    }

    fn must_stop(&self) -> bool {
        self.guard.overlap == OverlapRule::Stop && !self.published.conflicts.is_empty()
    }

    fn conflict(&mut self, path: Vec<u8>, conflict: Conflict) {
        self.published.conflicts.insert(path, conflict);
    }

    /// Runs `work` on each item, in parallel if there are many. A thread stops at its first error;
    /// the results until then are returned too. `path` is what `work` needs of the two trees.
    fn each<T: Send, R: Send>(
        &mut self,
        items: Vec<T>,
        path: impl Fn(&T) -> Option<&[u8]> + Sync,
        work: impl Fn(&mut PartPublisher<'_>, T) -> anyhow::Result<R> + Sync,
    ) -> anyhow::Result<(Vec<R>, anyhow::Result<()>)> {
        let run = |part: &mut PartPublisher<'_>, items: Vec<T>| {
            let mut results = Vec::new();
            let mut items = items.into_iter();
            let outcome = items.try_for_each(|item| {
                results.push(work(part, item)?);
                Ok(())
            });
            (results, outcome)
        };
        if parallel::threads(items.len()) == 1 {
            return Ok(run(&mut self.part, items));
        }

        let (shared, from, to, guard) = (&self.part.files.shared, self.from, self.to, self.guard);
        let parts = parallel::map_parallel(self.repository, items, |repository, items| {
            let files = TemporaryFiles::new(repository, Arc::clone(shared));
            let mut part =
                PartPublisher::new(files, from, to, guard, items.iter().filter_map(&path))?;
            let done = run(&mut part, items);
            Ok((done, part.files.rescued))
        })?;
        let (mut all, mut first) = (Vec::new(), Ok(()));
        for ((results, outcome), rescued) in parts {
            all.extend(results);
            first = first.and(outcome);
            self.part.files.rescued.extend(rescued);
        }
        Ok((all, first))
    }

    /// Classifies all changes, records the conflicts and returns the applicable steps.
    ///
    /// Deletions are classified first: a new file can replace a directory only if everything in the
    /// directory is deleted.
    fn judge_all(&mut self) -> anyhow::Result<Vec<PublishStep>> {
        let (deletions, others): (Vec<_>, Vec<_>) =
            (self.changes.iter().cloned()).partition(|change| change.new.is_none());
        let mut leaving = BTreeSet::new();
        let mut steps = Vec::new();
        for changes in [deletions, others] {
            let judge = |part: &mut PartPublisher<'_>, change: TreeChange| {
                Ok((part.judge(&change, &leaving)?, change))
            };
            let (judged, outcome) = self.each(changes, |change| Some(&change.path), judge)?;
            outcome?;
            for (verdict, change) in judged {
                match verdict {
                    PathVerdict::Conflict(conflict) => {
                        self.conflict(change.path, conflict);
                        continue;
                    }
                    PathVerdict::Nothing => {}
                    PathVerdict::Proceed(step) => steps.push(*step),
                }
                if change.new.is_none() {
                    leaving.insert(change.path);
                }
            }
        }
        Ok(steps)
    }

    /// Stages new versions, deletes, then swaps the staged files in.
    ///
    /// After an error the files that are not swapped in yet are discarded. Displaced files are
    /// settled in any case.
    fn apply(&mut self, steps: Vec<PublishStep>) -> anyhow::Result<()> {
        let mut staged = Vec::new();
        let outcome = self.stage_and_swap(steps, &mut staged);
        for staged in &staged {
            // The next run sweeps what cannot be removed now.
            let _ = self.part.discard(staged);
        }
        // Even after an error: displaced files must not stay under temporary names.
        self.settle()?;
        outcome?;
        self.flush_names()
    }

    /// `staged` is an out parameter: the caller discards what it still contains.
    fn stage_and_swap(
        &mut self,
        steps: Vec<PublishStep>,
        staged: &mut Vec<Staged>,
    ) -> anyhow::Result<()> {
        let (deletions, writes): (Vec<_>, Vec<_>) =
            (steps.into_iter()).partition(|step| step.change.new.is_none());
        let is_few = writes.len() <= MAX_SINGLE_FLUSHES;
        let deferred = self.stage(writes, is_few, staged)?;
        if self.must_stop() {
            return Ok(());
        }
        // Before the first swap: a power cut after it must not find an empty file.
        if !is_few {
            self.flush_staged(staged)?;
        }
        fault::point("publish-prepared")?;

        // Deletions come first: a new file can need the name of a deleted directory, or the other
        // way round.
        let mut emptied = BTreeSet::new();
        for step in deletions {
            let path = step.change.path.clone();
            let is_open = self.displaced.len() < MOST_OPEN;
            emptied.extend(parent_dirs(&path).next().map(<[u8]>::to_vec));
            match self.part.delete(step, is_open)? {
                Ok(None) => {}
                Ok(Some(file)) => {
                    self.displaced.push(file);
                    self.published.deleted.push(path);
                }
                Err(conflict) => self.conflict(path, conflict),
            }
        }
        // Displaced files must leave their directories, otherwise these are not empty.
        self.settle()?;
        // Subdirectories first, and each directory once: checking that a directory is empty can make
        // the kernel scan all names that it ever had.
        for dir in emptied.iter().rev() {
            self.part.files.remove_empty_dirs(&paths::join(dir, b"x"))?;
        }

        // The others are flushed already, so these are flushed one by one.
        for step in self.stage(deferred, true, staged)? {
            self.conflict(step.change.path, Conflict::Changed);
        }

        // Taken one by one: after an error, `staged` has what the caller must discard.
        while let Some(next) = staged.pop() {
            let path = next.file.path.clone();
            match self.part.swap_in(next)? {
                Ok(file) => {
                    self.displaced.extend(file);
                    self.published.written.push(path);
                }
                Err(conflict) => self.conflict(path, conflict),
            }
        }
        Ok(())
    }

    /// Stages new versions, and flushes each if `durable`. Returns the steps whose directory cannot be
    /// created yet.
    fn stage(
        &mut self,
        steps: Vec<PublishStep>,
        durable: bool,
        staged: &mut Vec<Staged>,
    ) -> anyhow::Result<Vec<PublishStep>> {
        let stage = |part: &mut PartPublisher<'_>, step: PublishStep| {
            let path = step.change.path.clone();
            Ok((path, part.stage(step, durable)?))
        };
        let (results, outcome) = self.each(steps, |step| Some(&step.change.path), stage)?;
        let mut deferred = Vec::new();
        for (path, staging) in results {
            match staging {
                Staging::Ready(file) => staged.push(*file),
                Staging::Deferred(step) => deferred.push(*step),
                Staging::Conflict(conflict) => self.conflict(path, conflict),
            }
        }
        outcome?;
        Ok(deferred)
    }

    /// Settles the displaced files. Those that get their name back are conflicts.
    fn settle(&mut self) -> anyhow::Result<()> {
        let files = mem::take(&mut self.displaced);
        // Displaced files are compared with their own mark, so the trees are not needed.
        let settle = |part: &mut PartPublisher<'_>, file: Displaced| {
            Ok(part
                .files
                .settle(&file)?
                .map(|conflict| (file.path, conflict)))
        };
        let (returned, outcome) = self.each(files, |_| None, settle)?;
        let returned: BTreeMap<_, _> = returned.into_iter().flatten().collect();
        if !returned.is_empty() {
            let published = &mut self.published;
            published
                .written
                .retain(|path| !returned.contains_key(path));
            published
                .deleted
                .retain(|path| !returned.contains_key(path));
            published.conflicts.extend(returned);
        }
        outcome
    }
}

// Flushes, so that a power cut leaves each file old or new, never empty, and leaves it new once
// `publish` has returned.
//
// `syncfs` waits for everything that any process wrote to the file system, for example a build.
// Most turns change a few files, so these and their directories are flushed one by one; more than
// `MAX_SINGLE_FLUSHES` get one `syncfs`.

/// Above this number of files, or of directories, one `syncfs` replaces the single flushes.
const MAX_SINGLE_FLUSHES: usize = 8;

const FLUSH_ACTION: &str = "making the files durable";

impl Publisher<'_> {
    /// Flushes many staged files. Without this, a power cut after a swap can leave empty files.
    fn flush_staged(&self, staged: &[Staged]) -> anyhow::Result<()> {
        if sync_whole(self.repository.workdir()).context(FLUSH_ACTION)? {
            return Ok(());
        }
        for Staged { file, .. } in staged {
            let walked = self
                .part
                .files
                .shared
                .top
                .walk(&file.path, IfMissing::Stop)?;
            if let WalkResult::Handle(handle) = walked {
                path_handle::sync_contents(&handle.sibling(&file.temporary))
                    .context(FLUSH_ACTION)?;
            }
        }
        Ok(())
    }

    /// Flushes the directories of all changed names, including names that an earlier run changed
    /// before it crashed.
    fn flush_names(&self) -> anyhow::Result<()> {
        let top = &self.part.files.shared.top;
        let is_away = flush_displaced_dir(self.repository).context(FLUSH_ACTION)?;
        if let Some(dirs) = &self.dirs
            && flush_dirs(top, dirs).context(FLUSH_ACTION)?
            && is_away
        {
            return Ok(());
        }
        // Without `syncfs`, the single flushes above are all that is possible.
        if sync_whole(self.repository.workdir()).context(FLUSH_ACTION)? || self.dirs.is_some() {
            return Ok(());
        }

        // No `syncfs` on this system: flush directories one by one, however many.
        let dirs = self.changes.iter().flat_map(|change| dirs_of(&change.path));
        flush_dirs(top, &dirs.map(<[u8]>::to_vec).collect()).context(FLUSH_ACTION)?;
        Ok(())
    }
}

fn flush_displaced_dir(repository: &Repository) -> io::Result<bool> {
    match Top::open(&repository.teddy_dir()) {
        Ok(top) => flush_dir(&top, b"undo/displaced"),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Flushes directories one by one. Returns `false` if one could not be flushed: a symlink replaced
/// it, it is not readable, or its file system cannot flush it.
fn flush_dirs(top: &Top, dirs: &BTreeSet<Vec<u8>>) -> io::Result<bool> {
    let mut is_durable = true;
    for dir in dirs {
        is_durable &= flush_dir(top, dir)?;
    }
    Ok(is_durable)
}

/// Flushes one directory below `top` without following symlinks. A missing directory counts as
/// flushed.
fn flush_dir(top: &Top, dir: &[u8]) -> io::Result<bool> {
    match top.walk(&paths::join(dir, b"x"), IfMissing::Stop)? {
        WalkResult::Handle(handle) => path_handle::sync_parent_dir(&handle),
        WalkResult::Missing => Ok(true),
        WalkResult::Blocked(_)
        | WalkResult::Denied
        | WalkResult::Boundary
        | WalkResult::Refused => Ok(false),
    }
}

/// Returns the directories whose entries change: the parents of the paths, and the parent of each
/// directory that is itself new or removed (`persists` returns false). `None` if there are more
/// than `MAX_SINGLE_FLUSHES`.
fn changed_dirs<'p>(
    paths: impl Iterator<Item = &'p [u8]>,
    persists: impl Fn(&[u8]) -> anyhow::Result<bool>,
) -> anyhow::Result<Option<BTreeSet<Vec<u8>>>> {
    let mut dirs = BTreeSet::new();
    for path in paths {
        for dir in dirs_of(path) {
            let is_last = dirs.contains(dir) || dir.is_empty() || persists(dir)?;
            dirs.insert(dir.to_vec());
            if is_last {
                break;
            }
        }
        if dirs.len() > MAX_SINGLE_FLUSHES {
            return Ok(None);
        }
    }
    Ok(Some(dirs))
}

/// Returns whether a directory exists before and after, with its own name already on disk.
///
/// Both trees must have it. That is not enough: a sparse checkout leaves directories out, so the
/// user or a killed run can have created it just now. So its parent must not have changed recently
/// either.
fn dir_persists(
    repository: &Repository,
    from: TreeId,
    to: TreeId,
    dir: &[u8],
) -> anyhow::Result<bool> {
    for tree in [from, to] {
        let entry = repository.entry(tree, dir)?;
        if entry.is_none_or(|entry| entry.mode != EntryMode::Tree) {
            return Ok(false);
        }
    }

    let inside = repository.workdir().join(Path::new(OsStr::from_bytes(dir)));
    let is_there = inside
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_dir());
    let parent = inside.parent().and_then(|parent| parent.metadata().ok());
    // A recent change of the parent can be the creation of this directory.
    Ok(is_there && parent.is_some_and(|parent| !durable::is_recent(&parent)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::sample;

    #[track_caller]
    fn check(paths: &[&str], expected: &[&str]) {
        // A directory named "new" is created, and so is everything in it.
        let persists = |dir: &[u8]| Ok(!dir.split(|&byte| byte == b'/').any(|part| part == b"new"));
        let paths_of = paths.iter().map(|path| path.as_bytes());
        let actual = changed_dirs(paths_of, persists).unwrap().unwrap();
        let expected = expected.iter().map(|dir| dir.as_bytes().to_vec()).collect();
        assert_eq!(actual, expected, "{paths:?}");
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
        let persists = |dir: &str| dir_persists(&repository, tree, tree, dir.as_bytes()).unwrap();
        assert!(!persists("d") && !persists("d/e"));
        std::fs::create_dir_all(outer.path().join("d/e")).unwrap();
        assert!(!persists("d") && !persists("d/e"));
    }

    #[test]
    fn a_folder_is_flushed_through_no_link() {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(outer.path().join("top/a/b")).unwrap();
        std::fs::create_dir(outer.path().join("outside")).unwrap();
        std::os::unix::fs::symlink("../outside", outer.path().join("top/link")).unwrap();
        let top = Top::open(&outer.path().join("top")).unwrap();
        for (dir, expected) in [
            ("", true),
            ("a", true),
            ("a/b", true),
            ("gone", true),
            ("link", false),
        ] {
            let actual = flush_dir(&top, dir.as_bytes()).unwrap();
            assert_eq!(actual, expected, "`{dir}`");
        }
    }

    #[test]
    fn many_folders_are_not_flushed_one_by_one() {
        let paths: Vec<_> = (0..MAX_SINGLE_FLUSHES)
            .map(|number| format!("{number}/x"))
            .collect();
        let paths = paths.iter().map(|path| path.as_bytes());
        let actual = changed_dirs(paths, |_| Ok(false)).unwrap();
        assert_eq!(actual, None);
    }
}
