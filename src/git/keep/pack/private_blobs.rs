//! Blobs whose files only the user can read.
//!
//! git gives every object the permissions of the umask. A snapshot also has untracked files that
//! others cannot read, and these would become readable in the object directory. So new blobs of
//! such files go into packs of their own that only their owner can read. Trees and commits stay in
//! ordinary packs. A landed blob is copied to one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use anyhow::Context as _;
use gix::ObjectId;
use gix_pack::index::File as Index;

use super::{Pack, deflated, keep};
use crate::git::During as _;
use crate::git::object::TreeId;
use crate::git::repository::Repository;

/// File below `teddy/` that lists the packs of private blobs, one per line.
pub(super) const LIST: &str = "private-packs";

/// Blobs that this process writes to such packs, by the directory of packs.
static NOTED: Mutex<BTreeSet<(PathBuf, ObjectId)>> = Mutex::new(BTreeSet::new());

/// Notes a blob that the repository does not have yet.
pub(in crate::git) fn note(dir: &Path, id: ObjectId) {
    noted().insert((dir.to_owned(), id));
}

pub(super) fn is_noted(dir: &Path, id: ObjectId) -> bool {
    let noted = noted();
    !noted.is_empty() && noted.contains(&(dir.to_owned(), id))
}

/// Returns the existing packs of private blobs, without extension.
pub(in crate::git) fn private_packs(repository: &Repository) -> BTreeSet<PathBuf> {
    let packs = keep::packs_in_list(repository, LIST).into_iter();
    packs
        .filter(|pack| pack.with_extension("idx").exists())
        .collect()
}

/// Notes the blobs that are only in packs of private blobs, so that no other pack gets them.
pub(in crate::git) fn note_stored(repository: &Repository) -> anyhow::Result<()> {
    let stored = only_private(repository)?.into_iter();
    let dir = keep::pack_dir(repository);
    noted().extend(stored.map(|id| (dir.clone(), id)));
    Ok(())
}

/// Makes the files of a tree readable for all who can read the other objects: git does not write a
/// blob that exists.
pub(in crate::git) fn publish_tree(repository: &Repository, tree: TreeId) -> anyhow::Result<()> {
    let private = only_private(repository)?;
    if private.is_empty() {
        return Ok(());
    }
    let leaves = repository.leaves(tree)?.into_iter();
    let landed: BTreeSet<ObjectId> = leaves.map(|leaf| leaf.id).collect();
    let landed: Vec<&ObjectId> = private.intersection(&landed).collect();
    if landed.is_empty() {
        return Ok(());
    }

    let mut pack = Pack::new(&keep::pack_dir(repository))?.for_everybody();
    for &&id in &landed {
        let blob = repository.gix.find_blob(id);
        let blob = blob.during("reading a file that is landed")?;
        pack.push(id, &deflated(gix::objs::Kind::Blob, &blob.data)?)?;
    }
    noted().retain(|(_, id)| !landed.contains(&id));
    // A ref reaches the objects already.
    keep::release(&pack.finish(repository)?)
}

fn only_private(repository: &Repository) -> anyhow::Result<BTreeSet<ObjectId>> {
    let private = private_packs(repository);
    if private.is_empty() {
        return Ok(BTreeSet::new());
    }
    let hash = repository.gix.object_hash();
    let open = |pack: &PathBuf| Index::at(pack.with_extension("idx"), hash).ok();
    let indexes = private.iter().filter_map(open);
    let ids = indexes.flat_map(|index| index.iter().map(|entry| entry.oid).collect::<Vec<_>>());
    let mut ids: BTreeSet<ObjectId> = ids.collect();

    let files = keep::pack_files(repository).context("listing packs")?;
    let is_index = |file: &&PathBuf| file.extension().is_some_and(|ending| ending == "idx");
    let packs = files.iter().filter(is_index);
    let packs = packs.map(|file| file.with_extension(""));
    for pack in packs.filter(|pack| !private.contains(pack)) {
        if let Some(index) = open(&pack) {
            ids.retain(|id| index.lookup(id).is_none());
        }
    }

    Ok(ids)
}

fn noted() -> MutexGuard<'static, BTreeSet<(PathBuf, ObjectId)>> {
    NOTED.lock().expect("nothing panics with the lock")
}
