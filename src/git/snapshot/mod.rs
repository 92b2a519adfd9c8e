//! The snapshot: the user's files as a git tree, as `git add -A && git write-tree` would make it.
//!
//! Tracked is what the user's own index tracks, which is read and never written; untracked files
//! are taken unless git ignores them or the limits leave them out. What a snapshot saw is kept in
//! a private index, so that the next one reads only what has changed since. Embedded repositories
//! are opaque. Objects are written before the tree is named; no ref is moved here.

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
pub mod paths;
mod rules;
mod scan;
mod share;
pub mod tracked;
mod tree;
mod walk;

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use self::cache::{Cache, CachedFolder, Writer, mark};
use self::context::ScanContext;
use self::folder::{Listing, Scanned};
use self::limits::{Forced, LeftOut, SnapshotLimits};
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
    let cache = Cache::load(index, repository.gix.object_hash())
        .filter(|cache| is_whole(repository, cache));
    let scan = ScanContext::new(repository, limits, force)?
        .with_cache(cache, Stamp(stamp.unwrap_or_default()));

    let mut folders = walk::walk(&scan)?;
    let sink = Sink::new(repository);
    content::read_all(&scan, &mut folders, &sink)?;
    let mut gix = repository.gix.clone();
    gix.objects.refresh_never();
    let trees = tree::write(&scan, &gix, &folders, &sink)?;
    let keep = sink.finish(repository)?;
    let root = *trees.first().context("the walk found no top folder")?;
    let mut basis = scan.basis;

    basis.root = root;
    basis.tracking = scan.tracking()?;
    if let Some(file) = file.filter(|_| !is_as_saved(&scan, &folders, basis.root)) {
        // The private index only saves time: a full disk is no reason to fail.
        let _ = save(&scan, &folders, &trees).save(&basis, file, index);
    }

    let mut left_out: Vec<LeftOut> = folders.into_iter().flat_map(|folder| folder.left).collect();
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

/// Returns whether the private index on disk says just this.
fn is_as_saved(scan: &ScanContext<'_>, folders: &[Scanned], root: gix::ObjectId) -> bool {
    let Some(cache) = &scan.cache else {
        return false;
    };
    let kept = folders.iter().all(|folder| is_as_cached(cache, folder));
    scan.names_stand()
        && scan.index_stands()
        && kept
        && cache.basis.root == root
        && folders.len() == cache.folder_count()
}

/// Returns whether a folder is as the private index has it. One that was read anew may be: for paths
/// in it that are to be taken whatever the rules say, now and then.
fn is_as_cached(cache: &Cache, folder: &Scanned) -> bool {
    let Listing::Read(names) = &folder.listing else {
        return true;
    };
    let Some(was) = cache.find_folder(&folder.path).map(|at| cache.folder(at)) else {
        return false;
    };

    let is_sure = folder.times == was.times && was.times.mtime < cache.basis.stamp.0;
    let marks = |marks: u32| marks & !mark::FORCED;
    let mut known = was.entries.clone().map(|at| cache.entry(at));
    is_sure
        && marks(folder.marks) == marks(was.marks)
        && was.entries.len() == names.len()
        && names
            .iter()
            .all(|name| known.next() == Some(name.borrowed()))
}

/// Returns the private index that goes with a walk.
fn save(scan: &ScanContext<'_>, folders: &[Scanned], trees: &[gix::ObjectId]) -> Writer {
    let mut writer = Writer::new();
    for (at, folder) in folders.iter().enumerate() {
        let record = CachedFolder {
            path: &folder.path,
            parent: if at == 0 {
                0
            } else {
                tree::parent_of(folders, at) as u32
            },
            entries: 0..0,
            marks: folder.marks,
            times: folder.times,
            tree: trees[at],
        };

        writer.folder(&record, |writer| {
            tree::each_entry(scan, folder, &mut |entry| writer.entry(&entry));
        });
    }

    writer
}
