//! Names temporary files, and disposes of them without losing bytes of the user's.

use std::collections::{BTreeSet, HashSet};

use super::salvaged;
use super::{Guard, Publisher, Salvaged};
use crate::git::diff::TreeChange;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::path_handle::{FileBody, IfMissing, OnDisk, PathHandle, WalkResult};
use crate::git::publish::undo_dir;
use crate::git::repository::Repository;
use crate::git::version;
use crate::git::version::Mark;

/// Prefix of every temporary file in the user's worktree.
pub const TEMPORARY_PREFIX: &str = ".teddy-tmp-";

/// Removes the temporary files of an interrupted publication. No other publication may run.
///
/// A file whose content is in neither tree is a save of the user's that was displaced. It moves to
/// `undo/rescued` and is returned.
pub fn discard_temporaries(
    repository: &Repository,
    from: TreeId,
    to: TreeId,
    guard: &Guard,
) -> anyhow::Result<Vec<Salvaged>> {
    let (mut publisher, changes) = super::publisher(repository, from, to, guard)?;
    let prefix = temporary_prefix(&publisher);
    let change_ids: HashSet<gix::ObjectId> = changes
        .iter()
        .flat_map(|change| [&change.old, &change.new])
        .flatten()
        .map(|entry| entry.id)
        .collect();
    let mut dirs = BTreeSet::new();

    for change in &changes {
        dirs.extend(parent_dirs(&change.path).map(<[u8]>::to_vec));
    }

    for dir in dirs {
        let WalkResult::Handle(inside) = publisher
            .top
            .walk(&[dir.as_slice(), b"x"].concat(), IfMissing::Stop)?
        else {
            continue;
        };
        let names: Vec<_> = inside
            .siblings()?
            .into_iter()
            .filter(|name| name.starts_with(&prefix))
            .collect();

        for name in &names {
            discard_temporary(
                &mut publisher,
                &inside.sibling(name),
                &[dir.as_slice(), name].concat(),
                &changes,
                &change_ids,
            )?;
        }

        // The temporary file kept its directory from being removed.
        if !names.is_empty() {
            publisher.remove_empty_dirs(&[dir.as_slice(), b"x"].concat())?;
        }
    }

    Ok(publisher.published.salvaged)
}

pub(super) fn next_temporary_name(publisher: &mut Publisher<'_>) -> Vec<u8> {
    publisher.names += 1;
    [
        temporary_prefix(publisher),
        publisher.names.to_string().into_bytes(),
    ]
    .concat()
}

fn temporary_prefix(publisher: &Publisher<'_>) -> Vec<u8> {
    format!("{TEMPORARY_PREFIX}{}-", publisher.guard.operation).into_bytes()
}

/// Disposes of a temporary file: to `undo/displaced` if its content is `known` and no process has
/// it open for writing, else to `undo/rescued`, where the user finds it.
pub(super) fn discard_file(
    publisher: &mut Publisher<'_>,
    temporary: &PathHandle,
    expected: &Mark,
    path: &[u8],
) -> anyhow::Result<()> {
    let state = temporary.find()?;
    let writers = state.writers();
    let mark = version::read_state(publisher.repository, &state)?.mark;
    if mark == Mark::Absent {
        return Ok(());
    }

    if mark != *expected || writers.are_present() {
        let saved_as = salvaged::salvage_file(publisher.repository, temporary, path)?;
        publisher.published.salvaged.push(Salvaged {
            path: path.to_vec(),
            saved_as,
        });
        return Ok(());
    }

    undo_dir::move_to_undo(publisher, temporary, &mark, None, path)
}

/// Disposes of one temporary file of an interrupted run.
///
/// Its name doesn't tell which change it belongs to. Its content usually does, by blob id; only the
/// output of filters must be compared with each change. An empty file is one that was not written
/// yet.
fn discard_temporary(
    publisher: &mut Publisher<'_>,
    temporary: &PathHandle,
    path: &[u8],
    changes: &[TreeChange],
    ids: &HashSet<gix::ObjectId>,
) -> anyhow::Result<()> {
    let current = version::read_disk(publisher.repository, temporary)?;
    let mut is_known = match (&current.on_disk, &current.mark) {
        (
            OnDisk::File {
                body: FileBody::Bytes(bytes),
                ..
            },
            _,
        ) if bytes.is_empty() => true,
        (_, Mark::File(id, _) | Mark::Link(id)) => ids.contains(id),
        _ => false,
    };

    if let Mark::File(id, _) = current.mark {
        is_known = is_known
            || changes
                .iter()
                .any(|change| is_either_version(publisher, change, id));
    }

    let mark = if is_known { current.mark } else { Mark::Other };
    discard_file(publisher, temporary, &mark, path)
}

/// Returns whether a file has the bytes that a checkout writes for either version of a change. Bytes
/// that git merely stores as one of them are the user's.
fn is_either_version(
    publisher: &mut Publisher<'_>,
    change: &TreeChange,
    id: gix::ObjectId,
) -> bool {
    let path = &change.path;
    let entries = [&change.old, &change.new].into_iter().flatten();
    let mut files = entries.filter(|entry| is_file(entry));
    files.any(|entry| {
        publisher.old.checked_out_id(path, entry).ok() == Some(id)
            || publisher.new.checked_out_id(path, entry).ok() == Some(id)
    })
}

fn is_file(entry: &TreeEntry) -> bool {
    matches!(entry.mode, EntryMode::File | EntryMode::Executable)
}

/// Returns the directories of a path, each with a final `/`. The first is the top, an empty path.
fn parent_dirs(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = path
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
        .map(|(at, _)| at + 1);
    [0].into_iter().chain(ends).map(|end| &path[..end])
}
