//! Protects new objects from a concurrent `git gc --prune=now` until a ref reaches them.
//!
//! A `gc` that read the refs before ours moved would prune its objects afterwards. So they are
//! first written to a pack with a `.keep` file, which git leaves alone. Once the ref is in place,
//! the `.keep` file is removed. To limit the number of packs, a new pack absorbs older ones
//! ([`pack_merge`]).

mod pack_merge;

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::Context as _;
use gix::ObjectId;
use gix::objs::Kind;
use gix_pack::index::File as Index;

use crate::git::During as _;
use crate::git::keep::damaged;
use crate::git::keep::missing;
use crate::git::keep::pack::keep;
use crate::git::keep::pack::private_blobs;
use crate::git::keep::pack::{Pack, deflated, is_own};
use crate::git::object::absent;
use crate::git::object::id::TagId;
use crate::git::object::large;
use crate::git::object::staged;
use crate::git::object::{Commit, CommitId, TreeId};
use crate::git::repository::Repository;

/// Whether to absorb small packs of earlier turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergePolicy {
    /// Leave them alone.
    Separate,
    /// Absorb packs of similar size. The caller flushes the new pack before [`release_protected`].
    Merge,
}

/// Protected objects. Call [`release_protected`] once a ref reaches them.
#[derive(Debug, Default)]
#[must_use = "the pack stays kept until it is released"]
pub struct ProtectedObjects {
    keeps: Vec<PathBuf>,
    /// Absorbed packs, without extension, to delete in [`release_protected`].
    replaced: Vec<PathBuf>,
}

/// Protects commits and their trees, except what the trees in `whole` contain, which refs reach
/// already. All staged objects are written. Returns `None` if an object is already missing.
pub fn protect_commits(
    repository: &Repository,
    commits: &[CommitId],
    complete: &[TreeId],
    policy: MergePolicy,
) -> anyhow::Result<Option<ProtectedObjects>> {
    private_blobs::note_stored(repository)?;
    let staged = staged::staged_objects(repository);
    let new: HashSet<ObjectId> = staged.iter().map(|(id, ..)| *id).collect();
    let (mut objects, mut missing_trees) = (Vec::new(), Vec::new());
    for &id in commits {
        let Ok(Commit { tree, .. }) = repository.commit(id) else {
            return Ok(None);
        };
        let new_objects = missing::find_new_objects(repository, tree, complete, &new)?;
        objects.push(id.0);
        objects.extend(new_objects.present);
        missing_trees.extend(new_objects.missing);
    }

    let mut keeps = reuse_keeps(repository, &mut objects);
    let mut entries = Vec::with_capacity(objects.len());
    // All staged objects, also those that are not reachable from `commits`: another tree refers to
    // them, and they are not on disk yet.
    let base = pack_merge::newest_large_tree(repository, &new);
    for object in staged {
        entries.push((
            object.0,
            pack_merge::encode_for_pack(repository, &object, base.as_deref())?,
        ));
    }
    objects.retain(|id| !new.contains(id));
    let mut is_whole = missing_trees.is_empty();
    let mut large = Vec::new();
    for id in objects {
        if let Some(stored) = large::find_large(repository, id) {
            large.push(stored);
            continue;
        }

        match absent::find(|| repository.gix.find_object(id)) {
            Ok(object) => entries.push((id, deflated(object.kind, &object.data)?)),
            Err(_) => is_whole = false,
        }
    }

    if !is_whole {
        // `git rev-list` cannot see objects in our memory.
        if repository.is_partial()
            && let Some(keep) = write_staged(repository)?
        {
            entries.retain(|(id, _)| !new.contains(id));
            keeps.push(keep);
        }
        if !lacks_only_promised(repository, commits)? {
            return Ok(None);
        }
    }

    // During a repack a directory can be missing for a moment. Its contents were not collected
    // then.
    if missing_trees.iter().any(|&tree| repository.has(tree)) {
        return Ok(None);
    }

    let size = entries
        .iter()
        .map(|(_, entry)| entry.len() as u64)
        .sum::<u64>()
        + large.iter().map(|stored| stored.size).sum::<u64>()
        + keeps
            .iter()
            .map(|keep| pack_merge::pack_size(keep))
            .sum::<u64>();
    let is_alone = entries.is_empty() && large.is_empty();
    let mut replaced = match policy {
        MergePolicy::Separate => Vec::new(),
        MergePolicy::Merge => pack_merge::merge_packs(repository, &mut entries, &large, size),
    };

    if is_alone && replaced.len() == 1 {
        // It would be replaced by an identical pack.
        (entries, replaced) = (Vec::new(), Vec::new());
    }

    if !entries.is_empty() || !large.is_empty() {
        let mut pack = Pack::new(&keep::pack_dir(repository))?;
        entries
            .iter()
            .try_for_each(|(id, entry)| pack.push(*id, entry))?;
        for stored in large {
            // Damaged objects count as missing.
            if !pack.push_blob(stored.id, stored.size, &mut stored.reader())? {
                return Ok(None);
            }
        }

        let keep = pack.finish(repository)?;
        staged::discard_staged(repository);
        replaced.retain(|old| *old != keep.with_extension(""));
        keeps.push(keep);
    }

    Ok(Some(ProtectedObjects { keeps, replaced }))
}

