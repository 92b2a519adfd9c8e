//! Repositories, commits and random trees for tests.

use std::collections::BTreeMap;

use gix::ObjectId;
use proptest::prelude::*;

use super::diff::tree_into;
use super::object::writer::Sink;
use super::object::{BlobId, EntryMode, NewCommit, TreeEntry, TreeId, batch};
use super::repository::Repository;

/// Makes an empty repository in a temporary directory.
pub(super) fn repository() -> (tempfile::TempDir, Repository) {
    let dir = tempfile::tempdir().unwrap();
    gix::init(dir.path()).unwrap();
    let repository = Repository::open(dir.path()).unwrap();
    (dir, repository)
}

pub(super) fn new_commit(tree: TreeId, time: &jiff::Zoned) -> NewCommit<'_> {
    NewCommit {
        tree,
        parents: &[],
        message: "",
        time,
    }
}

/// Names of files and directories. Some sort differently as a directory.
const NAMES: [&str; 5] = ["a", "a.b", "a-b", "b", "c"];

/// Files by path, with a number for their content.
pub(super) type Files = BTreeMap<String, u8>;

/// Generates files whose paths don't collide.
pub(super) fn files() -> impl Strategy<Value = Files> {
    let path = prop::collection::vec(0..NAMES.len(), 1..4);
    prop::collection::vec((path, 0..4_u8), 0..12).prop_map(|drawn| {
        let is_in_line = |a: &str, b: &str| a == b || a.starts_with(&format!("{b}/"));
        let mut files = Files::new();
        for (path, byte) in drawn {
            let path: Vec<&str> = path.into_iter().map(|at| NAMES[at]).collect();
            let path = path.join("/");
            files.retain(|other, _| !is_in_line(&path, other) && !is_in_line(other, &path));
            files.insert(path, byte);
        }
        files
    })
}

/// Generates a variant in which most files are the same.
pub(super) fn near(files: &Files, changed: &Files) -> Files {
    let near = files.iter().map(|(path, &old)| {
        let byte = changed.get(path).copied().unwrap_or(old);
        (path.clone(), byte)
    });
    near.collect()
}

pub(super) fn entry(repository: &Repository, byte: u8) -> TreeEntry {
    TreeEntry {
        mode: EntryMode::Blob,
        id: blob(repository, byte).0,
    }
}

pub(super) fn write(repository: &Repository, files: &Files) -> TreeId {
    let empty = ObjectId::empty_tree(repository.gix.object_hash());
    let edit = |(path, &byte): (&String, &u8)| {
        let entry = entry(repository, byte);
        (path.clone().into_bytes(), Some(entry))
    };
    let edits = files.iter().map(edit).collect();
    let sink = Sink::new(repository);
    let tree = tree_into(repository, &sink, TreeId(empty), &edits).unwrap();
    sink.stage(repository).unwrap();
    tree
}

pub(super) fn blob(repository: &Repository, byte: u8) -> BlobId {
    let batch = batch::begin_batch(repository);
    let id = batch.blob(&[byte]).unwrap();
    batch.stage().unwrap();
    id
}
