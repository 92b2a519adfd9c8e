//! Lookup of several paths, and files that grow while they are read.

use super::*;
use crate::git::object::batch;
use crate::git::sample;

/// Creates a repository with a tree of these files.
fn repository_with(paths: &[&str]) -> (tempfile::TempDir, Repository, TreeId) {
    let (dir, repository) = sample::repository();
    let batch = batch::begin_batch(&repository);
    let file = |path: &&str| ((*path).to_owned(), batch.blob(path.as_bytes()).unwrap());
    let files: Vec<_> = paths.iter().map(file).collect();
    let tree = batch.tree_of(&files).unwrap();
    batch.finish().unwrap();
    (dir, repository, tree)
}

#[test]
fn names_are_those_of_one_directory() {
    let (_dir, repository, tree) = repository_with(&["a", "b/x", "b/y/z", "b.c"]);
    for (dir, expected) in [
        ("", vec!["a", "b.c", "b"]),
        ("b", vec!["x", "y"]),
        ("b/y", vec!["z"]),
        ("a", vec![]),
        ("b/none", vec![]),
    ] {
        assert_eq!(repository.names(tree, dir).unwrap(), expected, "`{dir}`");
    }
}

#[test]
fn paths_are_looked_up_together_as_they_are_one_by_one() {
    let (_dir, repository, tree) =
        repository_with(&["a", "b/x", "b.c", "b-d/x", "d/e/f", "d/e.f", "z"]);
    let all_paths = [
        "a", "a/x", "b", "b/x", "b/y", "b.c", "b-d", "b-d/x", "d/e", "d/e/f", "d/e/f/g", "d/e.f",
        "none", "z",
    ];
    let paths: BTreeSet<&[u8]> = all_paths.iter().map(|path| path.as_bytes()).collect();
    let together = repository.entries_at(tree, &paths).unwrap();

    for path in all_paths {
        let path = path.as_bytes();
        let alone = repository.entry(tree, path).unwrap();
        assert_eq!(together.get(path), alone.as_ref(), "{}", path.as_bstr());
    }
}

#[test]
fn a_file_that_grows_while_it_is_read_has_an_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    std::fs::write(&path, vec![7; 1000]).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let mut from = large::FileReader::start(&file);
    std::fs::write(&path, vec![7; 100_000]).unwrap();

    let mut read = Vec::new();
    std::io::Read::read_to_end(&mut from, &mut read).unwrap();
    assert_eq!(read.len(), 1001);
}
