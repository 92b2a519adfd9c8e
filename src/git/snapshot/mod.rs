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
mod share;
mod still;
pub(in crate::git) mod tracked;
mod tree;
pub mod untracked;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use self::cache::{Basis, Cache, CachedFolder, Sizes, Writer, mark};
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
    let mut gix = repository.gix.clone();
    gix.objects.refresh_never();
    let trees = tree::write(&scan, &gix, &folders, &sink)?;
    let keep = store(sink, repository)?;
    let root = *trees.first().context("the walk found no top folder")?;
    let mut basis = scan.basis;

    basis.root = root;
    basis.tracking = scan.tracking()?;
    if let Some(file) = file.filter(|_| !is_as_saved(&scan, &folders, basis.root)) {
        // The private index only saves time: a full disk is no reason to fail.
        if let Some(cache) = cache_of(&scan, &folders, &trees, &basis) {
            repository.loaded.save(cache, file, index);
        }
    }
    scan.keep_index(repository);

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

/// Forgets what is known of the files in a private index, so that all of them are read anew.
pub fn forget(repository: &Repository, index: &Path) {
    repository.loaded.forget_private_index();
    let _ = std::fs::remove_file(index);
}

/// Returns the private index that goes with a walk.
fn cache_of(
    scan: &ScanContext<'_>,
    folders: &[Scanned],
    trees: &[gix::ObjectId],
    basis: &Basis,
) -> Option<Cache> {
    let kept = |folder: &Scanned| match (&folder.listing, &scan.cache) {
        (Listing::Kept(number), Some(cache)) if folder.marks & mark::EMBEDDED == 0 => {
            Some((*number, Arc::clone(cache)))
        }
        _ => None,
    };
    let mut sizes = Sizes::default();
    for folder in folders {
        let size = match (kept(folder), &folder.listing) {
            (Some((number, cache)), _) => cache.sizes(number),
            (None, Listing::Read(entries)) => Sizes {
                folders: 1,
                entries: entries.len(),
                names: folder.path.len() + entries.iter().map(|e| e.name.len()).sum::<usize>(),
            },
            (None, Listing::Kept(_)) => Sizes {
                folders: 1,
                entries: 0,
                names: folder.path.len(),
            },
        };
        sizes.folders += size.folders;
        sizes.entries += size.entries;
        sizes.names += size.names;
    }

    let mut writer = Writer::new(sizes, basis.root.as_slice().len());
    for (at, folder) in folders.iter().enumerate() {
        let parent = match at {
            0 => 0,
            _ => tree::parent_of(folders, at) as u32,
        };
        if let Some((number, cache)) = kept(folder) {
            writer.kept(&cache, number, (parent, trees[at].as_slice()));
            continue;
        }

        let record = CachedFolder {
            path: &folder.path,
            parent,
            entries: 0..0,
            marks: folder.marks,
            times: folder.times,
            tree: trees[at],
        };
        writer.folder(&record, |writer| {
            tree::each_entry(scan, folder, &mut |entry| writer.entry(&entry));
        });
    }

    writer.finish(basis)
}
