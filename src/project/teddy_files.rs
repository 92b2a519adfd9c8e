//! Reads the files below `.teddy/` other than the configuration: memos and the global context list.

use std::path::Path;

use anyhow::Context as _;

use crate::git::object::batch::read_blob_within;
use crate::git::object::{BlobId, TreeId};
use crate::git::refs;
use crate::git::repository::Repository;
use crate::host::file::Root;
use crate::plan::memo;

pub const MEMOS: &str = ".teddy/memos.yaml";
pub const GLOBAL: &str = ".teddy/global.context";
/// In bytes.
pub const MAX_FILE: u64 = 1 << 20;

/// The user's own if git does not track it.
pub fn is_own_global(repository: &Repository) -> bool {
    let tree = refs::head_tree(repository).ok();
    tree.and_then(|tree| repository.entry(tree, GLOBAL.as_bytes()).ok())
        .flatten()
        .is_none()
}

pub fn memos(root: &Root) -> anyhow::Result<Vec<String>> {
    match memos_text(root) {
        Some(text) => memo::parse_file(&text).with_context(|| format!("reading `{MEMOS}`")),
        None => Ok(Vec::new()),
    }
}

pub fn memos_text(root: &Root) -> Option<String> {
    root.read(Path::new(MEMOS), MAX_FILE)
        .ok()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The memos of a tree; `None` if it has no such file.
pub fn memos_in(repository: &Repository, tree: TreeId) -> anyhow::Result<Option<String>> {
    let entry = repository.entry(tree, MEMOS.as_bytes())?;
    let Some(entry) = entry.filter(|entry| entry.is_file()) else {
        return Ok(None);
    };
    let bytes = read_blob_within(repository, BlobId::of(entry.id), MAX_FILE)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// For editing; empty if there is none. Fails if it is not UTF-8, because a lossy copy would
/// destroy it.
pub fn whole_global_context(root: &Root) -> anyhow::Result<String> {
    match root.read(Path::new(GLOBAL), MAX_FILE) {
        Ok(bytes) => String::from_utf8(bytes)
            .map_err(|_| anyhow::anyhow!("`{GLOBAL}` is not UTF-8; it is left as it is")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error.into()),
    }
}

/// For reading; empty on any error.
pub fn global_context(root: &Root) -> String {
    root.read(Path::new(GLOBAL), MAX_FILE)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}
