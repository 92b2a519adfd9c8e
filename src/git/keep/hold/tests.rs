//! Protection, absorption and release of packs.

use crate::git::keep::hold;
use crate::git::keep::missing;
use crate::git::keep::pack::keep;
use crate::git::object::batch;
use gix::objs::{Kind, Write as _, WriteTo as _};

use super::*;
use crate::git::object::NewCommit;

/// Writes a commit with one file as loose objects, as git does.
fn commit(repository: &Repository, content: &str) -> CommitId {
    let write = |kind, bytes: &[u8]| repository.gix.objects.write_buf(kind, bytes).unwrap();
    let blob = write(Kind::Blob, content.as_bytes());

    let mut tree = Vec::new();
    let entries = vec![gix::objs::tree::Entry {
        mode: gix::objs::tree::EntryKind::Blob.into(),
        filename: "a".into(),
        oid: blob,
    }];
    gix::objs::Tree { entries }.write_to(&mut tree).unwrap();
    let tree = TreeId(write(Kind::Tree, &tree));

    let time = crate::host::clock::now();
    let commit = repository
        .encoded(&NewCommit {
            tree,
            parents: &[],
            message: content,
            time: &time,
        })
        .unwrap();
    CommitId(write(Kind::Commit, &commit))
}

fn is_whole(repository: &Repository, id: CommitId) -> bool {
    let tree = repository.commit(id).unwrap().tree;
    let beyond = missing::beyond(repository, tree, &[], &HashSet::new()).unwrap();
    let is_there = |&id: &ObjectId| repository.has(id);
    beyond.gone.is_empty() && beyond.there.iter().all(is_there)
}

pub(super) fn repository() -> (tempfile::TempDir, Repository) {
    let folder = tempfile::tempdir().unwrap();
    gix::init(folder.path()).unwrap();
    let repository = Repository::open(folder.path()).unwrap();
    std::fs::create_dir_all(repository.teddy_dir()).unwrap();
    (folder, repository)
}

/// Removes all loose objects, as `git prune --expire=now` does with unreachable ones.
fn prune(repository: &Repository) {
    for folder in std::fs::read_dir(repository.common_dir().join("objects"))
        .unwrap()
        .flatten()
    {
        if folder.file_name().len() == 2 {
            std::fs::remove_dir_all(folder.path()).unwrap();
        }
    }
}

#[test]
fn what_is_held_outlives_a_prune() {
    let (folder, repository) = repository();
    let id = commit(&repository, "one");
    let held = hold::hold(&repository, &[id], &[], Older::Join)
        .unwrap()
        .expect("all is there");
    prune(&repository);
    let fresh = Repository::open(folder.path()).unwrap();

    assert!(is_whole(&fresh, id));
    assert_eq!(keep::keep_files(&repository).len(), 1);
    hold::settle(&repository, &held).unwrap();
    assert_eq!(keep::keep_files(&repository), Vec::<PathBuf>::new());
}

#[test]
fn what_is_gone_already_cannot_be_held() {
    let (folder, repository) = repository();
    let id = commit(&repository, "one");
    prune(&repository);
    let fresh = Repository::open(folder.path()).unwrap();
    assert!(
        hold::hold(&fresh, &[id], &[], Older::Join)
            .unwrap()
            .is_none()
    );

    assert!(keep::keep_files(&repository).is_empty());
}

#[test]
fn what_is_kept_is_not_kept_twice() {
    let (_folder, repository) = repository();
    let id = commit(&repository, "one");
    let _held = hold::hold(&repository, &[id], &[], Older::Join)
        .unwrap()
        .expect("all is there");
    let again = hold::hold(&repository, &[id], &[], Older::Join)
        .unwrap()
        .expect("all is there");

    assert_eq!(
        (again.keeps, keep::keep_files(&repository).len()),
        (keep::keep_files(&repository), 1)
    );
}

