//! Remembers files that turns made and a snapshot would leave out: ignored files, files marked with
//! `git update-index --assume-unchanged`, and files that look like secrets.
//!
//! Snapshots of the checkout include these files until a turn or the user removes them; otherwise
//! the next snapshot would report them as deleted. The list is one small file per checkout in the
//! git directory, updated whenever files are applied. If it is lost, the files are ignored like any
//! others.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use anyhow::Context as _;

use crate::git::diff;
use crate::git::ignore;
use crate::git::object::{BlobId, EntryMode};
use crate::git::publish::Published;
use crate::git::repository::Repository;
use crate::git::snapshot::limits::{Forced, MadeFile, SnapshotLimits};
use crate::host::file::{make_folders, read_regular, write_atomic};
use crate::workspace::file_move::FileMove;

/// A larger list is not read.
const MAX_NOTE: u64 = 64 << 20;

type Kept = BTreeMap<Vec<u8>, MadeFile>;

/// The files that snapshots of this checkout include despite the ignore rules.
pub fn kept(repository: &Repository) -> Vec<Forced> {
    let kept = read(repository).into_iter();
    kept.map(|(path, made)| Forced {
        path,
        made: Some(made),
    })
    .collect()
}

/// Drops files that no longer exist. If the user later creates a file of the same name, it is
/// theirs and the ignore rules apply.
pub fn forget_removed(repository: &Repository) -> anyhow::Result<()> {
    let mut kept = read(repository);
    let before = kept.len();
    kept.retain(|path, _| on_disk(repository, path).is_some());
    if kept.len() < before {
        write(repository, &kept)?;
    }
    Ok(())
}

/// Updates the list after files were applied to a checkout. Conflicting paths keep their entry.
pub fn note_brought(
    limits: &SnapshotLimits,
    checkout: &Repository,
    files: &FileMove,
    published: &Published,
) -> anyhow::Result<()> {
    let before = read(checkout);
    let mut kept = before.clone();
    let mut brought = Vec::new();
    let conflicts: BTreeSet<&Vec<u8>> = published.conflicts.iter().collect();
    for change in diff::changes(checkout, files.from, files.to)? {
        if conflicts.contains(&change.path) {
            continue;
        }

        kept.remove(&change.path);
        let is_file = |mode: EntryMode| {
            matches!(
                mode,
                EntryMode::File | EntryMode::Executable | EntryMode::Link
            )
        };
        let Some(entry) = change.new.filter(|entry| is_file(entry.mode)) else {
            continue;
        };

        if let Some(size) = on_disk(checkout, &change.path) {
            let id = BlobId::of(entry.id);
            brought.push((change.path, MadeFile { id, size }));
        }
    }

    let paths: Vec<&[u8]> = brought.iter().map(|(path, _)| path.as_slice()).collect();
    let standing = ignore::standing(checkout, &paths)?;
    for ((path, made), standing) in brought.into_iter().zip(standing) {
        let is_untracked = !standing.tracked
            && (standing.ignored || is_passed_over(limits, checkout, &path, made));
        // git does not look at tracked files that are marked `--assume-unchanged`.
        if standing.marked || is_untracked {
            kept.insert(path, made);
        }
    }

    if kept != before {
        write(checkout, &kept)?;
    }

    Ok(())
}

fn is_passed_over(
    limits: &SnapshotLimits,
    checkout: &Repository,
    path: &[u8],
    made: MadeFile,
) -> bool {
    let has_key = || {
        let content = checkout.blob(made.id);
        content.is_ok_and(|content| limits.key_in(path, &content).is_some())
    };
    made.size > limits.max_file_size || limits.is_secret(path) || has_key()
}

/// Size of a file or symlink in a checkout; `None` if it is absent or a directory.
fn on_disk(checkout: &Repository, path: &[u8]) -> Option<u64> {
    let path = checkout.workdir().join(std::ffi::OsStr::from_bytes(path));
    let metadata = path.symlink_metadata().ok()?;
    (!metadata.is_dir()).then_some(metadata.len())
}

fn place(checkout: &Repository) -> PathBuf {
    checkout
        .teddy_dir()
        .join("kept")
        .join(checkout.worktree_name())
}

/// An unreadable list or record counts as absent.
fn read(checkout: &Repository) -> Kept {
    let bytes = read_regular(&place(checkout), MAX_NOTE).unwrap_or_default();
    let record = |record: &[u8]| {
        // `<blob> <size> <path>`, NUL-terminated. The path comes last because it can contain
        // spaces.
        let mut parts = record.splitn(3, |&byte| byte == b' ');
        let mut number = || std::str::from_utf8(parts.next()?).ok();
        let (id, size) = (number()?.parse().ok()?, number()?.parse().ok()?);
        Some((parts.next()?.to_vec(), MadeFile { id, size }))
    };
    bytes.split(|&byte| byte == 0).filter_map(record).collect()
}

fn write(checkout: &Repository, kept: &Kept) -> anyhow::Result<()> {
    let path = place(checkout);
    let folder = path.parent().expect("the note has a folder");
    let mut bytes = Vec::new();
    for (path, made) in kept {
        bytes.extend_from_slice(format!("{} {} ", made.id, made.size).as_bytes());
        bytes.extend_from_slice(path);
        bytes.push(0);
    }

    make_folders(folder)
        .and_then(|()| write_atomic(&path, &bytes))
        .with_context(|| format!("writing `{}`", path.display()))
}
