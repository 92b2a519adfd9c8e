//! Updates the user's files from one tree to another without losing a byte.
//!
//! For each path:
//!
//! 1. The file on disk is compared with the old tree, and the kernel is asked whether a process has
//!    it open for writing. Either makes the path a conflict.
//! 2. The new version is staged next to it and swapped in with one rename, so the file is old or
//!    new and never torn.
//! 3. The displaced old version is compared again. If it changed in between or a process has it
//!    open, it is swapped back.
//! 4. The old version then moves to `undo/displaced` until the next command, because a program that
//!    resolved the name before the swap can still write to it.
//!
//! A run that was interrupted is finished by running it again. Paths outside the two trees are
//! never touched: ignored files, nested repositories, and what no snapshot includes.
//!
//! Limitations: step 1 and 3 need leases (Linux, own files, a local file system); step 4 needs
//! `.git` on the same file system. See docs/decisions/0012-late-writes.md.
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
//! use teddy::git::publish::{Guard, publish};
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
//! assert_eq!(published.conflicts, [b"a.txt".to_vec()]);
//! assert_eq!(read_regular_text(&file, 100)?, "three\n");
//! # Ok::<(), anyhow::Error>(())
//! ```

mod apply;
mod classify;
pub mod displaced_files;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use crate::git::publish::apply::DisplacedFile;
use classify::PublishStep;

use super::diff::TreeChange;
use super::parallel;
use super::path_handle::{IfMissing, PathHandle, RecentLookup, Top, WalkResult};
use super::repository::Repository;
use super::sparse::Hidden;
use super::version::TreeVersion;
use crate::git::keep::durable;
use crate::git::object::{EntryMode, TreeId};
use crate::git::private_files::{self, PrivateFiles};
use crate::git::{diff, path_handle, version};
use crate::host::file::sync_whole;

/// Options of a publication.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// Part of each temporary name; letters, digits and `-` only.
    pub operation: String,
    /// Files and directories that no snapshot includes. They are never changed.
    pub untouchable: BTreeSet<Vec<u8>>,
    /// What to do if a path differs from the old tree.
    pub overlap: OverlapRule,
    /// Whether the result must survive a power cut once [`publish`] returns.
    pub durable: bool,
    /// Whether a change that does not fit the bytes on disk replaces them; they are kept in
    /// `undo/replaced`.
    pub overwrite: bool,
}

/// What to do about a conflict: a path that differs from both the old and the new tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverlapRule {
    /// Write no file at all.
    #[default]
    Stop,
    /// Skip the path and write the others; used to finish an interrupted publication.
    PassOver,
}

/// Result of a publication. All lists are sorted by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Published {
    pub written: Vec<Vec<u8>>,
    pub deleted: Vec<Vec<u8>>,
    /// Paths left unchanged because they differ from both trees.
    pub conflicts: Vec<Vec<u8>>,
    /// Subset of `conflicts` that another process has open for writing.
    pub busy: Vec<Vec<u8>>,
    /// Subset of `conflicts` that the user has no permission to change, because of the file or its
    /// directory.
    pub unwritable: Vec<Vec<u8>>,
    /// Subset of `conflicts` whose bytes on disk git does not store and the change does not fit.
    pub unfit: Vec<Vec<u8>>,
    /// Subset of `conflicts` that are new and whose name differs from an existing one in case only, if
    /// git ignores case.
    pub case_collisions: Vec<Vec<u8>>,
    /// Errors of conflicts whose new version could not be made, for example by a filter.
    pub failed: BTreeMap<Vec<u8>, String>,
    /// Files with unknown content that were moved out of the way.
    pub salvaged: Vec<Salvaged>,
}

/// A file with unexpected content that was found under one of our temporary names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    pub path: Vec<u8>,
    /// Where the file is now, below `undo/rescued`.
    pub saved_as: PathBuf,
}

impl Published {
    fn add(&mut self, part: Published) {
        self.written.extend(part.written);
        self.deleted.extend(part.deleted);
        self.conflicts.extend(part.conflicts);
        self.busy.extend(part.busy);
        self.unwritable.extend(part.unwritable);
        self.unfit.extend(part.unfit);
        self.case_collisions.extend(part.case_collisions);
        self.failed.extend(part.failed);
        self.salvaged.extend(part.salvaged);
    }
}

