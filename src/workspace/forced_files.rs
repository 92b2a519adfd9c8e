//! Remembers files that turns made and a snapshot would leave out: ignored files, files marked with
//! `git update-index --assume-unchanged`, and files that look like secrets.
//!
//! Two notes for each checkout: `kept` has what snapshots would leave out, `made` all files of
//! turns that git does not track. Rules can change later, so `made` is compared with each snapshot.
//! If the notes are lost, snapshots leave these files out like any other ignored file.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use anyhow::Context as _;

use crate::git::diff::{self, TreeChange};
use crate::git::ignore;
use crate::git::object::{BlobId, EntryMode, TreeId};
use crate::git::publish::Published;
use crate::git::repository::Repository;
use crate::git::snapshot::limits::{CreatedFile, Forced, SnapshotLimits};
use crate::host::file::{is_out_of_reach, make_dirs, read_regular, write_atomic, write_cache};
use crate::workspace::file_move::FileMove;

const KEPT: &str = "kept";
const MADE: &str = "made";
const RULES: &[u8] = b".gitignore";
const MAX_NOTE: u64 = 64 << 20;

type StoredFiles = BTreeMap<Vec<u8>, CreatedFile>;

/// Returns what snapshots of this checkout include despite the rules.
pub fn read_forced(repository: &Repository) -> anyhow::Result<Vec<Forced>> {
    Ok(read(repository, KEPT)?
        .into_iter()
        .map(|(path, file)| forced(path, file))
        .collect())
}

/// Returns files of turns that are on disk and not in the snapshot: git ignores them by now.
pub fn find_missing(repository: &Repository, snapshot: TreeId) -> anyhow::Result<Vec<Forced>> {
    let created = read(repository, MADE)?;
    let paths: BTreeSet<&[u8]> = created.keys().map(Vec::as_slice).collect();
    let captured = repository.entries_at(snapshot, &paths)?;
    let missing = created.iter().filter(|(path, _)| {
        !captured.contains_key(path.as_slice()) && on_disk(repository, path).is_some()
    });
    let missing = missing.map(|(path, file)| forced(path.clone(), *file));
    Ok(missing.collect())
}

pub fn keep(repository: &Repository, files: &[Forced]) -> anyhow::Result<()> {
    let mut stored = read(repository, KEPT)?;
    for Forced {
        path,
        created: file,
    } in files
    {
        stored.extend(file.map(|file| (path.clone(), file)));
    }
    write(repository, KEPT, &stored)
}

fn forced(path: Vec<u8>, file: CreatedFile) -> Forced {
    Forced {
        path,
        created: Some(file),
    }
}

pub fn forget_removed(repository: &Repository) -> anyhow::Result<()> {
    for dir in [KEPT, MADE] {
        let mut stored = read(repository, dir)?;
        let before = stored.len();
        // If the user creates a file of that name later, the ignore rules apply to it.
        stored.retain(|path, _| !is_missing(repository, path));
        if stored.len() < before {
            write(repository, dir, &stored)?;
        }
    }
    Ok(())
}

/// Updates the list after files were applied to a checkout. Conflicting paths keep their entry.
pub fn record_applied(
    limits: &SnapshotLimits,
    checkout: &Repository,
    files: &FileMove,
    published: &Published,
) -> anyhow::Result<()> {
    let before = [read(checkout, KEPT)?, read(checkout, MADE)?];
    let [mut stored, mut made_files] = before.clone();
    let mut applied = Vec::new();
    for change in diff::changes(checkout, files.from, files.to)? {
        if published.conflicts.contains_key(&change.path) {
            continue;
        }

        stored.remove(&change.path);
        made_files.remove(&change.path);
        if let Some(file) = created_file(checkout, &change) {
            applied.push((change.path, file));
        }
    }

    // A turn can write rules that hide its own earlier files.
    let rules_changed = |path: &[u8]| path == RULES || path.ends_with(b"/.gitignore");
    if applied.iter().any(|(path, _)| rules_changed(path)) {
        keep_newly_ignored(checkout, files.to, &mut stored)?;
    }
    let paths: Vec<&[u8]> = applied.iter().map(|(path, _)| path.as_slice()).collect();
    let statuses = ignore::ignore_status(checkout, &paths)?;
    for ((path, file), status) in applied.into_iter().zip(statuses) {
        let is_untracked =
            !status.tracked && (status.ignored || is_passed_over(limits, checkout, &path, file));
        if !status.tracked {
            made_files.insert(path.clone(), file);
        }
        if status.frozen || is_untracked {
            stored.insert(path, file);
        }
    }

    for (dir, now, before) in [(KEPT, stored, &before[0]), (MADE, made_files, &before[1])] {
        if now != *before {
            write(checkout, dir, &now)?;
        }
    }

    Ok(())
}

