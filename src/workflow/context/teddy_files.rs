//! The files below `.teddy/` that a project has beside its configuration: the memos and the list
//! of every session.

use std::path::Path;

use anyhow::Context as _;

use crate::git::refs;
use crate::git::repository::Repository;
use crate::host::file::Root;
use crate::plan::memo;

/// Where the memos are in the workspace.
pub const MEMOS: &str = ".teddy/memos.yaml";
/// The list of every session.
pub const GLOBAL: &str = ".teddy/global.context";
/// The largest of these files that is read, in bytes.
pub const MAX_FILE: u64 = 1 << 20;

/// Returns whether the list of every session is the user's own: git does not track it.
pub fn is_own_global(repository: &Repository) -> bool {
    let tree = refs::head_tree(repository).ok();
    tree.and_then(|tree| repository.entry(tree, GLOBAL.as_bytes()).ok())
        .flatten()
        .is_none()
}

/// Returns the memos.
///
/// # Errors
/// Where the file is no list of texts.
pub fn memos(root: &Root) -> anyhow::Result<Vec<String>> {
    match memos_text(root) {
        Some(text) => memo::file::read(&text).with_context(|| format!("reading `{MEMOS}`")),
        None => Ok(Vec::new()),
    }
}

/// Returns the text of the memos' file.
pub fn memos_text(root: &Root) -> Option<String> {
    root.read(Path::new(MEMOS), MAX_FILE)
        .ok()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the text of the list of every session as it is in its file, to be changed; empty
/// where there is none.
///
/// # Errors
/// Where it is there and cannot be read whole: what is written then would be all that is left
/// of it.
pub fn whole_global_context(root: &Root) -> anyhow::Result<String> {
    match root.read(Path::new(GLOBAL), MAX_FILE) {
        Ok(bytes) => String::from_utf8(bytes)
            .map_err(|_| anyhow::anyhow!("`{GLOBAL}` is not UTF-8; it is left as it is")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the text of the list of every session.
pub fn global_context(root: &Root) -> String {
    root.read(Path::new(GLOBAL), MAX_FILE)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}
