//! Protection, absorption and release of packs.

use crate::git::keep::pack::keep;
use crate::git::keep::protect;

use crate::git::object::batch;
use gix::objs::{Kind, Write as _, WriteTo as _};

use super::*;
use crate::git::sample::{self, repository};

/// Writes a commit with one file as loose objects, as git does.
fn commit(repository: &Repository, text: &str) -> CommitId {
    let write = |kind, bytes: &[u8]| repository.gix.objects.write_buf(kind, bytes).unwrap();
    let blob = write(Kind::Blob, text.as_bytes());

    let mut tree = Vec::new();
    let entries = vec![gix::objs::tree::Entry {
        mode: gix::objs::tree::EntryKind::Blob.into(),
        filename: "a".into(),
        oid: blob,
    }];
    gix::objs::Tree { entries }.write_to(&mut tree).unwrap();
    let tree = TreeId(write(Kind::Tree, &tree));

    let time = crate::host::clock::now();
    let commit = repository.encoded(&sample::new_commit(tree, &time));
    CommitId(write(Kind::Commit, &commit.unwrap()))
}

fn is_whole(repository: &Repository, id: CommitId) -> bool {
    let tree = repository.commit(id).unwrap().tree;
    let new_objects = protect::find_new_objects(repository, tree, &[], &HashSet::new()).unwrap();
    let is_there = |&id: &ObjectId| repository.has(id);
    new_objects.missing.is_empty() && new_objects.present.iter().all(is_there)
}

pub(super) fn protect(repository: &Repository, ids: &[CommitId]) -> ProtectedObjects {
    let protected = protect_commits(repository, ids, &[], MergePolicy::Merge);
    protected.unwrap().expect("all is there")
}

pub(super) fn protect_and_release(repository: &Repository, ids: &[CommitId]) {
    release_protected(repository, &protect(repository, ids)).unwrap();
}

/// Removes all loose objects, as `git prune --expire=now` does with unreachable ones.
fn prune(repository: &Repository) {
    for dir in std::fs::read_dir(repository.common_dir().join("objects"))
        .unwrap()
        .flatten()
    {
        if dir.file_name().len() == 2 {
            std::fs::remove_dir_all(dir.path()).unwrap();
        }
    }
}

#[test]
fn what_is_held_outlives_a_prune() {
    let (dir, repository) = repository();
    let id = commit(&repository, "one");
    let protected = protect(&repository, &[id]);
    prune(&repository);
    let fresh = Repository::open(dir.path()).unwrap();

    assert!(is_whole(&fresh, id));
    assert_eq!(keep::keep_files(&repository).len(), 1);
    protect::release_protected(&repository, &protected).unwrap();
    assert_eq!(keep::keep_files(&repository), Vec::<PathBuf>::new());
}

#[test]
fn what_is_gone_already_cannot_be_held() {
    let (dir, repository) = repository();
    let id = commit(&repository, "one");
    prune(&repository);
    let fresh = Repository::open(dir.path()).unwrap();
    assert!(
        protect::protect_commits(&fresh, &[id], &[], MergePolicy::Merge)
            .unwrap()
            .is_none()
    );

    assert!(keep::keep_files(&repository).is_empty());
}

#[test]
fn what_is_kept_is_not_kept_twice() {
    let (_dir, repository) = repository();
    let id = commit(&repository, "one");
    let _protected = protect(&repository, &[id]);
    let again = protect(&repository, &[id]);

    assert_eq!(
        (again.keeps, keep::keep_files(&repository).len()),
        (keep::keep_files(&repository), 1)
    );
}

#[test]
fn a_pack_does_not_take_itself_in() {
    let (dir, repository) = repository();
    let mut ids = Vec::new();
    for n in 0..3 {
        let batch = batch::begin_batch(&repository);
        let blob = batch.blob(format!("content {n}").as_bytes()).unwrap();
        let tree = batch.tree_of(&[("a".to_owned(), blob)]).unwrap();
        let time = crate::host::clock::now();
        ids.push(batch.commit(&sample::new_commit(tree, &time)).unwrap());
        batch.finish().unwrap();

        protect_and_release(&repository, &[ids[n]]);
        let fresh = Repository::open(dir.path()).unwrap();
        assert!(ids.iter().all(|&id| is_whole(&fresh, id)));
    }
}

