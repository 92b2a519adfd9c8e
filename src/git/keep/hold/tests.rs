//! What is held, taken in and let go.

use crate::git::command::git_in;
use crate::git::keep::hold;
use crate::git::keep::join;
use crate::git::keep::missing;
use crate::git::keep::pack::keep;
use crate::git::object::batch;
use gix::objs::{Kind, Write as _, WriteTo as _};

use super::*;
use crate::git::object::NewCommit;

/// Writes a commit with one file, all of it loose, as git does.
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

/// Returns whether all of a commit's files are there.
fn is_whole(repository: &Repository, id: CommitId) -> bool {
    let tree = repository.commit(id).unwrap().tree;
    let beyond = missing::beyond(repository, tree, &[], &HashSet::new()).unwrap();
    let is_there = |&id: &ObjectId| repository.has(id);
    beyond.gone.is_empty() && beyond.there.iter().all(is_there)
}

/// Makes a repository.
fn repository() -> (tempfile::TempDir, Repository) {
    let folder = tempfile::tempdir().unwrap();
    gix::init(folder.path()).unwrap();
    let repository = Repository::open(folder.path()).unwrap();
    std::fs::create_dir_all(repository.teddy_dir()).unwrap();
    (folder, repository)
}

/// Removes all loose objects, as `git prune --expire=now` does with those that no ref reaches.
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

/// Returns the names of very many files, which no compression makes much shorter.
fn many_names() -> Vec<String> {
    let hash = gix::hash::Kind::Sha1;
    let name = |n: u32| gix::objs::compute_hash(hash, Kind::Blob, &n.to_be_bytes());
    let mut names: Vec<String> = (0..40_000).map(|n| name(n).unwrap().to_string()).collect();
    names.sort_unstable();
    names
}

/// Holds and settles a commit of a tree with these files, one of which is as of this turn.
fn hold_large_tree(repository: &Repository, names: &[String], turn: usize) -> (TreeId, CommitId) {
    let blob = |text: &str| {
        let written = repository
            .gix
            .objects
            .write_buf(Kind::Blob, text.as_bytes());
        written.unwrap()
    };
    let (old, new) = (blob("old"), blob(&format!("turn {turn}")));
    let mut data = Vec::new();
    for (n, name) in names.iter().enumerate() {
        data.extend_from_slice(format!("100644 {name}\0").as_bytes());
        data.extend_from_slice(if n == turn * 700 { new } else { old }.as_slice());
    }
    let hash = repository.gix.object_hash();
    let tree = TreeId(gix::objs::compute_hash(hash, Kind::Tree, &data).unwrap());
    staged::put(repository, [(tree.0, Kind::Tree, data)]).unwrap();

    let batch = batch::batch(repository);
    let new = NewCommit {
        tree,
        parents: &[],
        message: "",
        time: &crate::host::clock::now(),
    };
    let id = batch.commit(&new).unwrap();
    batch.stage().unwrap();
    let held = hold::hold(repository, &[id], &[], Older::Join).unwrap();
    hold::settle(repository, &held.expect("all is there")).unwrap();
    (tree, id)
}

#[test]
fn trees_of_very_many_files_are_kept_as_deltas_of_newer_ones() {
    let (folder, repository) = repository();
    let (names, mut trees, mut first) = (many_names(), Vec::new(), 0);
    for turn in 0..54 {
        let (tree, _) = hold_large_tree(&repository, &names, turn);
        trees.push((
            tree,
            repository.gix.find_object(tree.0).unwrap().detach().data,
        ));

        let packs = join::own_packs(&repository);
        let size: u64 = packs.iter().map(|pack| join::size_of(pack)).sum();
        if turn == 0 {
            first = size;
            assert!(first > 1 << 20, "{first}");
        }
        // After so many deltas another tree is whole.
        let whole = 1 + u64::from(turn > 50);
        assert_eq!(packs.len() as u64, whole, "turn {turn}");
        assert!(size < first * whole + (64 << 10), "turn {turn}: {size}");
    }

    let fresh = Repository::open(folder.path()).unwrap();
    for (turn, (tree, bytes)) in trees.iter().enumerate() {
        let found = fresh.gix.find_object(tree.0).unwrap().detach().data;
        assert!(found == *bytes, "turn {turn}");
    }
    for pack in join::own_packs(&repository) {
        let mut git = git_in(folder.path()).unwrap();
        let checked = git.arg("verify-pack").arg(pack.with_extension("idx"));
        assert!(checked.status().unwrap().success());
    }
}

#[test]
fn a_damaged_pack_of_a_large_tree_is_not_taken_in() {
    let (_folder, repository) = repository();
    let names = many_names();
    let (_, commit) = hold_large_tree(&repository, &names, 0);
    let [old] = join::own_packs(&repository).try_into().expect("one pack");
    let index = Index::at(old.with_extension("idx"), repository.gix.object_hash()).unwrap();
    let place = index.pack_offset_at_index(index.lookup(commit.0).unwrap());

    let path = old.with_extension("pack");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[usize::try_from(place).unwrap() + 5] ^= 0xff;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();

    hold_large_tree(&repository, &names, 1);
    assert!(path.is_file());
    assert_eq!(join::own_packs(&repository).len(), 2);
}
