//! Trees for tests, drawn at random.

use std::collections::BTreeMap;

use gix::ObjectId;
use proptest::prelude::*;

use super::diff::tree_into;
use super::object::writer::Sink;
use super::object::{BlobId, EntryMode, TreeEntry, TreeId, batch};
use super::repository::Repository;

/// The names that files and folders have; some sort differently as a folder than as a file.
const NAMES: [&str; 5] = ["a", "a.b", "a-b", "b", "c"];

/// Files, each with a number for what is in it.
pub(super) type Files = BTreeMap<String, u8>;

/// Draws files in folders that are no files at the same time.
pub(super) fn files() -> impl Strategy<Value = Files> {
    let path = prop::collection::vec(0..NAMES.len(), 1..4);
    prop::collection::vec((path, 0..4_u8), 0..12).prop_map(|drawn| {
        let is_in_line = |a: &str, b: &str| a == b || a.starts_with(&format!("{b}/"));
        let mut files = Files::new();
        for (path, content) in drawn {
            let path: Vec<&str> = path.into_iter().map(|at| NAMES[at]).collect();
            let path = path.join("/");
            files.retain(|other, _| !is_in_line(&path, other) && !is_in_line(other, &path));
            files.insert(path, content);
        }
        files
    })
}

/// Draws files most of which are the same as others.
pub(super) fn near(files: &Files, changed: &Files) -> Files {
    let near = files.iter().map(|(path, &old)| {
        let content = changed.get(path).copied().unwrap_or(old);
        (path.clone(), content)
    });
    near.collect()
}

/// Returns a file's entry in a tree.
pub(super) fn entry(repository: &Repository, content: u8) -> TreeEntry {
    TreeEntry {
        mode: EntryMode::File,
        id: blob(repository, content).0,
    }
}

/// Writes files as a tree.
pub(super) fn write(repository: &Repository, files: &Files) -> TreeId {
    let empty = ObjectId::empty_tree(repository.gix.object_hash());
    let edit = |(path, &content): (&String, &u8)| {
        let entry = entry(repository, content);
        (path.clone().into_bytes(), Some(entry))
    };
    let edits = files.iter().map(edit).collect();
    let sink = Sink::new(repository);
    let tree = tree_into(repository, &sink, TreeId(empty), &edits).unwrap();
    sink.stage(repository).unwrap();
    tree
}

/// Writes what is in a file.
pub(super) fn blob(repository: &Repository, content: u8) -> BlobId {
    let batch = batch::batch(repository);
    let id = batch.blob(&[content]).unwrap();
    batch.stage().unwrap();
    id
}
