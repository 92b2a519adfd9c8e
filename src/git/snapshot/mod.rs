//! The snapshot: the user's files as a git tree, as `git add -A && git write-tree` would make it.
//!
//! Tracked is what the user's own index tracks, which is read and never written; untracked files
//! are taken unless git ignores them or the limits leave them out. What a snapshot saw is kept in
//! a private index, so that the next one reads only what has changed since. Embedded repositories
//! are opaque. New objects are staged, or written if they are many; no ref is moved here.

mod bytes;
mod cache;
mod content;
mod context;
mod embedded;
mod entry;
mod folder;
pub mod known;
mod large;
pub mod limits;
mod list;
pub(in crate::git) mod loaded;
pub mod paths;
mod rules;
mod scan;
pub mod secrets;
mod seen;
mod share;
mod still;
pub(in crate::git) mod tracked;
mod tree;
pub mod untracked;
mod walk;

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use self::cache::Cache;
use self::context::ScanContext;
use self::limits::{Forced, LeftOut, SnapshotLimits};
use self::seen::SeenFiles;
use super::repository::Repository;
use crate::git::keep::durable;
use crate::git::object::TreeId;
use crate::git::object::writer::Sink;
use crate::git::stat::{self, Stamp};
use crate::host::file::make_folders;

/// The user's files at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The tree.
    pub tree: TreeId,
    /// What is not in it, sorted by path.
    pub left_out: Vec<LeftOut>,
    /// The `.keep` file of the pack that was written, if anything was new; [`keep::release`]
    /// it when a ref reaches the tree.
    pub keep: Option<PathBuf>,
}

/// Records the files of this worktree.
///
/// `index` is the private index of this worktree; it is made and replaced as needed. Paths in
/// `force` are taken even where they are ignored, or larger than untracked files may be.
///
/// # Errors
/// Where a required filter fails, git's index is damaged or the object store cannot be
/// written. A file that cannot be read is left out instead.
pub fn snapshot(
    repository: &Repository,
    index: &Path,
    limits: &SnapshotLimits,
    force: &[Forced],
) -> anyhow::Result<Snapshot> {
    take(repository, index, (limits, force), Sink::finish)
}

/// As [`snapshot`], for who makes a ref reach the tree: few new objects are only staged.
///
/// # Errors
/// As for [`snapshot`].
pub fn staged_snapshot(
    repository: &Repository,
    index: &Path,
    limits: &SnapshotLimits,
    force: &[Forced],
) -> anyhow::Result<Snapshot> {
    take(repository, index, (limits, force), Sink::stage)
}

/// Records the files and does with new objects what `store` does.
fn take(
    repository: &Repository,
    index: &Path,
    (limits, force): (&SnapshotLimits, &[Forced]),
    store: impl FnOnce(Sink, &Repository) -> anyhow::Result<Option<PathBuf>>,
) -> anyhow::Result<Snapshot> {
    // What the tree reaches already, git may have written a moment ago, and not flushed.
    durable::note_written();

    let folder = index.parent().context("the private index has no folder")?;
    let file = if repository.read_only {
        None
    } else {
        Some(beside(folder)?)
    };

    let stamp = file
        .as_ref()
        .map(|file| stat::look_at(file.as_file()))
        .transpose()?
        .map(|seen| seen.stat.mtime);
    let cache = repository
        .loaded
        .private_index(index, repository.gix.object_hash())
        .filter(|cache| is_whole(repository, cache));
    let scan = ScanContext::new(repository, limits, force)?
        .with_cache(cache, Stamp(stamp.unwrap_or_default()));

    let mut folders = walk::walk(&scan)?;
    let sink = Sink::new(repository);
    content::read_all(&scan, &mut folders, &sink)?;
    let trees = tree::write(&scan, repository, &folders, &sink)?;
    let keep = store(sink, repository)?;
    let root = *trees.ids.first().context("the walk found no top folder")?;
    let mut basis = scan.basis;

    basis.root = root;
    basis.tracking = scan.tracking()?;
    let left = folders
        .iter_mut()
        .map(|folder| std::mem::take(&mut folder.left));
    let mut left_out: Vec<LeftOut> = left.flatten().collect();
    let seen = SeenFiles {
        stands: scan.names_stand() && scan.index_stands(),
        before: scan.cache.clone(),
        folders,
        trees,
        basis,
    };
    // The private index only saves time: a full disk is no reason to fail.
    if let Some(file) = file.filter(|_| !seen.is_as_saved()) {
        let (names, make) = (seen.size(), move || seen.into_cache());
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

/// Returns whether the objects that a private index names are still there: it is no root for
/// `git gc`, which keeps all that a tree reaches or nothing.
fn is_whole(repository: &Repository, cache: &Cache) -> bool {
    cache.basis.root == repository.gix.empty_tree().id || repository.has(cache.basis.root)
}

/// Makes the file that becomes the private index. Its time is the file system's own, and older than
/// whatever is seen from here on.
fn beside(folder: &Path) -> anyhow::Result<tempfile::NamedTempFile> {
    make_folders(folder).with_context(|| format!("making `{}`", folder.display()))?;
    let file = tempfile::Builder::new()
        .prefix("tmp-index-")
        .tempfile_in(folder);
    file.with_context(|| format!("writing into `{}`", folder.display()))
}

/// Begins to read a private index, which is large where many files are: a snapshot comes soon.
pub fn expect(repository: &Repository, index: &Path) {
    let hash = repository.gix.object_hash();
    repository.loaded.read_ahead(index, hash);
}

/// Forgets what is known of the files in a private index, so that all of them are read anew.
pub fn forget(repository: &Repository, index: &Path) {
    repository.loaded.forget_private_index();
    let _ = std::fs::remove_file(index);
}