struct Publisher<'repo> {
    repository: &'repo Repository,
    top: Arc<Top>,
    recent: RecentLookup,
    from: TreeId,
    to: TreeId,
    /// Converts the old tree's entries to their form on disk, with filters applied.
    old: TreeVersion<'repo>,
    new: TreeVersion<'repo>,
    /// Finds case collisions; used if the file system ignores case.
    case_collisions: CaseCollisions,
    guard: &'repo Guard,
    /// Directories to flush at the end, relative to the top. `None` if there are too many to flush
    /// one by one.
    dirs: Option<BTreeSet<PathBuf>>,
    flush: Flush,
    /// Displaced files that `finish_displaced` has yet to compare.
    displaced_files: Vec<DisplacedFile>,
    /// Number of temporary names used; the next name counts on from it.
    names: usize,
    undo_dir: Option<PathHandle>,
    undo_count: usize,
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
    let (mut publisher, changes) = publisher(repository, from, to, guard)?;
    if changes.is_empty() {
        return Ok(Published::default());
    }

    let mut steps = publisher.classify_changes(&changes)?;
    if guard.overlap == OverlapRule::Stop && !publisher.published.conflicts.is_empty() {
        return Ok(publisher.finish());
    }

    close_private(repository, &mut steps)?;
    publisher.apply(steps)?;
    Ok(publisher.finish())
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

/// Clears the old side of changes to files that a sparse checkout leaves out, because they do not
/// exist on disk.
fn show_hidden(repository: &Repository, changes: &mut [TreeChange]) -> anyhow::Result<()> {
    let hidden = Hidden::of(repository)?;
    let changes = changes.iter_mut().filter(|change| hidden.has(&change.path));
    changes.for_each(|change| change.old = None);
    Ok(())
}

fn publisher<'repo>(
    repository: &'repo Repository,
    from: TreeId,
    to: TreeId,
    guard: &'repo Guard,
) -> anyhow::Result<(Publisher<'repo>, Vec<TreeChange>)> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    anyhow::ensure!(
        guard.operation.bytes().all(plain),
        "`{}` cannot be part of a file name",
        guard.operation
    );
    let mut changes = diff::changes(repository, from, to)?;
    show_hidden(repository, &mut changes)?;
    let paths = || changes.iter().map(|change| change.path.as_slice());
    let persists = |dir: &Path| dir_persists(repository, [from, to], dir);
    let publisher = Publisher {
        repository,
        top: Arc::new(Top::open(repository.workdir())?),
        recent: RecentLookup::default(),
        from,
        to,
        old: version::tree_version(repository, from, paths())?,
        new: version::tree_version(repository, to, paths())?,
        case_collisions: CaseCollisions::default(),
        guard,
        dirs: changed_dirs(paths(), persists)?,
        flush: Flush::None,
        displaced_files: Vec::new(),
        names: 0,
        undo_dir: None,
        undo_count: 0,
        published: Published::default(),
    };

    Ok((publisher, changes))
}

impl Publisher<'_> {
    /// Runs `work` on parts of `items` in parallel and merges their results.
    ///
    /// `paths` returns the paths that a part needs of the two trees.
    fn run_parallel<T: Send, R: Send>(
        &mut self,
        items: Vec<T>,
        paths: impl Fn(&[T]) -> Vec<&[u8]> + Sync,
        work: impl Fn(&mut Publisher<'_>, Vec<T>) -> R + Sync,
    ) -> anyhow::Result<Vec<R>> {
        let count = items.len();
        if parallel::threads(count) == 1 {
            return Ok(vec![work(self, items)]);
        }

        let (guard, flush, top) = (self.guard, self.flush, &self.top);
        let (from, to, names, away) = (self.from, self.to, self.names, self.undo_count);
        let outcomes =
            parallel::map_parallel(self.repository, items, |repository, start, part| {
                let concerned = paths(&part);
                let mut publisher = Publisher {
                    repository,
                    top: Arc::clone(top),
                    recent: RecentLookup::default(),
                    from,
                    to,
                    old: version::tree_version(repository, from, concerned.iter().copied())?,
                    new: version::tree_version(repository, to, concerned.iter().copied())?,
                    case_collisions: CaseCollisions::default(),
                    guard,
                    dirs: None,
                    flush,
                    displaced_files: Vec::new(),
                    // Parts can pick the same name. That is safe: a name that exists is skipped, never
                    // overwritten.
                    names: names + start,
                    undo_dir: None,
                    undo_count: away + start,
                    published: Published::default(),
                };

                drop(concerned);
                let outcome = work(&mut publisher, part);
                Ok((outcome, publisher.published))
            })?;

        (self.names, self.undo_count) = (names + count, away + count);
        Ok(outcomes
            .into_iter()
            .map(|(outcome, published)| {
                self.published.add(published);
                outcome
            })
            .collect())
    }

    fn finish(mut self) -> Published {
        let published = &mut self.published;
        for paths in [
            &mut published.written,
            &mut published.deleted,
            &mut published.conflicts,
            &mut published.busy,
            &mut published.unwritable,
            &mut published.unfit,
            &mut published.case_collisions,
        ] {
            paths.sort();
            paths.dedup();
        }

        self.published
    }

    fn walk(&mut self, path: &[u8], missing: IfMissing) -> std::io::Result<WalkResult> {
        self.recent.walk(&self.top, path, missing)
    }

    fn conflict(&mut self, path: &[u8]) {
        self.published.conflicts.push(path.to_vec());
    }
}