/// Protects a new tag, given as the content of the object.
pub fn protect_tag(
    repository: &Repository,
    bytes: &[u8],
) -> anyhow::Result<(TagId, ProtectedObjects)> {
    let id = gix::objs::compute_hash(repository.gix.object_hash(), Kind::Tag, bytes)
        .during("naming a tag")?;
    let mut pack = Pack::new(&keep::pack_dir(repository))?;
    pack.push(id, &deflated(Kind::Tag, bytes)?)?;
    let protected = ProtectedObjects {
        keeps: vec![pack.finish(repository)?],
        replaced: Vec::new(),
    };

    Ok((TagId(id), protected))
}

/// Writes staged objects that refs reach although they were missing on disk.
pub fn restore_staged(repository: &Repository) -> anyhow::Result<()> {
    write_staged(repository)?.map_or(Ok(()), |keep| keep::release(&keep))
}

/// Writes the staged objects as a pack and returns its `.keep` file.
fn write_staged(repository: &Repository) -> anyhow::Result<Option<PathBuf>> {
    let staged = staged::staged_objects(repository);
    if staged.is_empty() || repository.read_only {
        return Ok(None);
    }
    let mut pack = Pack::new(&keep::pack_dir(repository))?;
    for object in staged {
        pack.push(object.0, &staged::encode_staged(repository, &object)?)?;
    }
    let keep = pack.finish(repository)?;
    staged::discard_staged(repository);
    Ok(Some(keep))
}

/// Returns whether everything missing below the commits was promised by the server of a partial
/// clone. `git gc` does not affect that.
fn lacks_only_promised(repository: &Repository, commits: &[CommitId]) -> anyhow::Result<bool> {
    if !repository.is_partial() {
        return Ok(false);
    }

    for &id in commits {
        if !damaged::is_complete(repository, id)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes the `.keep` files, now that a ref reaches the objects, and deletes the absorbed packs.
pub fn release_protected(
    repository: &Repository,
    protected: &ProtectedObjects,
) -> anyhow::Result<()> {
    protected
        .keeps
        .iter()
        .try_for_each(|keep| keep::release(keep))?;
    // Checked again: a `git gc` can have started since the packs were absorbed.
    if protected.replaced.is_empty() || pack_merge::is_git_packing(repository) {
        return Ok(());
    }

    for pack in &protected.replaced {
        // The index goes first: git does not use a pack without one.
        for ending in ["idx", "pack"] {
            let path = pack.with_extension(ending);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("removing `{}`", path.display()));
                }
                _ => {}
            }
        }
    }

    pack_merge::forget_deleted_packs(repository);
    Ok(())
}

/// Removes from `wanted` what packs of this process protect already; returns their `.keep` files.
///
/// Packs of other processes do not count, because these can release them at any moment.
fn reuse_keeps(repository: &Repository, objects: &mut Vec<ObjectId>) -> Vec<PathBuf> {
    let mut used = Vec::new();
    for keep in keep::keep_files(repository)
        .into_iter()
        .filter(|keep| is_own(keep))
    {
        let Ok(index) = Index::at(keep.with_extension("idx"), repository.gix.object_hash()) else {
            continue;
        };
        let before = objects.len();
        objects.retain(|id| index.lookup(id).is_none());
        if objects.len() < before {
            used.push(keep);
        }
    }

    let mut unique = HashSet::new();
    objects.retain(|id| unique.insert(*id));
    used
}

#[cfg(test)]
mod tests;
