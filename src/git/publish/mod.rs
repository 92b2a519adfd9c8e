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

mod apply;
mod case_collisions;
mod classify;
pub mod displaced_files;
mod durable;
mod finish;
mod onto;
pub(in crate::git) mod replaced;
mod salvaged;
pub mod undo_dir;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use case_collisions::CaseCollisions;
use classify::PublishStep;
use durable::Flush;
use finish::DisplacedFile;

use super::diff::TreeChange;
use super::parallel;
use super::path_handle::{IfMissing, PathHandle, RecentLookup, Top, WalkResult};
use super::repository::Repository;
use super::sparse::Hidden;
use super::version::TreeVersion;
use crate::git::diff;
use crate::git::object::TreeId;
use crate::git::private_files::{self, PrivateFiles};
use crate::git::version;

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

/// Result of a publication.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Published {
    /// Paths that were written, sorted.
    pub written: Vec<Vec<u8>>,
    /// Paths that were deleted, sorted.
    pub deleted: Vec<Vec<u8>>,
    /// Paths left unchanged because they differ from both trees, sorted.
    pub conflicts: Vec<Vec<u8>>,
    /// Subset of `conflicts` that another process has open for writing.
    pub busy: Vec<Vec<u8>>,
    /// Subset of `conflicts` that the user has no permission to change, because of the file or its
    /// directory.
    pub unwritable: Vec<Vec<u8>>,
    /// Those among the conflicts whose bytes on disk git does not store and the change does not
    /// fit.
    pub unfit: Vec<Vec<u8>>,
    /// Subset of `conflicts` that are new and whose name differs from an existing one in case only, if
    /// git ignores case.
    pub case_collisions: Vec<Vec<u8>>,
    /// Why the new version of a conflict could not be made, a filter that failed say.
    pub failed: Vec<String>,
    /// Files with unknown content that were moved out of the way.
    pub salvaged: Vec<Salvaged>,
}

/// A file with unexpected content that was found under one of our temporary names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    /// Path that the file belonged to.
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
    /// Top directory of the worktree, open.
    top: Arc<Top>,
    recent: RecentLookup,
    from: TreeId,
    to: TreeId,
    /// Converts the old tree's entries to their form on disk, with filters applied.
    old: TreeVersion<'repo>,
    /// The same for the new tree.
    new: TreeVersion<'repo>,
    /// Finds case collisions; used if the file system ignores case.
    case_collisions: CaseCollisions,
    guard: &'repo Guard,
    /// Directories to flush at the end, relative to the top. `None` if there are too many to flush
    /// one by one.
    dirs: Option<BTreeSet<PathBuf>>,
    flush: Flush,
    /// Displaced files that `settle` has yet to compare.
    displaced_files: Vec<DisplacedFile>,
    /// Number of temporary names used; the next name counts on from it.
    names: usize,
    /// `undo/displaced`, once it is open.
    undo_dir: Option<PathHandle>,
    /// Number of displaced names used.
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
    let persists = |dir: &Path| durable::dir_persists(repository, [from, to], dir);
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
        dirs: durable::changed_dirs(paths(), persists)?,
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