fn cannot_write(path: &[u8]) -> String {
    format!("cannot write `{}`", String::from_utf8_lossy(path))
}

/// Names of directories, each directory read once.
#[derive(Debug, Default)]
struct CaseCollisions {
    /// Directory -> lower-case name -> names.
    dirs: HashMap<Vec<u8>, HashMap<String, Vec<Vec<u8>>>>,
}

impl CaseCollisions {
    /// Returns whether the path's directory has another name that differs only in case and is not
    /// to be deleted.
    fn has(
        &mut self,
        handle: &PathHandle,
        path: &[u8],
        leaving: &BTreeSet<Vec<u8>>,
    ) -> io::Result<bool> {
        let name = handle.name();
        let dir = &path[..path.len() - name.len()];
        if !self.dirs.contains_key(dir) {
            self.dirs
                .insert(dir.to_vec(), group_by_lowercase(handle.siblings()?));
        }

        let same = self.dirs[dir].get(&lowercase(name));
        Ok(same
            .into_iter()
            .flatten()
            .any(|other| other != name && !leaving.contains(&[dir, other.as_slice()].concat())))
    }
}

fn group_by_lowercase(names: Vec<Vec<u8>>) -> HashMap<String, Vec<Vec<u8>>> {
    let mut groups: HashMap<String, Vec<Vec<u8>>> = HashMap::new();
    for name in names {
        groups.entry(lowercase(&name)).or_default().push(name);
    }
    groups
}

fn lowercase(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_lowercase()
}

// Flushes, so that a power cut leaves each file old or new, never empty, and leaves it new once
// `publish` has returned.
//
// `syncfs` waits for everything that any process wrote to the file system, for example a build.
// Most turns change a few files, so these and their directories are flushed one by one; more than
// `MAX_SINGLE_FLUSHES` get one `syncfs`.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flush {
    None,
    /// `fsync` of each file when it is staged.
    Each,
    /// One `syncfs` for all files.
    FileSystem,
}

/// Above this number of files, or of directories, one `syncfs` replaces the single flushes.
const MAX_SINGLE_FLUSHES: usize = 8;

fn choose_flush(publisher: &Publisher<'_>, count: usize) -> Flush {
    match (publisher.guard.durable, count > MAX_SINGLE_FLUSHES) {
        (false, _) => Flush::None,
        (true, false) => Flush::Each,
        (true, true) => Flush::FileSystem,
    }
}

/// Flushes staged files, given as pairs of a path and the temporary name next to it. Without this,
/// a power cut after a swap can leave empty files.
fn flush_staged<'p>(
    publisher: &Publisher<'_>,
    prepared: impl Iterator<Item = (&'p [u8], &'p [u8])>,
) -> anyhow::Result<()> {
    if publisher.flush != Flush::FileSystem
        || sync_whole(publisher.repository.workdir()).context(FLUSH_ACTION)?
    {
        return Ok(());
    }
    for (path, temporary) in prepared {
        if let WalkResult::Handle(handle) = publisher.top.walk(path, IfMissing::Stop)? {
            path_handle::sync_contents(&handle.sibling(temporary)).context(FLUSH_ACTION)?;
        }
    }

    Ok(())
}

/// Flushes the directories of all changed names, including names that an earlier run changed before
/// it crashed.
fn flush_names(publisher: &Publisher<'_>) -> anyhow::Result<()> {
    if !publisher.guard.durable {
        return Ok(());
    }

    let is_away = flush_displaced_dir(publisher).context(FLUSH_ACTION)?;
    if let Some(dirs) = &publisher.dirs
        && flush_dirs(publisher, dirs).context(FLUSH_ACTION)?
        && is_away
    {
        return Ok(());
    }
    // Without `syncfs`, the single flushes above are all that is possible.
    if sync_whole(publisher.repository.workdir()).context(FLUSH_ACTION)? || publisher.dirs.is_some()
    {
        return Ok(());
    }

    // No `syncfs` on this system: flush directories one by one, however many.
    let changes = diff::changes(publisher.repository, publisher.from, publisher.to)?;
    let paths = changes.iter().map(|change| change.path.as_slice());
    flush_dirs(publisher, &all_parent_dirs(paths)).context(FLUSH_ACTION)?;
    Ok(())
}

