//! Packs of earlier turns that a new pack takes in, so that they do not become many.
//!
//! Small ones go by their size: each newer pack takes in those that are at most twice as large, and
//! their number grows with the logarithm of what was written, up to [`LARGE`]. The tree of a folder
//! of very many files alone is larger than that, and each turn makes a new one: the pack of the turn
//! before is taken in with its tree as a delta of the new one.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gix::ObjectId;

use crate::git::keep::pack::old::{OldPack, PackedBytes, is_delta};
use crate::git::keep::pack::{LIST, deflated_delta, keep};
use crate::git::object::large::Stored;
use crate::git::object::staged;
use crate::git::object::staged::NewObject;
use crate::git::object::tree::StoredTree;
use crate::git::repository::Repository;
use crate::host::file::write_cache;

/// So many packs are on the list of ours, of which most are gone, before it is written anew.
const MOST_LISTED: usize = 100;
/// Packs of this size are taken in only if a tree of theirs becomes a delta.
const LARGE: u64 = 1024 * 1024;
/// So many packs of this size are looked into, those made last.
const LARGE_ONES: usize = 2;
/// A pack with so many deltas gets no more: as deep as git's own chains of deltas.
const MOST_DELTAS: usize = 50;
/// A delta takes at most one part in so many of what the object takes, or the object stays whole.
const WORTH: u64 = 4;
/// Git itself takes a `gc.pid` that is older for one that a crash left.
const STALE: Duration = Duration::from_secs(12 * 60 * 60);

/// Adds to the objects of a new pack of this size what small packs of ours hold, from the smallest,
/// while each is at most twice the size so far, and what a large one holds beside an older version of
/// a large tree; returns them. Older versions of large trees become deltas, as far as this process
/// has read them.
pub(super) fn take_in(
    repository: &Repository,
    entries: &mut Vec<PackedBytes>,
    large: &[Stored],
    mut size: u64,
) -> Vec<PathBuf> {
    if is_gits_to_pack(repository) {
        return Vec::new();
    }

    // What somebody keeps is in use.
    let packs = own_packs(repository).into_iter();
    let packs = packs.filter(|pack| !pack.with_extension("keep").exists());
    let packs = packs.map(|pack| (size_of(&pack), pack));
    let (mut small, large_ones): (Vec<_>, Vec<_>) = packs.partition(|(size, _)| *size < LARGE);
    small.sort();

    let mut inside: HashSet<ObjectId> = entries.iter().map(|(id, _)| *id).collect();
    inside.extend(large.iter().map(|stored| stored.id));
    let trees = repository.memory.large_trees();
    let (new, old): (Vec<_>, Vec<_>) = trees
        .into_iter()
        .partition(|tree| entries.iter().any(|(id, _)| *id == tree.id()));

    let (mut taken, hash) = (Vec::new(), repository.gix.object_hash());
    for (length, pack) in small {
        if length > 2 * size {
            break;
        }
        // One that cannot be read stays as it is.
        let found = OldPack::open(&pack, hash).and_then(|pack| {
            with_deltas(&pack, [&old, &new]).or_else(|| pack.entries_without(&[], LARGE))
        });
        let Some(found) = found else {
            continue;
        };
        entries.extend(found.into_iter().filter(|(id, _)| inside.insert(*id)));
        size += length;
        taken.push(pack);
    }

    if new.is_empty() || old.is_empty() {
        return taken;
    }
    for (_, pack) in large_ones.into_iter().rev().take(LARGE_ONES) {
        let opened = OldPack::open(&pack, hash);
        if let Some(found) = opened.and_then(|pack| with_deltas(&pack, [&old, &new])) {
            entries.extend(found.into_iter().filter(|(id, _)| inside.insert(*id)));
            taken.push(pack);
        }
    }
    taken
}

