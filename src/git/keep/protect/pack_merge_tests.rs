//! Large trees are stored as deltas of newer ones.

use gix::objs::{Kind, Write as _};
use gix_pack::index::File as Index;
use proptest::prelude::*;

use super::tests::{protect, protect_and_release};
use super::*;
use crate::git::command::git_in;
use crate::git::keep::protect;
use crate::git::object::BlobId;
use crate::git::object::batch;
use crate::git::object::writer::put_in_memory;
use crate::git::sample::{self, repository};

/// Returns names of very many files that do not compress well.
fn many_names() -> Vec<String> {
    let hash = gix::hash::Kind::Sha1;
    let name = |n: u32| gix::objs::compute_hash(hash, Kind::Blob, &n.to_be_bytes());
    let mut names: Vec<String> = (0..40_000).map(|n| name(n).unwrap().to_string()).collect();
    names.sort_unstable();
    names
}

/// Stages a commit with a tree of these files, one of which changes with the turn.
fn staged_commit(repository: &Repository, names: &[String], turn: usize) -> (TreeId, CommitId) {
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
        data.extend_from_slice(
            if n == turn * names.len() / 60 {
                new
            } else {
                old
            }
            .as_slice(),
        );
    }
    let hash = repository.gix.object_hash();
    let tree = TreeId(gix::objs::compute_hash(hash, Kind::Tree, &data).unwrap());
    put_in_memory(repository, [(tree.0, Kind::Tree, data)]).unwrap();

    let batch = batch::begin_batch(repository);
    let time = crate::host::clock::now();
    let id = batch.commit(&sample::new_commit(tree, &time)).unwrap();
    batch.stage().unwrap();
    (tree, id)
}

fn protect_large_tree(
    repository: &Repository,
    names: &[String],
    turn: usize,
) -> (TreeId, CommitId) {
    let (tree, id) = staged_commit(repository, names, turn);
    protect_and_release(repository, &[id]);
    (tree, id)
}

#[test]
fn trees_of_very_many_files_are_kept_as_deltas_of_newer_ones() {
    let (dir, repository) = repository();
    let (names, mut trees, mut first) = (many_names(), Vec::new(), 0);
    for turn in 0..54 {
        let (tree, _) = protect_large_tree(&repository, &names, turn);
        trees.push((
            tree,
            repository.gix.find_object(tree.0).unwrap().detach().data,
        ));

        let packs = protect::own_packs(&repository);
        let size: u64 = packs.iter().map(|pack| protect::pack_size(pack)).sum();
        if turn == 0 {
            first = size;
            assert!(first > 1 << 20, "{first}");
        }
        // After 50 deltas, the next tree is stored whole.
        let full_packs = 1 + u64::from(turn > 50);
        assert_eq!(packs.len() as u64, full_packs, "turn {turn}");
        assert!(
            size < first * full_packs + (64 << 10),
            "turn {turn}: {size}"
        );
    }

    let fresh = Repository::open(dir.path()).unwrap();
    for (turn, (tree, bytes)) in trees.iter().enumerate() {
        let data = fresh.gix.find_object(tree.0).unwrap().detach().data;
        assert!(data == *bytes, "turn {turn}");
    }
    for pack in protect::own_packs(&repository) {
        let mut git = git_in(dir.path()).unwrap();
        let checked = git.arg("verify-pack").arg(pack.with_extension("idx"));
        assert!(checked.status().unwrap().success());
    }
}

#[test]
fn trees_of_many_files_are_kept_as_deltas_in_small_packs_as_well() {
    let (dir, repository) = repository();
    let names = &many_names()[..3000];
    let mut trees = Vec::new();
    for turn in 0..20 {
        trees.push(protect_large_tree(&repository, names, turn).0);
    }

    let packs = protect::own_packs(&repository);
    let size: u64 = packs.iter().map(|pack| protect::pack_size(pack)).sum();
    let tree = repository.gix.find_object(trees[0].0).unwrap().data.len() as u64;
    assert!((100_000..300_000).contains(&tree), "{tree}");
    assert!(size < 2 * tree, "{size}");
    let fresh = Repository::open(dir.path()).unwrap();
    for tree in trees {
        let data = fresh.gix.find_object(tree.0).unwrap().detach().data;
        let id = gix::objs::compute_hash(fresh.gix.object_hash(), Kind::Tree, &data);
        assert_eq!(id.unwrap(), tree.0);
    }
}

#[test]
fn of_two_new_trees_of_many_files_one_is_a_delta_of_the_other() {
    let (dir, repository) = repository();
    let names = many_names();
    let [user, result] = [0, 1].map(|turn| staged_commit(&repository, &names, turn));
    protect_and_release(&repository, &[user.1, result.1]);

    let [pack] = protect::own_packs(&repository)
        .try_into()
        .expect("one pack");
    let fresh = Repository::open(dir.path()).unwrap();
    let [user, result] = [user.0, result.0].map(|tree| {
        let object = fresh.gix.find_object(tree.0).unwrap();
        object.detach().data
    });
    assert_ne!(user, result);
    let size = protect::pack_size(&pack) as usize;
    assert!(size < user.len() + user.len() / 10, "{size}");
}