#[test]
fn packs_stay_few_and_lose_nothing() {
    let (dir, repository) = repository();
    let mut ids = Vec::new();
    for n in 0..100 {
        ids.push(commit(&repository, &format!("content {n}")));
        protect_and_release(&repository, &[ids[n]]);
    }

    let packs = std::fs::read_dir(keep::pack_dir(&repository))
        .unwrap()
        .flatten()
        .filter(|file| file.path().extension().unwrap() == "pack");
    assert!(packs.count() <= 8);
    prune(&repository);
    let fresh = Repository::open(dir.path()).unwrap();
    for id in ids {
        assert!(is_whole(&fresh, id));
    }
}

#[test]
fn no_pack_goes_while_git_collects() {
    let (_dir, repository) = repository();
    std::fs::write(repository.common_dir().join("gc.pid"), "1 here").unwrap();
    for n in 0..4 {
        let id = commit(&repository, &format!("content {n}"));
        protect_and_release(&repository, &[id]);
    }

    assert_eq!(own_packs(&repository).len(), 4);
}

#[test]
fn a_pack_that_was_taken_in_stays_if_git_starts_to_collect() {
    let (_dir, repository) = repository();
    let protect = |text: &str| {
        let id = commit(&repository, text);
        protect(&repository, &[id])
    };
    protect::release_protected(&repository, &protect("one")).unwrap();
    let protected = protect("two");
    assert_eq!(protected.replaced.len(), 1);
    std::fs::write(repository.common_dir().join("gc.pid"), "1 here").unwrap();
    protect::release_protected(&repository, &protected).unwrap();
    assert_eq!(own_packs(&repository).len(), 2);
}

#[test]
fn a_damaged_pack_is_not_taken_in() {
    let (dir, repository) = repository();
    let first = commit(&repository, "one");
    protect_and_release(&repository, &[first]);
    let [small] = own_packs(&repository).try_into().expect("one pack");
    let (path, mut bytes) = (
        small.with_extension("pack"),
        std::fs::read(small.with_extension("pack")).unwrap(),
    );
    let middle = bytes.len() / 2;

    bytes[middle] ^= 0xff;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let second = commit(&repository, "two");
    protect_and_release(&repository, &[second]);
    assert!(path.is_file());
    prune(&repository);
    assert!(Repository::open(dir.path()).unwrap().commit(second).is_ok());
}

#[test]
fn what_a_crashed_process_of_this_number_kept_is_kept_anew() {
    let (dir, repository) = repository();
    let id = commit(&repository, "one");
    let protected = protect::protect_commits(&repository, &[id], &[], MergePolicy::Separate)
        .unwrap()
        .expect("all is there");
    protect::release_protected(&repository, &protected).unwrap();
    let [old] = own_packs(&repository).try_into().expect("one pack");

    std::fs::write(
        old.with_extension("keep"),
        format!("teddy {}\n", std::process::id()),
    )
    .unwrap();
    let more = commit(&repository, "two");
    let _protected = protect::protect_commits(&repository, &[id, more], &[], MergePolicy::Separate)
        .unwrap()
        .expect("all is there");

    for ending in ["keep", "idx", "pack"] {
        std::fs::remove_file(old.with_extension(ending)).unwrap();
    }

    prune(&repository);
    let fresh = Repository::open(dir.path()).unwrap();
    assert!([id, more].into_iter().all(|id| is_whole(&fresh, id)));
}

#[test]
fn a_file_that_changed_is_not_packed_under_its_old_id() {
    let (dir, repository) = repository();
    let hash = repository.gix.object_hash();
    let id = |text: &str| gix::objs::compute_hash(hash, Kind::Blob, text.as_bytes()).unwrap();
    let (old, kept) = (id("old"), id("kept"));
    let mut pack = Pack::new(&keep::pack_dir(&repository)).unwrap();
    for now in ["new", "longer", "x"] {
        assert!(
            !pack.push_blob(old, 3, &mut now.as_bytes()).unwrap(),
            "{now}"
        );
    }
    assert!(pack.push_blob(kept, 4, &mut &b"kept"[..]).unwrap());
    pack.finish(&repository).unwrap();

    let fresh = Repository::open(dir.path()).unwrap();
    assert!(!fresh.has(old));
    assert_eq!(fresh.gix.find_object(kept).unwrap().data, b"kept");
}