/// Returns what is in a pack, with older large trees as deltas of new ones; nothing where it has none
/// of them, has too many deltas already, or is large without them.
fn with_deltas(pack: &OldPack, [older, new]: [&[Arc<StoredTree>]; 2]) -> Option<Vec<PackedBytes>> {
    let mut deltas = Vec::new();
    for tree in older {
        if !pack.has(&tree.id()) {
            continue;
        }
        let length = pack.length_of(&tree.id())?;
        let delta = new.iter().filter_map(|base| delta_of(tree, base, length));
        deltas.extend(delta.min_by_key(|(_, entry)| entry.len()));
    }
    if deltas.is_empty() {
        return None;
    }

    let replaced: Vec<ObjectId> = deltas.iter().map(|(id, _)| *id).collect();
    let mut entries = pack.entries_without(&replaced, LARGE)?;
    let is_deep = entries.iter().filter(|(_, entry)| is_delta(entry)).count() >= MOST_DELTAS;
    entries.extend(deltas);
    (!is_deep).then_some(entries)
}

/// Returns a tree as a delta of another one, if that is much shorter than this length.
fn delta_of(tree: &StoredTree, base: &StoredTree, length: u64) -> Option<PackedBytes> {
    let entry = deflated_delta((base.id(), base.data()), tree.data()).ok()?;
    (entry.len() as u64 <= length / WORTH).then(|| (tree.id(), entry))
}

/// Returns the large tree that was made last of some objects.
pub(super) fn newest_of(
    repository: &Repository,
    objects: &HashSet<ObjectId>,
) -> Option<Arc<StoredTree>> {
    let trees = repository.memory.large_trees();
    trees.into_iter().find(|tree| objects.contains(&tree.id()))
}

/// Returns a staged object as a pack stores it that has this tree, too: another large tree, that of
/// the user's files say, is stored as a delta of it.
///
/// # Errors
/// If it cannot be compressed.
pub(super) fn packed(
    repository: &Repository,
    object: &NewObject,
    base: Option<&StoredTree>,
) -> anyhow::Result<Vec<u8>> {
    let (id, _, bytes) = object;
    let other = base.filter(|base| base.id() != *id);
    let tree = other.and_then(|_| repository.memory.large_tree(*id));
    let delta = other.zip(tree);
    let delta = delta.and_then(|(base, tree)| delta_of(&tree, base, bytes.len() as u64));
    match delta {
        Some((_, entry)) => Ok(entry),
        None => staged::packed(repository, object),
    }
}

/// Returns whether git puts the packs together itself: a `git gc` that runs has listed them and
/// fails where one goes, and an index over several packs would name the ones that are taken in.
pub(super) fn is_gits_to_pack(repository: &Repository) -> bool {
    let age = |path: &Path| {
        std::fs::metadata(path)
            .ok()?
            .modified()
            .ok()
            .map(|time| time.elapsed().unwrap_or_default())
    };
    let runs = age(&repository.common_dir().join("gc.pid")).is_some_and(|age| age < STALE);
    runs || ["multi-pack-index", "multi-pack-index.d"]
        .iter()
        .any(|name| keep::pack_folder(repository).join(name).exists())
}

/// Takes packs that are gone off the list of ours, once it names many.
pub(super) fn forget_gone(repository: &Repository) {
    if keep::listed_packs(repository).len() <= MOST_LISTED {
        return;
    }
    // What cannot be listed is not gone.
    let Ok(there) = keep::pack_files(repository) else {
        return;
    };
    let names: String = own_among(repository, &there)
        .iter()
        .filter_map(|pack| Some(format!("{}\n", pack.file_name()?.to_str()?)))
        .collect();
    // The list only saves room: nothing depends on it.
    let _ = write_cache(&repository.teddy_dir().join(LIST), names.as_bytes());
}

/// Returns the packs that were made here and are still there, without their endings.
pub(super) fn own_packs(repository: &Repository) -> Vec<PathBuf> {
    let there = keep::pack_files(repository).unwrap_or_default();
    own_among(repository, &there)
}

/// Returns the packs that were made here and whose index is among some files. Most of those on the
/// list are gone: the directory is read once instead of asked for each.
fn own_among(repository: &Repository, there: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let mut own = keep::listed_packs(repository);
    own.retain(|pack| there.contains(&pack.with_extension("idx")));
    own
}

/// Returns the size of a pack, given by the path of any of its files.
pub(super) fn size_of(pack: &Path) -> u64 {
    std::fs::metadata(pack.with_extension("pack")).map_or(0, |metadata| metadata.len())
}

#[cfg(test)]
mod tests;
