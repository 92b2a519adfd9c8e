//! Protects new objects from a concurrent `git gc --prune=now` until a ref reaches them.
//!
//! A `gc` that read the refs before ours moved would prune its objects afterwards. So they are
//! first written to a pack with a `.keep` file, which git leaves alone. Once the ref is in place,
//! the `.keep` file is removed. To limit the number of packs, a new pack absorbs older ones
//! ([`merge_packs`]).

use std::cell::LazyCell;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gix::ObjectId;
use gix::objs::Kind;
use gix_pack::index::File as Index;

use crate::git::During as _;
use crate::git::keep::damaged;
use crate::git::keep::pack::old::{OldPack, PackedBytes, is_delta};
use crate::git::keep::pack::private_blobs::{self, private_packs};
use crate::git::keep::pack::{LIST, Pack, deflated, deflated_delta, is_own, keep};
use crate::git::object::id::TagId;
use crate::git::object::large::{self, Stored};
use crate::git::object::tree::StoredTree;
use crate::git::object::writer;
use crate::git::object::writer::NewObject;
use crate::git::object::{Commit, CommitId, TreeId, absent};
use crate::git::remove_if_exists;
use crate::git::repository::Repository;
use crate::host::file::write_cache;

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

/// Protects commits and their trees, except what the trees in `complete` contain, which refs reach
/// already. Writes all staged objects. Returns `None` if an object is missing.
pub fn protect_commits(
    repository: &Repository,
    commits: &[CommitId],
    complete: &[TreeId],
    policy: MergePolicy,
) -> anyhow::Result<Option<ProtectedObjects>> {
    private_blobs::note_stored(repository)?;
    let staged = writer::staged_objects(repository);
    let new: HashSet<ObjectId> = staged.iter().map(|(id, ..)| *id).collect();
    let (mut objects, mut missing_trees) = (Vec::new(), Vec::new());
    for &id in commits {
        let Ok(Commit { tree, .. }) = repository.commit(id) else {
            return Ok(None);
        };
        let new_objects = find_new_objects(repository, tree, complete, &new)?;
        objects.push(id.0);
        objects.extend(new_objects.present);
        missing_trees.extend(new_objects.missing);
    }

    let mut keeps = reuse_keeps(repository, &mut objects);
    // All staged objects, also those that are not reachable from `commits`: another tree refers to
    // them, and they are not on disk yet.
    let base = newest_large_tree(repository, &new);
    let mut content = PackContent::of_staged(repository, staged, base.as_deref())?;
    objects.retain(|id| !new.contains(id));
    let mut is_whole = missing_trees.is_empty();
    for id in objects {
        is_whole &= content.add_stored(repository, id)?;
    }

    if !is_whole {
        // `git rev-list` cannot see objects in our memory.
        if repository.is_partial()
            && let Some(keep) = write_staged(repository)?
        {
            content.entries.retain(|(id, _)| !new.contains(id));
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

    let size = content.size() + keeps.iter().map(|keep| pack_size(keep)).sum::<u64>();
    let is_alone = content.is_empty();
    let mut replaced = match policy {
        MergePolicy::Separate => Vec::new(),
        MergePolicy::Merge => merge_packs(repository, &mut content, size),
    };

    if is_alone && replaced.len() == 1 {
        // It would be replaced by an identical pack.
        (content, replaced) = (PackContent::default(), Vec::new());
    }

    if !content.is_empty() {
        let Some(keep) = content.write(repository)? else {
            return Ok(None);
        };
        keeps.push(keep);
    }

    Ok(Some(ProtectedObjects { keeps, replaced }))
}

#[derive(Default)]
struct PackContent {
    entries: Vec<PackedBytes>,
    /// Blobs that are copied in parts, because they do not fit into memory.
    large: Vec<Stored>,
}

impl PackContent {
    fn of_staged(
        repository: &Repository,
        staged: Vec<NewObject>,
        base: Option<&StoredTree>,
    ) -> anyhow::Result<Self> {
        let mut content = Self::default();
        for object in staged {
            let entry = encode_for_pack(repository, &object, base)?;
            content.entries.push((object.0, entry));
        }
        Ok(content)
    }

    /// Adds an object from the disk. Returns `false` if it does not exist.
    fn add_stored(&mut self, repository: &Repository, id: ObjectId) -> anyhow::Result<bool> {
        if let Some(stored) = large::find_large(repository, id) {
            self.large.push(stored);
            return Ok(true);
        }
        let Ok(object) = absent::find(|| repository.gix.find_object(id)) else {
            return Ok(false);
        };
        let entry = deflated(object.kind, &object.data)?;
        self.entries.push((id, entry));
        Ok(true)
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.large.is_empty()
    }

    fn size(&self) -> u64 {
        let entries = self.entries.iter().map(|(_, entry)| entry.len() as u64);
        let large = self.large.iter().map(|stored| stored.size);
        entries.chain(large).sum()
    }

    fn ids(&self) -> HashSet<ObjectId> {
        let entries = self.entries.iter().map(|(id, _)| *id);
        let large = self.large.iter().map(|stored| stored.id);
        entries.chain(large).collect()
    }

    /// Writes the pack and returns its `.keep` file. The staged objects are in it, so they are
    /// discarded. `None` if an object is damaged, which counts as missing.
    fn write(self, repository: &Repository) -> anyhow::Result<Option<PathBuf>> {
        let mut pack = Pack::new(&keep::pack_dir(repository))?;
        for (id, entry) in &self.entries {
            pack.push(*id, entry)?;
        }
        for stored in self.large {
            if !pack.push_blob(stored.id, stored.size, &mut stored.reader())? {
                return Ok(None);
            }
        }

        let keep = pack.finish(repository)?;
        writer::discard_staged(repository);
        Ok(Some(keep))
    }
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
    let staged = writer::staged_objects(repository);
    if staged.is_empty() || repository.read_only {
        return Ok(None);
    }
    PackContent::of_staged(repository, staged, None)?.write(repository)
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
    if protected.replaced.is_empty() || is_git_packing(repository) {
        return Ok(());
    }

    for pack in &protected.replaced {
        // The index goes first: git does not use a pack without one.
        for ending in ["idx", "pack"] {
            remove_if_exists(&pack.with_extension(ending))?;
        }
    }

    forget_deleted_packs(repository);
    Ok(())
}

/// Removes from `objects` those that packs of this process protect; returns their `.keep` files.
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

// Absorbs packs of earlier turns into a new one, to limit their number.
//
// A new pack absorbs small packs of at most twice its size, so their number grows with the
// logarithm of the data, up to [`LARGE_PACK`]. The tree of a very large directory is larger than that,
// and each turn creates a new one. So the pack of the previous turn is absorbed with its tree
// stored as a delta of the new one.

/// Length of the list of our packs above which deleted ones are removed from it.
const MAX_LISTED_PACKS: usize = 100;

/// Size in bytes from which a pack is absorbed only if one of its trees becomes a delta.
const LARGE_PACK: u64 = 1024 * 1024;

/// Number of newest large packs that are considered.
const MAX_LARGE_PACKS: usize = 2;

/// Number of deltas at which a pack gets no more; git's default depth of delta chains.
const MAX_DELTAS: usize = 50;

/// A delta must be at most `1/DELTA_FRACTION` of the object's size.
const DELTA_FRACTION: u64 = 4;

/// git considers an older `gc.pid` stale.
const STALE_GC: Duration = Duration::from_secs(12 * 60 * 60);

/// Adds objects of older packs of ours to a new pack of the given size, and returns the absorbed
/// packs.
///
/// Small packs are absorbed smallest first, while each is at most twice the size so far. A large
/// one is absorbed if one of its large trees becomes a delta of a new one. Only trees that this
/// process has read become deltas.
fn merge_packs(repository: &Repository, content: &mut PackContent, mut size: u64) -> Vec<PathBuf> {
    if is_git_packing(repository) {
        return Vec::new();
    }

    let packs = mergeable_packs(repository).into_iter();
    let packs = packs.map(|pack| (pack_size(&pack), pack));
    let (mut small, large): (Vec<_>, Vec<_>) = packs.partition(|(size, _)| *size < LARGE_PACK);
    small.sort();

    let mut inside = content.ids();
    let trees = repository.memory.trees.all().into_iter();
    let (new, old): (Vec<_>, Vec<_>) = trees.partition(|tree| inside.contains(&tree.id()));

    let (mut absorbed, hash) = (Vec::new(), repository.gix.object_hash());
    let mut absorb = |pack: PathBuf, objects: Vec<PackedBytes>| {
        let objects = objects.into_iter();
        let further = objects.filter(|(id, _)| inside.insert(*id));
        content.entries.extend(further);
        absorbed.push(pack);
    };
    for (length, pack) in small {
        if length > 2 * size {
            break;
        }
        // An unreadable pack stays.
        let objects = OldPack::open(&pack, hash).and_then(|pack| {
            entries_with_deltas(&pack, &old, &new).or_else(|| pack.entries_without(&[], LARGE_PACK))
        });
        if let Some(objects) = objects {
            absorb(pack, objects);
            size += length;
        }
    }

    if new.is_empty() || old.is_empty() {
        return absorbed;
    }
    for (_, pack) in large.into_iter().rev().take(MAX_LARGE_PACKS) {
        let opened = OldPack::open(&pack, hash);
        if let Some(objects) = opened.and_then(|pack| entries_with_deltas(&pack, &old, &new)) {
            absorb(pack, objects);
        }
    }
    absorbed
}

fn mergeable_packs(repository: &Repository) -> Vec<PathBuf> {
    let private = private_packs(repository);
    let mut packs = own_packs(repository);
    // A pack with a `.keep` file is in use. Blobs of private packs would become readable for
    // others.
    packs.retain(|pack| !pack.with_extension("keep").exists() && !private.contains(pack));
    packs
}

/// Returns the objects of a pack, with its large trees as deltas of new ones. `None` if it has no
/// such tree, too many deltas, or is large even without the trees.
fn entries_with_deltas(
    pack: &OldPack,
    older: &[Arc<StoredTree>],
    new: &[Arc<StoredTree>],
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
    let entry = deflated_delta(base.id(), base.data(), tree.data()).ok()?;
    (entry.len() as u64 <= length / DELTA_FRACTION).then(|| (tree.id(), entry))
}

fn newest_large_tree(
    repository: &Repository,
    objects: &HashSet<ObjectId>,
) -> Option<Arc<StoredTree>> {
    let trees = repository.memory.trees.all();
    trees.into_iter().find(|tree| objects.contains(&tree.id()))
}

/// Encodes a staged object. Another large tree, for example that of the user's files, becomes a
/// delta of `base`, which must be in the same pack.
fn encode_for_pack(
    repository: &Repository,
    object: &NewObject,
    base: Option<&StoredTree>,
) -> anyhow::Result<Vec<u8>> {
    let (id, _, bytes) = object;
    let other = base.filter(|base| base.id() != *id);
    let tree = other.and_then(|_| repository.memory.trees.find(*id));
    let delta = other.zip(tree);
    let delta = delta.and_then(|(base, tree)| delta_of(&tree, base, bytes.len() as u64));
    match delta {
        Some((_, entry)) => Ok(entry),
        None => writer::encode_staged(repository, object),
    }
}

/// Returns whether we must not delete packs: a running `git gc` has listed them and would fail, or
/// a multi-pack index refers to them.
fn is_git_packing(repository: &Repository) -> bool {
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

fn forget_deleted_packs(repository: &Repository) {
    if keep::listed_packs(repository).len() <= MAX_LISTED_PACKS {
        return;
    }
    // If the directory cannot be listed, no pack counts as deleted.
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

fn own_packs(repository: &Repository) -> Vec<PathBuf> {
    let existing = keep::pack_files(repository).unwrap_or_default();
    own_among(repository, &existing)
}

/// Returns our packs whose index is in `existing`. Most listed packs are gone, so the directory is
/// read once instead of one check for each.
fn own_among(repository: &Repository, existing: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let mut own = keep::listed_packs(repository);
    own.retain(|pack| existing.contains(&pack.with_extension("idx")));
    own
}

fn pack_size(pack: &Path) -> u64 {
    std::fs::metadata(pack.with_extension("pack")).map_or(0, |metadata| metadata.len())
}

// Finds the objects of a tree that other, complete trees do not contain. They must be protected
// before a ref moves, because nothing else is known to reach them.

#[derive(Debug, Default, PartialEq, Eq)]
pub struct NewObjects {
    /// Readable trees, and the objects they contain.
    pub present: Vec<ObjectId>,
    /// Missing trees, whose contents are unknown.
    pub missing: Vec<ObjectId>,
}

/// Returns the objects of a tree that the `complete` trees do not contain at the same path.
///
/// A file in `new` is compared only with the first of them that has its directory. Commits of
/// submodules are not included.
pub fn find_new_objects(
    repository: &Repository,
    tree: TreeId,
    complete: &[TreeId],
    new: &HashSet<ObjectId>,
) -> anyhow::Result<NewObjects> {
    let mut search = NewObjectSearch {
        repository,
        new,
        found: NewObjects::default(),
        pending: vec![(tree.0, complete.iter().map(|tree| tree.0).collect())],
    };
    while let Some((tree, complete)) = search.pending.pop() {
        if complete.contains(&tree) {
            continue;
        }

        match repository.stored_tree_if_present(tree)? {
            Some(entries) => {
                search.found.present.push(tree);
                search.compare(&entries, complete)?;
            }
            None => search.found.missing.push(tree),
        }
    }

    Ok(search.found)
}

struct NewObjectSearch<'a> {
    repository: &'a Repository,
    new: &'a HashSet<ObjectId>,
    found: NewObjects,
    /// Directories, each with those that the complete trees have at its path.
    pending: Vec<(ObjectId, Vec<ObjectId>)>,
}

impl NewObjectSearch<'_> {
    /// Adds the new entries of one directory.
    fn compare(&mut self, tree: &StoredTree, complete: Vec<ObjectId>) -> anyhow::Result<()> {
        // Read on first use. One that cannot be read, as in a partial clone, counts as empty.
        let repository = self.repository;
        let read = |id| move || repository.stored_tree_if_present(id).ok().flatten();
        let others: Vec<_> = complete
            .into_iter()
            .map(|id| LazyCell::new(read(id)))
            .collect();
        let first = others.first().and_then(|other| other.as_ref());
        let mut next = first.map(|first| first.entries());

        let mut entries = tree.entries();
        while let Some(raw) = entries.peek()? {
            entries.pass(Some(raw));
            // Nearly all entries of a large directory equal those of the first other tree.
            if next.as_mut().is_some_and(|next| next.skip(raw)) {
                continue;
            }
            let entry = entries.decoded(raw)?;
            let (oid, is_tree) = (entry.oid.to_owned(), entry.mode.is_tree());
            let is_new_file = !is_tree && self.new.contains(&oid);
            let searched = if is_new_file { 1 } else { others.len() };
            let mut before = Vec::new();
            for (number, other) in others.iter().take(searched).enumerate() {
                let found = other
                    .as_ref()
                    .map(|other| other.bisect_rest(entry.filename));
                let Some(Ok(Some((same, rest)))) = found else {
                    continue;
                };
                before.extend((same.mode.is_tree() == is_tree).then(|| same.oid.to_owned()));
                if number == 0 {
                    next = Some(rest);
                }
            }
            if before.contains(&oid) || entry.mode.is_commit() {
                continue;
            }

            if is_tree {
                self.pending.push((oid, before));
            } else {
                self.found.present.push(oid);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod pack_merge_tests;

#[cfg(test)]
mod missing_tests;
