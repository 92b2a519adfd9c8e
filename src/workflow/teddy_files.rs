//! The files below `.teddy/` that a project has beside its configuration: the memos and the list
//! of every session.

use crate::git::refs;
use crate::git::repository::Repository;

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