#[test]
fn a_pack_does_not_take_itself_in() {
    let (folder, repository) = repository();
    let mut ids = Vec::new();
    for n in 0..3 {
        let batch = batch::batch(&repository);
        let blob = batch.blob(format!("content {n}").as_bytes()).unwrap();
        let tree = batch.tree_of(&[("a".to_owned(), blob)]).unwrap();
        let time = crate::host::clock::now();
        ids.push(
            batch
                .commit(&NewCommit {
                    tree,
                    parents: &[],
                    message: "",
                    time: &time,
                })
                .unwrap(),
        );
        batch.finish().unwrap();

        let held = hold::hold(&repository, &[ids[n]], &[], Older::Join)
            .unwrap()
            .expect("all is there");
        hold::settle(&repository, &held).unwrap();
        let fresh = Repository::open(folder.path()).unwrap();
        assert!(ids.iter().all(|&id| is_whole(&fresh, id)));
    }
}

#[test]
fn packs_stay_few_and_lose_nothing() {
    let (folder, repository) = repository();
    let mut ids = Vec::new();
    for n in 0..100 {
        ids.push(commit(&repository, &format!("content {n}")));
        let held = hold::hold(&repository, &[ids[n]], &[], Older::Join)
            .unwrap()
            .expect("all is there");
        hold::settle(&repository, &held).unwrap();
    }

    let packs = std::fs::read_dir(keep::pack_folder(&repository))
        .unwrap()
        .flatten()
        .filter(|file| file.path().extension().unwrap() == "pack");
    assert!(packs.count() <= 8);
    prune(&repository);
    let fresh = Repository::open(folder.path()).unwrap();
    for id in ids {
        assert!(is_whole(&fresh, id));
    }
}

#[test]
fn no_pack_goes_while_git_collects() {
    let (_folder, repository) = repository();
    std::fs::write(repository.common_dir().join("gc.pid"), "1 here").unwrap();
    for n in 0..4 {
        let id = commit(&repository, &format!("content {n}"));
        let held = hold::hold(&repository, &[id], &[], Older::Join)
            .unwrap()
            .expect("all is there");
        hold::settle(&repository, &held).unwrap();
    }

    assert_eq!(join::own_packs(&repository).len(), 4);
}

#[test]
fn a_damaged_pack_is_not_taken_in() {
    let (folder, repository) = repository();
    let first = commit(&repository, "one");
    let held = hold::hold(&repository, &[first], &[], Older::Join)
        .unwrap()
        .expect("all is there");
    hold::settle(&repository, &held).unwrap();
    let [small] = join::own_packs(&repository).try_into().expect("one pack");
    let (path, mut bytes) = (
        small.with_extension("pack"),
        std::fs::read(small.with_extension("pack")).unwrap(),
    );
    let middle = bytes.len() / 2;

    bytes[middle] ^= 0xff;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let second = commit(&repository, "two");
    let held = hold::hold(&repository, &[second], &[], Older::Join)
        .unwrap()
        .expect("all is there");

    hold::settle(&repository, &held).unwrap();
    assert!(path.is_file());
    prune(&repository);
    assert!(
        Repository::open(folder.path())
            .unwrap()
            .commit(second)
            .is_ok()
    );
}

#[test]
fn what_a_crashed_process_of_this_number_kept_is_kept_anew() {
    let (folder, repository) = repository();
    let id = commit(&repository, "one");
    let held = hold::hold(&repository, &[id], &[], Older::Stay)
        .unwrap()
        .expect("all is there");
    hold::settle(&repository, &held).unwrap();
    let [old] = join::own_packs(&repository).try_into().expect("one pack");

    std::fs::write(
        old.with_extension("keep"),
        format!("teddy {}\n", std::process::id()),
    )
    .unwrap();
    let more = commit(&repository, "two");
    let _held = hold::hold(&repository, &[id, more], &[], Older::Stay)
        .unwrap()
        .expect("all is there");

    for ending in ["keep", "idx", "pack"] {
        std::fs::remove_file(old.with_extension(ending)).unwrap();
    }

    prune(&repository);
    let fresh = Repository::open(folder.path()).unwrap();
    assert!([id, more].into_iter().all(|id| is_whole(&fresh, id)));
}