#[test]
fn a_damaged_pack_of_a_large_tree_is_not_taken_in() {
    let (_dir, repository) = repository();
    let names = many_names();
    let (_, commit) = protect_large_tree(&repository, &names, 0);
    let [old] = protect::own_packs(&repository)
        .try_into()
        .expect("one pack");
    let index = Index::at(old.with_extension("idx"), repository.gix.object_hash()).unwrap();
    let offset = index.pack_offset_at_index(index.lookup(commit.0).unwrap());

    let path = old.with_extension("pack");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[usize::try_from(offset).unwrap() + 5] ^= 0xff;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();

    protect_large_tree(&repository, &names, 1);
    assert!(path.is_file());
    assert_eq!(protect::own_packs(&repository).len(), 2);
}

/// An event between two turns or in one.
#[derive(Debug, Clone)]
enum Step {
    /// Some files of a directory change, and the number of files at its end.
    Turn(usize, Vec<prop::sample::Index>, usize),
    TwoTrees,
    Again(prop::sample::Index),
    Another,
    Repack,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let files = prop::collection::vec(any::<prop::sample::Index>(), 1..5);
    let step = prop_oneof![
        8 => (0_usize..2, files, 0_usize..30).prop_map(|(a, b, c)| Step::Turn(a, b, c)),
        2 => Just(Step::TwoTrees),
        1 => any::<prop::sample::Index>().prop_map(Step::Again),
        2 => Just(Step::Another),
        1 => Just(Step::Repack),
    ];
    prop::collection::vec(step, 5..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// Every tree of every turn stays readable, however packs are absorbed.
    #[test]
    fn trees_of_many_files_outlive_all_that_happens(steps in steps()) {
        let (dir, mut repository) = repository();
        let names = many_names();
        let contents = batch::begin_batch(&repository);
        let blobs: Vec<BlobId> = (0..40).map(|n| contents.blob(&[n]).unwrap()).collect();
        let all: Vec<_> = blobs.iter().map(|blob| (blob.to_string(), *blob)).collect();
        let all = contents.tree_of(&all).unwrap();
        contents.stage().unwrap();
        protect_and_name(&repository, &[all]);
        let mut dirs = [vec![0; 1500], vec![0; 2500]];
        let (mut earlier, mut number) = (Vec::new(), 0);

        for step in steps {
            let mut to_protect = Vec::new();
            match step {
                Step::Turn(at, files, deleted) => {
                    number += 1;
                    for file in files {
                        let file = file.index(dirs[at].len());
                        dirs[at][file] = number % blobs.len();
                    }
                    to_protect.push((at, deleted));
                }
                Step::TwoTrees => {
                    number += 1;
                    for (at, files) in dirs.iter_mut().enumerate() {
                        files[number * 31 % 1500] = number % blobs.len();
                        to_protect.push((at, 0));
                    }
                }
                Step::Again(index) if !earlier.is_empty() => {
                    let tree = earlier[index.index(earlier.len())];
                    protect_and_name(&repository, &[tree]);
                }
                Step::Again(_) => {}
                Step::Another => repository = Repository::open(dir.path()).unwrap(),
                Step::Repack => {
                    let mut git = git_in(dir.path()).unwrap();
                    assert!(git.args(["repack", "-adq"]).status().unwrap().success());
                }
            }

            let mut trees = Vec::new();
            for (at, deleted) in to_protect {
                let files = &dirs[at][..dirs[at].len() - deleted];
                let mut data = Vec::new();
                for (name, blob) in names[at * 5000..].iter().zip(files) {
                    data.extend_from_slice(format!("100644 {name}\0").as_bytes());
                    data.extend_from_slice(blobs[*blob].0.as_slice());
                }
                let hash = repository.gix.object_hash();
                let tree = TreeId(gix::objs::compute_hash(hash, Kind::Tree, &data).unwrap());
                if !repository.has(tree) {
                    put_in_memory(&repository, [(tree.0, Kind::Tree, data)]).unwrap();
                }
                trees.push(tree);
            }
            if !trees.is_empty() {
                protect_and_name(&repository, &trees);
                earlier.extend(trees);
            }
        }

        let fresh = Repository::open(dir.path()).unwrap();
        for tree in earlier {
            let data = fresh.gix.find_object(tree.0).unwrap().detach().data;
            let id = gix::objs::compute_hash(fresh.gix.object_hash(), Kind::Tree, &data);
            prop_assert_eq!(id.unwrap(), tree.0);
        }
        let mut git = git_in(dir.path()).unwrap();
        let checked = git.args(["fsck", "--strict", "--no-dangling"]).output().unwrap();
        prop_assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
}

/// Protects one commit per tree, as for the user's files and the result of a turn, and releases
/// them once refs point at them.
fn protect_and_name(repository: &Repository, trees: &[TreeId]) {
    let batch = batch::begin_batch(repository);
    let time = crate::host::clock::now();
    let commit = |tree: &TreeId| batch.commit(&sample::new_commit(*tree, &time)).unwrap();
    let commits: Vec<CommitId> = trees.iter().map(commit).collect();
    batch.stage().unwrap();
    let protected = protect(repository, &commits);
    for id in commits {
        let heads = repository.common_dir().join("refs/heads");
        std::fs::write(heads.join(id.to_string()), format!("{id}\n")).unwrap();
    }
    protect::release_protected(repository, &protected).unwrap();
}
