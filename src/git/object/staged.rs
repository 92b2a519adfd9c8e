//! Stages new objects in memory until a ref is about to reach them.
//!
//! A turn creates objects in many steps. A pack for each would cost three files and a reload of all
//! packs. Staged objects can be read by this process like any others.
//! [`protect`](crate::git::keep::protect) writes them as one pack before a ref moves; without that they
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
const BACKGROUND_SIZE: usize = 256 << 10;

pub(in crate::git) fn stage_objects(
    repository: &Repository,
    objects: Vec<NewObject>,
) -> anyhow::Result<()> {
    for (id, kind, bytes) in &objects {
        if bytes.len() < BACKGROUND_SIZE || repository.read_only || *kind == Kind::Tree {
            continue;
        }
        let (kind, bytes) = (*kind, bytes.clone());
        let compressing = &repository.memory.compressing;
        compressing.begin(*id, move || deflated(kind, &bytes));
    }
    put_in_memory(repository, objects)
}

/// Encodes a staged object for a pack. Large trees are not compressed: most of their bytes are ids,
/// and a later turn stores them as deltas.
pub(in crate::git) fn encode_staged(
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

pub(in crate::git) fn put_in_memory(
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
pub fn transfer_staged(repository: &Repository, other: &Repository) -> anyhow::Result<()> {
    let compressing = &repository.memory.compressing;
    compressing.absorb(&other.memory.compressing);
    put_in_memory(repository, staged_objects(other))
}

/// Returns whether a commit is staged, so no ref can point at it yet.
pub fn is_staged(repository: &Repository, id: CommitId) -> bool {
    let is_any = repository.gix.objects.num_objects_in_memory() > 0;
    is_any
        && staged_objects(repository)
            .iter()
            .any(|(staged, ..)| *staged == id.0)
}

pub(in crate::git) fn staged_objects(repository: &Repository) -> Vec<NewObject> {
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

pub(in crate::git) fn discard_staged(repository: &Repository) {
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
        let dir = tempfile::tempdir().unwrap();
        gix::init(dir.path()).unwrap();
        let open = || Repository::open(dir.path()).unwrap();
        let (first, second) = (open(), open());
        let batch = batch::begin_batch(&first);
        let [a, b] = ["a", "b"].map(|text| batch.blob(text.as_bytes()).unwrap());
        batch.stage().unwrap();

        assert_eq!(first.blob(a).unwrap(), b"a");
        assert!(!second.has(a));
        transfer_staged(&second, &first).unwrap();
        assert_eq!(second.blob(b).unwrap(), b"b");

        discard_staged(&second);
        assert!(!second.has(b) && first.has(b) && !open().has(b));
    }

    #[test]
    fn a_large_object_is_the_same_whoever_compresses_it() {
        let dir = tempfile::tempdir().unwrap();
        gix::init(dir.path()).unwrap();
        let open = || Repository::open(dir.path()).unwrap();
        let (first, second) = (open(), open());
        let object = |length: usize| {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, Kind::Blob, &bytes);
            (id.unwrap(), Kind::Blob, bytes)
        };
        let [small, large] = [10, BACKGROUND_SIZE].map(object);
        stage_objects(&first, vec![small.clone(), large.clone()]).unwrap();
        let pending = |repository: &Repository| repository.memory.compressing.count();
        assert_eq!((pending(&first), pending(&second)), (1, 0));

        transfer_staged(&second, &first).unwrap();
        assert_eq!((pending(&first), pending(&second)), (0, 1));
        transfer_staged(&second, &second).unwrap();
        assert_eq!(pending(&second), 1);
        for repository in [&second, &first] {
            for object in [&small, &large] {
                let expected = deflated(object.1, &object.2).unwrap();
                assert_eq!(encode_staged(repository, object).unwrap(), expected);
            }
        }
        assert_eq!(pending(&second), 0);
    }
}
