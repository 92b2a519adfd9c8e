//! Records the user's files as a git tree, as `git add -A && git write-tree` would.
//!
//! The user's index determines what is tracked; it is read and never written. [`limits`] leaves out
//! some untracked files. A private index remembers the stats, so the next snapshot reads only files
//! that changed. New objects are staged in memory, or written as a kept pack if there are many. No
//! ref is updated here.
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
//! use teddy::git::snapshot::limits::SnapshotLimits;
//! use teddy::git::snapshot::take_snapshot;
//!
//! std::fs::write(dir.path().join("a.txt"), "one\n")?;
//! let index = dir.path().join(".git/example");
//! let snapshot = take_snapshot(&repository, &index, &SnapshotLimits::default(), &[])?;
//! assert_eq!(repository.file(snapshot.tree, "a.txt")?, Some(b"one\n".to_vec()));
//! assert!(!dir.path().join(".git/index").exists());
//! # Ok::<(), anyhow::Error>(())
//! ```

mod cache;
mod contents;
mod context;
mod dir_scan;
pub mod known_files;
pub mod limits;
mod list;
pub(in crate::git) mod loaded;
mod scanned_files;
pub mod secrets;
pub(in crate::git) mod tracked;
mod walk;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rustix::fs::OFlags;

use self::cache::Cache;
use self::context::ScanContext;
use self::limits::{Forced, LeftOut, SnapshotLimits};
use self::scanned_files::ScannedFiles;
use contents::{ContentReader, ReadOutcome};
use limits::{Reason, display_path};

use super::repository::Repository;
use crate::git::diff;
use crate::git::keep::durable;
use crate::git::object::id::index_mode;
use crate::git::object::writer::Sink;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::paths;
use crate::git::snapshot::list::entry_kind;
use crate::git::stat::{self, NameKind, Stamp, is_absent};
use crate::host::file::make_dirs;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
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
    take(repository, index, limits, force, Sink::finish)
}

/// Like [`take_snapshot`], but only stages a small number of new objects. The caller makes a ref reach
/// the tree.
pub fn staged_snapshot(
    repository: &Repository,
    index: &Path,
    limits: &SnapshotLimits,
    force: &[Forced],
) -> anyhow::Result<Snapshot> {
    take(repository, index, limits, force, Sink::stage)
}

fn take(
    repository: &Repository,
    index: &Path,
    limits: &SnapshotLimits,
    force: &[Forced],
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
    let trees = scanned_files::write_trees(&scan, repository, &dirs, &sink)?;
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
        repository.loaded.save(names, make, file, index);
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

/// Deletes a private index, so the next snapshot reads every file.
pub fn forget_snapshot(repository: &Repository, index: &Path) {
    repository.loaded.forget_private_index();
    let _ = std::fs::remove_file(index);
}

/// A file whose content git refuses in a tree.
#[derive(Debug, thiserror::Error)]
#[error("cannot record `{path}`: {reason}")]
struct RefusedContent {
    path: String,
    reason: Reason,
}

/// Returns a copy of `base` in which these paths are as on disk: files and symlinks are recorded,
/// missing paths removed.
///
/// Ignore rules and limits do not apply. A directory on disk replaces a file only if `paths` also
/// contains a path below it. New objects are staged.
pub fn snapshot_paths(
    repository: &Repository,
    base: TreeId,
    paths: &[Vec<u8>],
) -> anyhow::Result<Snapshot> {
    let sink = Sink::new(repository);
    let recorded = repository.entries_at(base, &paths.iter().map(Vec::as_slice).collect())?;
    let edits = read_paths(repository, paths, &recorded, &sink)?;
    Ok(Snapshot {
        tree: diff::tree_into(repository, &sink, base, &edits)?,
        left_out: Vec::new(),
        keep: sink.stage(repository)?,
    })
}

/// Returns whether the files at these paths equal the tree's. Does not descend into directories.
pub fn are_paths_unchanged(
    repository: &Repository,
    tree: TreeId,
    paths: &[Vec<u8>],
) -> anyhow::Result<bool> {
    let recorded = repository.entries_at(tree, &paths.iter().map(Vec::as_slice).collect())?;
    // Its objects are dropped.
    let sink = Sink::new(repository);
    let current = match read_paths(repository, paths, &recorded, &sink) {
        // No tree has it.
        Err(error) if error.is::<RefusedContent>() => return Ok(false),
        current => current?,
    };
    Ok(current.iter().all(|(path, current)| {
        let recorded = recorded.get(path.as_slice());
        current.as_ref() == recorded.filter(|entry| entry.mode != EntryMode::Tree)
    }))
}

/// Reads paths on disk. `None` for one that is not a file, symlink or repository.
fn read_paths(
    repository: &Repository,
    paths: &[Vec<u8>],
    recorded: &BTreeMap<&[u8], TreeEntry>,
    sink: &Sink,
) -> anyhow::Result<BTreeMap<Vec<u8>, Option<TreeEntry>>> {
    let limits = SnapshotLimits::none();
    let scan = ScanContext::new(repository, &limits, &[])?;
    let mut reader = ContentReader::new(&scan, &repository.gix, sink);
    let mut entries = BTreeMap::new();
    for path in paths {
        let before = recorded.get(path.as_slice());
        entries.insert(path.clone(), read_path(&mut reader, &scan, path, before)?);
    }
    Ok(entries)
}

fn read_path(
    reader: &mut ContentReader<'_, '_>,
    scan: &ScanContext<'_>,
    path: &[u8],
    before: Option<&TreeEntry>,
) -> anyhow::Result<Option<TreeEntry>> {
    let (dir, name) = paths::split(path);
    let name_stat = scan
        .open(dir, OFlags::RDONLY | OFlags::DIRECTORY)
        .and_then(|dir| stat::stat_name(dir, name));
    let name_stat = match name_stat {
        Ok(name_stat) => name_stat,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => anyhow::bail!("cannot read `{}`: {}", display_path(path), error.kind()),
    };

    match name_stat.kind {
        NameKind::Dir => {
            let mode = EntryMode::Commit;
            Ok(list::embedded_commit(scan, path).map(|id| TreeEntry { mode, id }))
        }
        NameKind::Special => anyhow::bail!(
            "cannot record `{}`: it is not a file, directory or link",
            display_path(path)
        ),
        NameKind::File | NameKind::Link => {
            let before = before.map(|entry| index_mode(entry.mode));
            let mode = entry_kind(scan, &name_stat, before);
            match reader.read(path, mode, true)? {
                ReadOutcome::Read(id, _) => Ok(Some(TreeEntry { mode, id })),
                ReadOutcome::LeftOut(Reason::Unreadable(why)) => {
                    anyhow::bail!("cannot read `{}`: {why}", display_path(path))
                }
                ReadOutcome::LeftOut(reason @ Reason::Refused(_)) => {
                    let path = display_path(path);
                    Err(RefusedContent { path, reason }.into())
                }
                ReadOutcome::Missing | ReadOutcome::LeftOut(_) => Ok(None),
            }
        }
    }
}
