//! Objects that stay until a ref reaches them, whatever `git gc --prune=now` does meanwhile.
//!
//! What no ref reaches yet, git may throw away at any moment: a `gc` that has looked at the refs
//! before ours moves prunes after it. So the objects that a ref is about to reach are put into a
//! pack with a `.keep` file first, which no git touches. Once the ref stands the pack is one like
//! any other. So that these packs do not become many, a new one takes older ones in
//! ([`join`]).

mod join;

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
use crate::git::keep::pack::{Pack, deflated, is_own};
use crate::git::object::absent;
use crate::git::object::id::TagId;
use crate::git::object::large;
use crate::git::object::staged;
use crate::git::object::{Commit, CommitId, TreeId};
use crate::git::repository::Repository;

/// What becomes of the small packs that earlier turns made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Older {
    /// They stay.
    Stay,
    /// The new pack takes in those of its size; the caller makes it durable before it settles.
    Join,
}

/// Objects that are kept; [`settle`] is called once a ref reaches them.
#[derive(Debug, Default)]
#[must_use = "the pack stays kept until it is settled"]
pub struct Held {
    /// The `.keep` files of the packs that have them.
    keeps: Vec<PathBuf>,
    /// Older packs, without their endings, whose objects are in one of these, too.
    replaced: Vec<PathBuf>,
}

/// Keeps a commit and its tree, as far as the tree differs from those that refs reach; all that is
/// staged is written. Returns nothing if an object is gone already.
///
/// # Errors
/// Where the object store cannot be written.
pub fn hold(
    repository: &Repository,
    commits: &[CommitId],
    whole: &[TreeId],
    older: Older,
) -> anyhow::Result<Option<Held>> {
    let staged = staged::objects(repository);
    let new: HashSet<ObjectId> = staged.iter().map(|(id, ..)| *id).collect();
    let (mut wanted, mut gone) = (Vec::new(), Vec::new());
    for &id in commits {
        let Ok(Commit { tree, .. }) = repository.commit(id) else {
            return Ok(None);
        };
        let beyond = missing::beyond(repository, tree, whole, &new)?;
        wanted.push(id.0);
        wanted.extend(beyond.there);
        gone.extend(beyond.gone);
    }

    let mut keeps = kept(repository, &mut wanted);
    let mut entries = Vec::with_capacity(wanted.len());
    // All that is staged, too: what another tree should have had was not there.
    let base = join::newest_of(repository, &new);
    for object in staged {
        entries.push((
            object.0,
            join::packed(repository, &object, base.as_deref())?,
        ));
    }
    wanted.retain(|id| !new.contains(id));
    let mut is_whole = gone.is_empty();
    let mut large = Vec::new();
    for id in wanted {
        if let Some(stored) = large::large(repository, id) {
            large.push(stored);
            continue;
        }

        match absent::find(|| repository.gix.find_object(id)) {
            Ok(object) => entries.push((id, deflated(object.kind, &object.data)?)),
            Err(_) => is_whole = false,
        }
    }

    if !is_whole {
        // git is asked, which reads nobody's memory.
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

    // Beside a repack a folder can be gone for a moment only, and what is below it was not held.
    if gone.iter().any(|&tree| repository.has(tree)) {
        return Ok(None);
    }

    let size = entries
        .iter()
        .map(|(_, entry)| entry.len() as u64)
        .sum::<u64>()
        + large.iter().map(|stored| stored.size).sum::<u64>()
        + keeps.iter().map(|keep| join::size_of(keep)).sum::<u64>();
    let is_alone = entries.is_empty() && large.is_empty();
    let mut replaced = match older {
        Older::Stay => Vec::new(),
        Older::Join => join::take_in(repository, &mut entries, &large, size),
    };

    if is_alone && replaced.len() == 1 {
        // One pack would become itself.
        (entries, replaced) = (Vec::new(), Vec::new());
    }

    if !entries.is_empty() || !large.is_empty() {
        let mut pack = Pack::new(&keep::pack_folder(repository))?;
        entries
            .iter()
            .try_for_each(|(id, entry)| pack.push(*id, entry))?;
        for stored in large {
            // It is not kept if it is damaged: it is as good as gone.
            if !pack.push_blob(stored.id, stored.size, &mut stored.reader())? {
                return Ok(None);
            }
        }

        let keep = pack.finish(repository)?;
        staged::forget(repository);
        replaced.retain(|old| *old != keep.with_extension(""));
        keeps.push(keep);
    }

    Ok(Some(Held { keeps, replaced }))
}

/// Keeps a new tag, given as the bytes of the object.
///
/// # Errors
/// Where the object store cannot be written.
pub fn hold_tag(repository: &Repository, bytes: &[u8]) -> anyhow::Result<(TagId, Held)> {
    let id = gix::objs::compute_hash(repository.gix.object_hash(), Kind::Tag, bytes)
        .during("naming a tag")?;
    let mut pack = Pack::new(&keep::pack_folder(repository))?;
    pack.push(id, &deflated(Kind::Tag, bytes)?)?;
    let held = Held {
        keeps: vec![pack.finish(repository)?],
        replaced: Vec::new(),
    };

    Ok((TagId(id), held))
}

/// Writes what is staged although refs reach it already, because it was not there.
///
/// # Errors
/// Where the object store cannot be written.
pub fn restore_staged(repository: &Repository) -> anyhow::Result<()> {
    write_staged(repository)?.map_or(Ok(()), |keep| keep::release(&keep))
}

/// Writes what is staged as a pack; returns its `.keep` file.
fn write_staged(repository: &Repository) -> anyhow::Result<Option<PathBuf>> {
    let staged = staged::objects(repository);
    if staged.is_empty() || repository.read_only {
        return Ok(None);
    }
    let mut pack = Pack::new(&keep::pack_folder(repository))?;
    for object in staged {
        pack.push(object.0, &staged::packed(repository, &object)?)?;
    }
    let keep = pack.finish(repository)?;
    staged::forget(repository);
    Ok(Some(keep))
}

/// Returns whether what is missing below some commits is what a server promised to a partial
/// clone. `git gc` takes nothing of that away.
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

/// Lets `git gc` have the packs, now that a ref reaches what is in them, and removes those that
/// were taken in.
///
/// # Errors
/// Where a file cannot be removed.
pub fn settle(repository: &Repository, held: &Held) -> anyhow::Result<()> {
    held.keeps.iter().try_for_each(|keep| keep::release(keep))?;
    if held.replaced.is_empty() || join::is_gits_to_pack(repository) {
        return Ok(());
    }

    for pack in &held.replaced {
        // Without its index a pack is not used any more.
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

    join::forget_gone(repository);
    Ok(())
}

/// Takes out of `wanted` what a pack has that this process keeps; returns the `.keep` files of
/// these packs.
///
/// What others keep they may let go at any moment.
fn kept(repository: &Repository, wanted: &mut Vec<ObjectId>) -> Vec<PathBuf> {
    let mut used = Vec::new();
    for keep in keep::keep_files(repository)
        .into_iter()
        .filter(|keep| is_own(keep))
    {
        let Ok(index) = Index::at(keep.with_extension("idx"), repository.gix.object_hash()) else {
            continue;
        };
        let before = wanted.len();
        wanted.retain(|id| index.lookup(id).is_none());
        if wanted.len() < before {
            used.push(keep);
        }
    }

    let mut seen = HashSet::new();
    wanted.retain(|id| seen.insert(*id));
    used
}

#[cfg(test)]
mod tests;
