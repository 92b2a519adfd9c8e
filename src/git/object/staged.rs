//! Stages new objects in memory until a ref is about to reach them.
//!
//! A turn creates objects in many steps. A pack for each would cost three files and a reload of all
//! packs. Staged objects can be read by this process like any others.
//! [`hold`](crate::git::keep::hold) writes them as one pack before a ref moves; without that they
//! are lost with the process. Large ones are compressed in the background.

use gix::ObjectId;
use gix::objs::{Kind, Write as _};

use crate::git::During as _;
use crate::git::keep::pack::{deflated, uncompressed};
use crate::git::object::id::CommitId;
use crate::git::object::tree::NewTree;
use crate::git::repository::Repository;

pub(in crate::git) type NewObject = (ObjectId, Kind, Vec<u8>);

/// Objects from this size on, except trees, are compressed in the background.
const LARGE: usize = 256 << 10;

pub(in crate::git) fn stage(
    repository: &Repository,
    objects: Vec<NewObject>,
) -> anyhow::Result<()> {
    for (id, kind, bytes) in &objects {
        if bytes.len() < LARGE || repository.read_only || *kind == Kind::Tree {
            continue;
        }
        let (kind, bytes) = (*kind, bytes.clone());
        let compressing = &repository.memory.compressing;
        compressing.begin(*id, move || deflated(kind, &bytes));
    }
    put(repository, objects)
}

/// Encodes a staged object for a pack. Large trees are not compressed: most of their bytes are ids,
/// and a later turn stores them as deltas.
pub(in crate::git) fn packed(
    repository: &Repository,
    (id, kind, bytes): &NewObject,
) -> anyhow::Result<Vec<u8>> {
    if *kind == Kind::Tree && repository.memory.is_large_tree(bytes) {
        return uncompressed(*kind, bytes);
    }
    let compressing = &repository.memory.compressing;
    compressing
        .end(id)
        .unwrap_or_else(|| deflated(*kind, bytes))
}

pub(in crate::git) fn put(
    repository: &Repository,
    objects: impl IntoIterator<Item = NewObject>,
) -> anyhow::Result<()> {
    let memory = &repository.gix.objects;
    for (id, kind, bytes) in objects {
        memory
            .write_buf_with_known_id(kind, &bytes, id)
            .during("keeping an object")?;
        if kind == Kind::Tree {
            repository.memory.keep_tree(id, NewTree::of(bytes));
        }
    }
    Ok(())
}

/// Stages the staged objects of another handle of the same repository here too.
pub fn take_over(repository: &Repository, other: &Repository) -> anyhow::Result<()> {
    let compressing = &repository.memory.compressing;
    compressing.take_over(&other.memory.compressing);
    put(repository, objects(other))
}

/// Returns whether a commit is staged, so no ref can point at it yet.
pub fn has(repository: &Repository, id: CommitId) -> bool {
    let is_any = repository.gix.objects.num_objects_in_memory() > 0;
    is_any
        && objects(repository)
            .iter()
            .any(|(staged, ..)| *staged == id.0)
}

pub(in crate::git) fn objects(repository: &Repository) -> Vec<NewObject> {
    if repository.gix.objects.num_objects_in_memory() == 0 {
        return Vec::new();
    }
    // gix can only take the memory out of a handle, so take it out of a copy.
    let mut copy = repository.gix.objects.clone();
    let mut staged = copy.take_object_memory().unwrap_or_default();
    let staged = std::mem::take(&mut *staged).into_iter();
    staged
        .map(|(id, (kind, bytes))| (id, kind, bytes))
        .collect()
}

pub(in crate::git) fn forget(repository: &Repository) {
    if !repository.read_only {
        repository.gix.objects.reset_object_memory();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::object::batch;

    #[test]
    fn what_is_staged_is_read_here_and_by_whoever_takes_it_and_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        gix::init(folder.path()).unwrap();
        let open = || Repository::open(folder.path()).unwrap();
        let (here, beside) = (open(), open());
        let batch = batch::batch(&here);
        let [a, b] = ["a", "b"].map(|text| batch.blob(text.as_bytes()).unwrap());
        batch.stage().unwrap();

        assert_eq!(here.blob(a).unwrap(), b"a");
        assert!(!beside.has(a));
        take_over(&beside, &here).unwrap();
        assert_eq!(beside.blob(b).unwrap(), b"b");

        forget(&beside);
        assert!(!beside.has(b) && here.has(b) && !open().has(b));
    }

    #[test]
    fn a_large_object_is_the_same_whoever_compresses_it() {
        let folder = tempfile::tempdir().unwrap();
        gix::init(folder.path()).unwrap();
        let open = || Repository::open(folder.path()).unwrap();
        let (here, beside) = (open(), open());
        let object = |length: usize| {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, Kind::Blob, &bytes);
            (id.unwrap(), Kind::Blob, bytes)
        };
        let [small, large] = [10, LARGE].map(object);
        stage(&here, vec![small.clone(), large.clone()]).unwrap();
        let begun = |repository: &Repository| repository.memory.compressing.count();
        assert_eq!((begun(&here), begun(&beside)), (1, 0));

        take_over(&beside, &here).unwrap();
        assert_eq!((begun(&here), begun(&beside)), (0, 1));
        take_over(&beside, &beside).unwrap();
        assert_eq!(begun(&beside), 1);
        for repository in [&beside, &here] {
            for object in [&small, &large] {
                let expected = deflated(object.1, &object.2).unwrap();
                assert_eq!(packed(repository, object).unwrap(), expected);
            }
        }
        assert_eq!(begun(&beside), 0);
    }
}
