//! Compares a snapshot with `git add -A && git write-tree`: the same tree, and nothing else changes
//! in the repository.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use teddy::git::object::Leaf;
use teddy::git::repository::Repository;
use teddy::git::snapshot::known_files::{KnownFile, KnownTree, count_untracked, each_known_file};
use teddy::git::snapshot::limits::{Forced, SnapshotLimits};
use teddy::git::snapshot::{Snapshot, take_snapshot};

use crate::support::TestRepo;

#[track_caller]
pub fn take(top: &Path, limits: &SnapshotLimits, force: &[&str]) -> Snapshot {
    let repo = Repository::open(top).expect("the repository opens");
    let index = repo.teddy_dir().join("index").join(repo.worktree_name());
    let force: Vec<Forced> = force.iter().map(|path| Forced::new(*path)).collect();
    take_snapshot(&repo, &index, limits, &force).expect("a snapshot")
}

/// Returns the tree that git computes, with a copy of the index and a separate object directory.
#[track_caller]
pub fn gits_tree(repo: &TestRepo, top: &Path) -> String {
    let git = |args: &[&str]| repo.git_in(top, args);
    let git_dir = PathBuf::from(git(&["rev-parse", "--absolute-git-dir"]));
    let objects = PathBuf::from(git(&[
        "rev-parse",
        "--path-format=absolute",
        "--git-path",
        "objects",
    ]));
    let index = git_dir.join("index-of-the-test");
    if std::fs::copy(git_dir.join("index"), &index).is_ok() {
        // git compares the times of files with that of the index to decide which entries to trust.
        let time = git_dir
            .join("index")
            .metadata()
            .unwrap()
            .modified()
            .unwrap();
        std::fs::File::options()
            .append(true)
            .open(&index)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }
    let elsewhere = tempfile::tempdir().expect("a folder");
    let with = |args: &[&str]| {
        let mut command = repo.command("git");
        command
            .env("GIT_INDEX_FILE", &index)
            .env("GIT_OBJECT_DIRECTORY", elsewhere.path());
        let out = command
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &objects)
            .arg("-C")
            .arg(top)
            .args(args)
            .output()
            .unwrap();
        assert!(
            out.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
        String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
    };
    with(&[
        "-c",
        "core.safecrlf=false",
        "-c",
        "advice.addEmbeddedRepo=false",
        "add",
        "-A",
    ]);
    let tree = with(&["write-tree"]);
    std::fs::remove_file(index).expect("git wrote its index");
    tree
}

/// Returns the content of every file in the git directory, except objects and TeDDy's own files.
fn users_state(git_dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut state = BTreeMap::new();
    let mut folders = vec![git_dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("a name").path();
            if path.ends_with(".git/teddy") || path.ends_with(".git/objects") {
                continue;
            }
            if path.is_dir() {
                folders.push(path)
            } else {
                drop(state.insert(path.clone(), std::fs::read(path).expect("a file")))
            }
        }
    }
    state
}

/// Asserts that two snapshots in a row match git's tree and that all their objects exist.
#[track_caller]
pub fn check_at(repo: &TestRepo, top: &Path) -> Snapshot {
    let before = users_state(&repo.path().join(".git"));
    let snapshot = take(top, &SnapshotLimits::none(), &[]);
    let tree = snapshot.tree.to_string();
    let entries = |tree: &str| repo.git(&["ls-tree", "-r", "-t", tree]);
    let listed = entries(&tree);
    repo.git(&["rev-list", "--objects", "--quiet", &tree]);
    assert_eq!(
        users_state(&repo.path().join(".git")),
        before,
        "the user's state is as it was"
    );
    let expected = gits_tree(repo, top);
    assert_eq!(
        tree,
        expected,
        "ours:\n{listed}\ngit's status:\n{}",
        repo.git(&["status", "--short", "--ignored"])
    );
    let again = take(top, &SnapshotLimits::none(), &[]);
    assert_eq!(
        again.tree, snapshot.tree,
        "the second snapshot, from the private index, is the same"
    );
    assert_eq!(again.left_out, snapshot.left_out);
    check_known(top, &again);
    snapshot
}

/// Asserts that the private index lists exactly the files of the snapshot.
#[track_caller]
fn check_known(top: &Path, snapshot: &Snapshot) {
    let repository = Repository::open(top).unwrap();
    let index = repository.teddy_dir().join("index");
    let index = index.join(repository.worktree_name());
    let leaves = repository.leaves(snapshot.tree).unwrap();
    let known = KnownTree::of(&repository, &index, snapshot.tree);
    if let Some(known) = known.and_then(|known| known.leaves()) {
        assert_eq!(known, leaves);
    }
    let mut known = Vec::new();
    let add = |file: KnownFile<'_>| known.push((file.path.to_vec(), file.id));
    if each_known_file(&repository, &index, snapshot.tree, add).is_some() {
        let leaves = leaves.iter().map(|leaf| (leaf.path.clone(), leaf.id));
        assert_eq!(known, leaves.collect::<Vec<_>>());
    }

    let tracked = gix::open(top).unwrap().index_or_empty().unwrap();
    // A sparse index has a directory for its files.
    let is_below = |path: &[u8]| {
        let mut entries = tracked.entries().iter().map(|entry| entry.path(&tracked));
        entries.any(|entry| entry.ends_with(b"/") && path.starts_with(entry))
    };
    let is_untracked = |leaf: &&Leaf| {
        tracked.entry_range(leaf.path.as_slice().into()).is_none() && !is_below(&leaf.path)
    };
    let others = leaves.iter().filter(is_untracked).count();
    for index in [&index, Path::new("/none")] {
        let counted = count_untracked(&repository, index, snapshot.tree).unwrap();
        assert_eq!(counted, others);
    }
}

#[track_caller]
pub fn check(repo: &TestRepo) -> Snapshot {
    check_at(repo, &repo.path())
}