fn flush_displaced_dir(publisher: &Publisher<'_>) -> io::Result<bool> {
    match Top::open(&publisher.repository.teddy_dir()) {
        Ok(top) => flush_dir(&top, b"undo/displaced/"),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Flushes directories one by one. Returns `false` if one could not be flushed: a symlink replaced
/// it, it is not readable, or its file system cannot flush it.
fn flush_dirs(publisher: &Publisher<'_>, dirs: &BTreeSet<PathBuf>) -> io::Result<bool> {
    let mut is_durable = true;
    for dir in dirs {
        let mut inside = dir.as_os_str().as_bytes().to_vec();
        if !inside.is_empty() {
            inside.push(b'/');
        }
        is_durable &= flush_dir(&publisher.top, &inside)?;
    }
    Ok(is_durable)
}

/// Flushes one directory below `top` without following symlinks. A missing directory counts as
/// flushed.
fn flush_dir(top: &Top, dir: &[u8]) -> io::Result<bool> {
    match top.walk(&[dir, b"x"].concat(), IfMissing::Stop)? {
        WalkResult::Handle(handle) => path_handle::sync_parent_dir(&handle),
        WalkResult::Missing => Ok(true),
        WalkResult::Blocked(_)
        | WalkResult::Denied
        | WalkResult::Boundary
        | WalkResult::Refused => Ok(false),
    }
}

const FLUSH_ACTION: &str = "making the files durable";

/// Returns the directories whose entries change: the parents of the paths, and the parent of each
/// directory that is itself new or removed (`persists` returns false). `None` if there are more
/// than `MAX_SINGLE_FLUSHES`.
fn changed_dirs<'p>(
    paths: impl Iterator<Item = &'p [u8]>,
    persists: impl Fn(&Path) -> anyhow::Result<bool>,
) -> anyhow::Result<Option<BTreeSet<PathBuf>>> {
    let mut dirs = BTreeSet::new();
    for path in paths {
        for dir in parent_dirs(path) {
            let is_known = dirs.contains(&dir);
            let is_last = is_known || dir.as_os_str().is_empty() || persists(&dir)?;
            dirs.insert(dir);
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
fn dir_persists(repository: &Repository, trees: [TreeId; 2], dir: &Path) -> anyhow::Result<bool> {
    for tree in trees {
        let entry = repository.entry(tree, dir.as_os_str().as_bytes())?;
        if entry.is_none_or(|entry| entry.mode != EntryMode::Tree) {
            return Ok(false);
        }
    }

    let inside = repository.workdir().join(dir);
    let is_there = inside
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_dir());
    let parent = inside.parent().and_then(|parent| parent.metadata().ok());
    // A recent change of the parent can be the creation of this directory.
    Ok(is_there && parent.is_some_and(|parent| !durable::is_recent(&parent)))
}

fn all_parent_dirs<'p>(paths: impl Iterator<Item = &'p [u8]>) -> BTreeSet<PathBuf> {
    paths.flat_map(parent_dirs).collect()
}

/// Returns the ancestors of a path, innermost first. The last one is the empty path, the top.
fn parent_dirs(path: &[u8]) -> impl Iterator<Item = PathBuf> {
    let above = Path::new(OsStr::from_bytes(path)).ancestors().skip(1);
    above.map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::path_handle::{IfMissing, Top, WalkResult};

    #[test]
    fn a_folder_is_read_once_for_all_its_names() {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir(outer.path().join("d")).unwrap();
        for name in ["d/Read", "d/other", "top"] {
            std::fs::write(outer.path().join(name), "").unwrap();
        }
        let top = Top::open(outer.path()).unwrap();
        let mut collisions = CaseCollisions::default();
        let mut has = |path: &str, leaving: &[&str]| {
            let leaving = leaving
                .iter()
                .map(|path| path.as_bytes().to_vec())
                .collect();
            let WalkResult::Handle(handle) = top.walk(path.as_bytes(), IfMissing::Stop).unwrap()
            else {
                panic!("`{path}` has a folder")
            };
            collisions.has(&handle, path.as_bytes(), &leaving).unwrap()
        };

        assert!(has("d/READ", &[]));
        assert!(!has("d/READ", &["d/Read"]));
        assert!(!has("d/Read", &[]));
        assert!(has("Top", &[]));
        assert!(!has("Other", &[]));
        // The directory is not read again.
        std::fs::write(outer.path().join("d/Late"), "").unwrap();
        assert!(!has("d/late", &[]));
    }
}

#[cfg(test)]
mod durable_tests {
    use super::*;
    use crate::git::sample;

    #[track_caller]
    fn check(paths: &[&str], expected: &[&str]) {
        // A directory named "new" is created, and so is everything in it.
        let persists = |dir: &Path| Ok(dir.iter().all(|part| part != "new"));
        let paths_of = paths.iter().map(|path| path.as_bytes());
        let actual = changed_dirs(paths_of, persists).unwrap().unwrap();
        let expected = expected.iter().map(PathBuf::from).collect();
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
        let persists = |dir: &str| dir_persists(&repository, [tree; 2], Path::new(dir)).unwrap();
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
            ("a/", true),
            ("a/b/", true),
            ("gone/", true),
            ("link/", false),
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
