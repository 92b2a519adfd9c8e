//! Records the user's files as a git tree, as `git add -A && git write-tree` would.
//!
//! The user's index determines what is tracked; it is read and never written. Untracked files are
//! included unless git ignores them or [`limits`] leaves them out. Nested repositories are recorded
//! as submodules, by their HEAD. A private index remembers the stats, so the next snapshot reads
//! only files that changed.
//!
//! New objects are staged in memory, or written as a kept pack if there are many. No ref is updated
//! here.

mod bytes;
mod cache;
mod contents;
mod context;
mod dir_scan;
mod embedded;
mod entry;
pub mod known_files;
mod large;
pub mod limits;
mod list;
pub(in crate::git) mod loaded;
pub mod paths;
mod rules;
mod scan;
mod scanned_files;
pub mod secrets;
mod share;
mod stable;
pub(in crate::git) mod tracked;
mod tree;
pub mod untracked;
mod walk;

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use self::cache::Cache;
use self::context::ScanContext;
use self::limits::{Forced, LeftOut, SnapshotLimits};
use self::scanned_files::ScannedFiles;
use super::repository::Repository;
use crate::git::keep::durable;
use crate::git::object::TreeId;
use crate::git::object::writer::Sink;
use crate::git::stat::{self, Stamp};
use crate::host::file::make_dirs;

/// The user's files at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The recorded tree.
    pub tree: TreeId,
    /// Paths that are not included, sorted.
    pub left_out: Vec<LeftOut>,
    /// `.keep` file of the written pack, if there were new objects. Pass it to `keep::release`
    /// once a ref reaches the tree.
    pub keep: Option<PathBuf>,
}

/// Records the files of this worktree.
///
/// `index` is the path of the worktree's private index, created or replaced as needed. Paths in
/// `force` are included even if they are ignored or too large. A file that cannot be read is left
/// out.
pub fn take_snapshot(
    repository: &Repository,
    index: &Path,
    limits: &SnapshotLimits,
    force: &[Forced],
) -> anyhow::Result<Snapshot> {
    take(repository, index, (limits, force), Sink::finish)
}

/// Like [`take_snapshot`], but only stages a small number of new objects. The caller makes a ref reach
/// the tree.
pub fn staged_snapshot(
    repository: &Repository,
    index: &Path,
    limits: &SnapshotLimits,
    force: &[Forced],
) -> anyhow::Result<Snapshot> {
    take(repository, index, (limits, force), Sink::stage)
}

fn take(
    repository: &Repository,
    index: &Path,
    (limits, force): (&SnapshotLimits, &[Forced]),
    store: impl FnOnce(Sink, &Repository) -> anyhow::Result<Option<PathBuf>>,
) -> anyhow::Result<Snapshot> {
    // git can have written existing objects of the tree moments ago without flushing them.
    durable::note_written();

    let dir = index.parent().context("the private index has no folder")?;
    let file = if repository.read_only {
        None
    } else {
        Some(create_temporary(dir)?)
    };

    // Taken before any file is read: a file that changes later counts as racy.
    let stamp = file
        .as_ref()
        .map(|file| stat::stat_fd(file.as_file()))
        .transpose()?
        .map(|name_stat| name_stat.stat.mtime);
    let cache = repository
        .loaded
        .private_index(index, repository.gix.object_hash())
        .filter(|cache| is_whole(repository, cache));
    let scan = ScanContext::new(repository, limits, force)?
        .with_cache(cache, Stamp(stamp.unwrap_or_default()));

    let mut dirs = walk::walk_worktree(&scan)?;
    let sink = Sink::new(repository);
    contents::read_all(&scan, &mut dirs, &sink)?;
    let trees = tree::write_trees(&scan, repository, &dirs, &sink)?;
    let keep = store(sink, repository)?;
    let root = *trees.ids.first().context("the walk found no top folder")?;
    let mut basis = scan.basis;

    basis.root = root;
    basis.tracking = scan.tracking()?;
    let lists = dirs.iter_mut().map(|dir| std::mem::take(&mut dir.left_out));
    let mut left_out: Vec<LeftOut> = lists.flatten().collect();
    let scanned = ScannedFiles {
        is_valid: scan.names_are_valid() && scan.index_is_valid(),
        before: scan.cache.clone(),
        dirs,
        trees,
        basis,
    };
    // The private index only saves time: a full disk is no reason to fail.
    if let Some(file) = file.filter(|_| !scanned.is_as_saved()) {
        let (names, make) = (scanned.size(), move || scanned.into_cache());
        repository.loaded.save((names, make), file, index);
    }
    scan.keep_index(repository);

    left_out.sort();
    Ok(Snapshot {
        tree: TreeId(root),
        left_out,
        keep,
    })
}

/// Returns whether the objects in a private index still exist. It is not a root for `git gc`, which
/// keeps all objects of a tree or none.
fn is_whole(repository: &Repository, cache: &Cache) -> bool {
    cache.basis.root == repository.gix.empty_tree().id || repository.has(cache.basis.root)
}

/// Creates the temporary file of the private index. Its mtime comes from the file system's clock
/// and precedes every stat of this snapshot.
fn create_temporary(dir: &Path) -> anyhow::Result<tempfile::NamedTempFile> {
    make_dirs(dir).with_context(|| format!("making `{}`", dir.display()))?;
    let file = tempfile::Builder::new()
        .prefix("tmp-index-")
        .tempfile_in(dir);
    file.with_context(|| format!("writing into `{}`", dir.display()))
}

/// Starts to read a large private index in the background, for a snapshot that follows soon.
pub fn expect_snapshot(repository: &Repository, index: &Path) {
    let hash = repository.gix.object_hash();
    repository.loaded.read_ahead(index, hash);
}

/// Deletes a private index, so the next snapshot reads every file.
pub fn forget_snapshot(repository: &Repository, index: &Path) {
    repository.loaded.forget_private_index();
    let _ = std::fs::remove_file(index);
}
