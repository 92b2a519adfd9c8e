//! Absorbs packs of earlier turns into a new one, to limit their number.
//!
//! A new pack absorbs small packs of at most twice its size, so their number grows with the
//! logarithm of the data, up to [`LARGE_PACK`]. The tree of a very large directory is larger than that,
//! and each turn creates a new one. So the pack of the previous turn is absorbed with its tree
//! stored as a delta of the new one.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gix::ObjectId;

use crate::git::keep::pack::old::{OldPack, PackedBytes, is_delta};
use crate::git::keep::pack::private_blobs::private_packs;
use crate::git::keep::pack::{LIST, deflated_delta, keep};
use crate::git::object::large::Stored;
use crate::git::object::staged;
use crate::git::object::staged::NewObject;
use crate::git::object::tree::StoredTree;
use crate::git::repository::Repository;
use crate::host::file::write_cache;

/// Length of the list of our packs above which deleted ones are removed from it.
const MAX_LISTED_PACKS: usize = 100;
/// Size in bytes from which a pack is absorbed only if one of its trees becomes a delta.
const LARGE_PACK: u64 = 1024 * 1024;
/// Number of newest large packs that are considered.
const MAX_LARGE_PACKS: usize = 2;
/// Number of deltas at which a pack gets no more; git's default depth of delta chains.
const MAX_DELTAS: usize = 50;
/// A delta must be at most this fraction (1/`WORTH`) of the object's size.
const DELTA_FRACTION: u64 = 4;
/// git considers an older `gc.pid` stale.
const STALE_GC: Duration = Duration::from_secs(12 * 60 * 60);

/// Adds objects of older packs of ours to a new pack of the given size, and returns the absorbed
/// packs.
///
/// Small packs are absorbed smallest first, while each is at most twice the size so far. A large
/// one is absorbed if one of its large trees becomes a delta of a new one. Only trees that this
/// process has read become deltas.
pub(super) fn merge_packs(
    repository: &Repository,
    entries: &mut Vec<PackedBytes>,
    large: &[Stored],
    mut size: u64,
) -> Vec<PathBuf> {
    if is_git_packing(repository) {
        return Vec::new();
    }

    // A pack with a `.keep` file is in use.
    let packs = own_packs(repository).into_iter();
    let packs = packs.filter(|pack| !pack.with_extension("keep").exists());
    let private = private_packs(repository);
    let packs = packs.filter(|pack| !private.contains(pack));
    let packs = packs.map(|pack| (pack_size(&pack), pack));
    let (mut small, large_ones): (Vec<_>, Vec<_>) = packs.partition(|(size, _)| *size < LARGE_PACK);
    small.sort();

    let mut inside: HashSet<ObjectId> = entries.iter().map(|(id, _)| *id).collect();
    inside.extend(large.iter().map(|stored| stored.id));
    let trees = repository.memory.large_trees();
    let (new, old): (Vec<_>, Vec<_>) = trees
        .into_iter()
        .partition(|tree| entries.iter().any(|(id, _)| *id == tree.id()));

    let (mut absorbed, hash) = (Vec::new(), repository.gix.object_hash());
    for (length, pack) in small {
        if length > 2 * size {
            break;
        }
        // An unreadable pack stays.
        let objects = OldPack::open(&pack, hash).and_then(|pack| {
            entries_with_deltas(&pack, [&old, &new])
                .or_else(|| pack.entries_without(&[], LARGE_PACK))
        });
        let Some(objects) = objects else {
            continue;
        };
        entries.extend(objects.into_iter().filter(|(id, _)| inside.insert(*id)));
        size += length;
        absorbed.push(pack);
    }

    if new.is_empty() || old.is_empty() {
        return absorbed;
    }
    for (_, pack) in large_ones.into_iter().rev().take(MAX_LARGE_PACKS) {
        let opened = OldPack::open(&pack, hash);
        if let Some(objects) = opened.and_then(|pack| entries_with_deltas(&pack, [&old, &new])) {
            entries.extend(objects.into_iter().filter(|(id, _)| inside.insert(*id)));
            absorbed.push(pack);
        }
    }
    absorbed
}

/// Returns the objects of a pack, with its large trees as deltas of new ones. `None` if it has no
/// such tree, too many deltas, or is large even without the trees.
fn entries_with_deltas(
    pack: &OldPack,
    [older, new]: [&[Arc<StoredTree>]; 2],
) -> Option<Vec<PackedBytes>> {
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
    let mut entries = pack.entries_without(&replaced, LARGE_PACK)?;
    let is_deep = entries.iter().filter(|(_, entry)| is_delta(entry)).count() >= MAX_DELTAS;
    entries.extend(deltas);
    (!is_deep).then_some(entries)
}

/// Returns a tree as a delta of another one, if it is much shorter than `length`.
fn delta_of(tree: &StoredTree, base: &StoredTree, length: u64) -> Option<PackedBytes> {
    let entry = deflated_delta((base.id(), base.data()), tree.data()).ok()?;
    (entry.len() as u64 <= length / DELTA_FRACTION).then(|| (tree.id(), entry))
}

pub(super) fn newest_large_tree(
    repository: &Repository,
    objects: &HashSet<ObjectId>,
) -> Option<Arc<StoredTree>> {
    let trees = repository.memory.large_trees();
    trees.into_iter().find(|tree| objects.contains(&tree.id()))
}

/// Encodes a staged object. Another large tree, for example that of the user's files, becomes a
/// delta of `base`, which must be in the same pack.
pub(super) fn encode_for_pack(
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
        None => staged::encode_staged(repository, object),
    }
}

/// Returns whether we must not delete packs: a running `git gc` has listed them and would fail, or
/// a multi-pack index refers to them.
pub(super) fn is_git_packing(repository: &Repository) -> bool {
    let age = |path: &Path| {
        std::fs::metadata(path)
            .ok()?
            .modified()
            .ok()
            .map(|time| time.elapsed().unwrap_or_default())
    };
    let runs = age(&repository.common_dir().join("gc.pid")).is_some_and(|age| age < STALE_GC);
    runs || ["multi-pack-index", "multi-pack-index.d"]
        .iter()
        .any(|name| keep::pack_dir(repository).join(name).exists())
}

pub(super) fn forget_deleted_packs(repository: &Repository) {
    if keep::listed_packs(repository).len() <= MAX_LISTED_PACKS {
        return;
    }
    // What cannot be listed is not gone.
    let Ok(existing) = keep::pack_files(repository) else {
        return;
    };
    let names: String = own_among(repository, &existing)
        .iter()
        .filter_map(|pack| Some(format!("{}\n", pack.file_name()?.to_str()?)))
        .collect();
    // Nothing depends on the list.
    let _ = write_cache(&repository.teddy_dir().join(LIST), names.as_bytes());
}

pub(super) fn own_packs(repository: &Repository) -> Vec<PathBuf> {
    let existing = keep::pack_files(repository).unwrap_or_default();
    own_among(repository, &existing)
}

/// Returns the packs that were made here and whose index is among some files. Most of those on the
/// list are gone: the directory is read once instead of asked for each.
fn own_among(repository: &Repository, existing: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let mut own = keep::listed_packs(repository);
    own.retain(|pack| existing.contains(&pack.with_extension("idx")));
    own
}

pub(super) fn pack_size(pack: &Path) -> u64 {
    std::fs::metadata(pack.with_extension("pack")).map_or(0, |metadata| metadata.len())
}

#[cfg(test)]
mod tests;