/// `None` for a deletion, a directory or a submodule.
fn created_file(checkout: &Repository, change: &TreeChange) -> Option<CreatedFile> {
    let entry = change.new.as_ref();
    let entry = entry.filter(|entry| entry.is_file() || entry.mode == EntryMode::Link)?;
    let size = on_disk(checkout, &change.path)?;
    let id = BlobId::of(entry.id);
    Some(CreatedFile { id, size })
}

/// Notes unchanged files that the turn's new rules ignore, which would otherwise look deleted.
fn keep_newly_ignored(
    checkout: &Repository,
    tree: TreeId,
    stored: &mut StoredFiles,
) -> anyhow::Result<()> {
    let leaves = checkout.leaves(tree)?;
    let paths: Vec<&[u8]> = leaves.iter().map(|leaf| leaf.path.as_slice()).collect();
    let statuses = ignore::ignore_status(checkout, &paths)?;
    for (leaf, status) in leaves.iter().zip(statuses) {
        if status.tracked || !status.ignored {
            continue;
        }
        if let Some(size) = on_disk(checkout, &leaf.path) {
            let id = BlobId::of(leaf.id);
            stored.insert(leaf.path.clone(), CreatedFile { id, size });
        }
    }
    Ok(())
}

fn is_passed_over(
    limits: &SnapshotLimits,
    checkout: &Repository,
    path: &[u8],
    file: CreatedFile,
) -> bool {
    let has_key = || {
        let bytes = checkout.blob(file.id);
        bytes.is_ok_and(|bytes| limits.key_in(path, &bytes).is_some())
    };
    file.size > limits.max_file_size || limits.is_secret(path) || has_key()
}

fn on_disk(checkout: &Repository, path: &[u8]) -> Option<u64> {
    let path = checkout.workdir().join(std::ffi::OsStr::from_bytes(path));
    let metadata = path.symlink_metadata().ok()?;
    (!metadata.is_dir()).then_some(metadata.len())
}

/// An error other than absence does not count as missing.
fn is_missing(checkout: &Repository, path: &[u8]) -> bool {
    let path = checkout.workdir().join(std::ffi::OsStr::from_bytes(path));
    match path.symlink_metadata() {
        Ok(metadata) => metadata.is_dir(),
        Err(error) => !is_out_of_reach(&error),
    }
}

fn note_path(checkout: &Repository, dir: &str) -> PathBuf {
    checkout
        .teddy_dir()
        .join(dir)
        .join(checkout.worktree_name())
}

/// Skips damaged entries. Fails if the note is unreadable: its files would look deleted.
fn read(checkout: &Repository, dir: &str) -> anyhow::Result<StoredFiles> {
    let bytes = match read_regular(&note_path(checkout, dir), MAX_NOTE) {
        Err(error) if is_out_of_reach(&error) => return Err(error.into()),
        bytes => bytes.unwrap_or_default(),
    };
    let record = |record: &[u8]| {
        // `<blob> <size> <path>`, NUL-terminated. The path comes last because it can contain
        // spaces.
        let mut parts = record.splitn(3, |&byte| byte == b' ');
        let mut number = || std::str::from_utf8(parts.next()?).ok();
        let (id, size) = (number()?.parse().ok()?, number()?.parse().ok()?);
        Some((parts.next()?.to_vec(), CreatedFile { id, size }))
    };
    let records = bytes.split(|&byte| byte == 0);
    Ok(records.filter_map(record).collect())
}

fn write(checkout: &Repository, dir: &str, stored: &StoredFiles) -> anyhow::Result<()> {
    let path = note_path(checkout, dir);
    let parent = path.parent().expect("the note has a folder");
    let mut bytes = Vec::new();
    for (path, file) in stored {
        bytes.extend_from_slice(format!("{} {} ", file.id, file.size).as_bytes());
        bytes.extend_from_slice(path);
        bytes.push(0);
    }

    // Written after most turns and compared with each snapshot: not worth a flush.
    let write = if dir == KEPT {
        write_atomic
    } else {
        write_cache
    };
    make_dirs(parent)
        .and_then(|()| write(&path, &bytes))
        .with_context(|| format!("writing `{}`", path.display()))
}
