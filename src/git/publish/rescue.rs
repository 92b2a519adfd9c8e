//! Names temporary files, and disposes of them without losing bytes of the user's.

use std::collections::{BTreeSet, HashSet};

use super::rescued;
use super::{Guard, Publisher, Rescued};
use crate::git::diff::TreeChange;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::place::{FileBody, IfMissing, OnDisk, Place, WalkResult};
use crate::git::publish::displaced;
use crate::git::repository::Repository;
use crate::git::version;
use crate::git::version::Mark;

/// Prefix of every temporary file in the user's worktree.
pub const TEMPORARY: &str = ".teddy-tmp-";

/// Removes the temporary files of an interrupted publication. No other publication may run.
///
/// A file whose content is in neither tree is a save of the user's that was displaced. It moves to
/// `undo/rescued` and is returned.
pub fn sweep_temporaries(
    repository: &Repository,
    from: TreeId,
    to: TreeId,
    guard: &Guard,
) -> anyhow::Result<Vec<Rescued>> {
    let (mut publisher, changes) = super::publisher(repository, from, to, guard)?;
    let prefix = prefix(&publisher);
    let known: HashSet<gix::ObjectId> = changes
        .iter()
        .flat_map(|change| [&change.old, &change.new])
        .flatten()
        .map(|entry| entry.id)
        .collect();
    let mut folders = BTreeSet::new();

    for change in &changes {
        folders.extend(folders_of(&change.path).map(<[u8]>::to_vec));
    }

    for folder in folders {
        let WalkResult::Place(inside) = publisher
            .top
            .walk(&[folder.as_slice(), b"x"].concat(), IfMissing::Stop)?
        else {
            continue;
        };
        let names: Vec<_> = inside
            .siblings()?
            .into_iter()
            .filter(|name| name.starts_with(&prefix))
            .collect();

        for name in &names {
            sweep(
                &mut publisher,
                &inside.sibling(name),
                &[folder.as_slice(), name].concat(),
                &changes,
                &known,
            )?;
        }

        // The temporary file kept its directory from being removed.
        if !names.is_empty() {
            publisher.remove_empty_folders(&[folder.as_slice(), b"x"].concat())?;
        }
    }

    Ok(publisher.done.rescued)
}

pub(super) fn temporary(publisher: &mut Publisher<'_>) -> Vec<u8> {
    publisher.names += 1;
    [prefix(publisher), publisher.names.to_string().into_bytes()].concat()
}

fn prefix(publisher: &Publisher<'_>) -> Vec<u8> {
    format!("{TEMPORARY}{}-", publisher.guard.operation).into_bytes()
}

/// Disposes of a temporary file: to `undo/displaced` if its content is `known` and no process has
/// it open for writing, else to `undo/rescued`, where the user finds it.
pub(super) fn let_go(
    publisher: &mut Publisher<'_>,
    temporary: &Place,
    known: &Mark,
    path: &[u8],
) -> anyhow::Result<()> {
    let found = temporary.find()?;
    let writers = found.writers();
    let mark = version::look_at(publisher.repository, &found)?.mark;
    if mark == Mark::Absent {
        return Ok(());
    }

    if mark != *known || writers.are_there() {
        let kept = rescued::rescue(publisher.repository, temporary, path)?;
        publisher.done.rescued.push(Rescued {
            path: path.to_vec(),
            kept,
        });
        return Ok(());
    }

    displaced::put_away(publisher, temporary, &mark, None, path)
}

/// Disposes of one temporary file of an interrupted run.
///
/// Its name doesn't tell which change it belongs to. Its content usually does, by blob id; only the
/// output of filters must be compared with each change. An empty file is one that was not written
/// yet.
fn sweep(
    publisher: &mut Publisher<'_>,
    temporary: &Place,
    path: &[u8],
    changes: &[TreeChange],
    ids: &HashSet<gix::ObjectId>,
) -> anyhow::Result<()> {
    let found = version::look(publisher.repository, temporary)?;
    let mut known = match (&found.seen, &found.mark) {
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

    if let Mark::File(id, _) = found.mark {
        known = known
            || changes
                .iter()
                .any(|change| is_either(publisher, change, id));
    }

    let mark = if known { found.mark } else { Mark::Other };
    let_go(publisher, temporary, &mark, path)
}

/// Returns whether a file has the bytes that a checkout writes for either version of a change. Bytes
/// that git merely stores as one of them are the user's.
fn is_either(publisher: &mut Publisher<'_>, change: &TreeChange, id: gix::ObjectId) -> bool {
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
fn folders_of(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = path
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
        .map(|(at, _)| at + 1);
    [0].into_iter().chain(ends).map(|end| &path[..end])
}
