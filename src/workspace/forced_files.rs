//! Remembers files that turns made and a snapshot would leave out: ignored files, files marked with
//! `git update-index --assume-unchanged`, and files that look like secrets.
//!
//! The note of a checkout has all files of turns that git does not track, because rules can change
//! later. If it is lost, snapshots leave these files out like any other ignored file.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::git::diff::{self, TreeChange};
use crate::git::ignore;
use crate::git::object::{BlobId, EntryMode, TreeId};
use crate::git::publish::Published;
use crate::git::repository::Repository;
use crate::git::snapshot::limits::{CreatedFile, Forced, SnapshotLimits};
use crate::host::file::{is_out_of_reach, make_dirs, read_regular, write_atomic, write_cache};
use crate::workspace::file_move::FileMove;

const NOTES: &str = "kept";
const RULES: &[u8] = b".gitignore";
const MAX_NOTE: u64 = 64 << 20;

type StoredFiles = BTreeMap<Vec<u8>, CreatedFile>;

/// Returns what snapshots of this checkout include despite the rules.
pub fn read_forced(repository: &Repository) -> anyhow::Result<Vec<Forced>> {
    let forced = |(path, file)| Forced {
        path,
        created: Some(file),
    };
    Ok(read(repository)?.into_iter().map(forced).collect())
}

pub fn forget_removed(repository: &Repository) -> anyhow::Result<()> {
    let mut stored = read(repository)?;
    let before = stored.len();
    // If the user creates a file of that name later, the ignore rules apply to it.
    stored.retain(|path, _| !is_missing(repository, path));
    match stored.len() < before {
        true => write(repository, &stored, write_atomic),
        false => Ok(()),
    }
}

/// Updates the list after files were applied to a checkout. Conflicting paths keep their entry.
pub fn record_applied(
    limits: &SnapshotLimits,
    checkout: &Repository,
    files: &FileMove,
    published: &Published,
) -> anyhow::Result<()> {
    let before = read(checkout)?;
    let mut stored = before.clone();
    let mut applied = Vec::new();
    for change in diff::changes(checkout, files.from, files.to)? {
        if published.conflicts.contains_key(&change.path) {
            continue;
        }

        stored.remove(&change.path);
        if let Some(file) = created_file(checkout, &change) {
            applied.push((change.path, file));
        }
    }

    // A turn can write rules that hide its own earlier files.
    let rules_changed = |path: &[u8]| path == RULES || path.ends_with(b"/.gitignore");
    let mut is_needed = false;
    if applied.iter().any(|(path, _)| rules_changed(path)) {
        is_needed = keep_newly_ignored(checkout, files.to, &mut stored)?;
    }
    let paths: Vec<&[u8]> = applied.iter().map(|(path, _)| path.as_slice()).collect();
    let statuses = ignore::ignore_status(checkout, &paths)?;
    for ((path, file), status) in applied.into_iter().zip(statuses) {
        let is_left_out = status.frozen
            || !status.tracked && (status.ignored || is_passed_over(limits, checkout, &path, file));
        is_needed |= is_left_out;
        if is_left_out || !status.tracked {
            stored.insert(path, file);
        }
    }

    if stored == before {
        return Ok(());
    }
    if is_needed {
        return write(checkout, &stored, write_atomic);
    }
    // Written after most turns. As long as snapshots have the files anyway, the note is worth neither
    // a flush nor an error.
    let _ = write(checkout, &stored, write_cache);
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

/// Notes unchanged files that the turn's new rules ignore, which would otherwise look deleted. Returns
/// whether there are any.
fn keep_newly_ignored(
    checkout: &Repository,
    tree: TreeId,
    stored: &mut StoredFiles,
) -> anyhow::Result<bool> {
    let mut any = false;
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
            any = true;
        }
    }
    Ok(any)
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

fn note_path(checkout: &Repository) -> PathBuf {
    let notes = checkout.teddy_dir().join(NOTES);
    notes.join(checkout.worktree_name())
}

/// Skips damaged entries. Fails if the note is unreadable: its files would look deleted.
fn read(checkout: &Repository) -> anyhow::Result<StoredFiles> {
    let bytes = match read_regular(&note_path(checkout), MAX_NOTE) {
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

fn write(
    checkout: &Repository,
    stored: &StoredFiles,
    method: fn(&Path, &[u8]) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    let path = note_path(checkout);
    let parent = path.parent().expect("the note has a folder");
    let mut bytes = Vec::new();
    for (path, file) in stored {
        bytes.extend_from_slice(format!("{} {} ", file.id, file.size).as_bytes());
        bytes.extend_from_slice(path);
        bytes.push(0);
    }

    make_dirs(parent)
        .and_then(|()| method(&path, &bytes))
        .with_context(|| format!("writing `{}`", path.display()))
}
