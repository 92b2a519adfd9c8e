//! A changed path.

use crate::git::object::id::{EntryMode, TreeEntry};

/// A path at which two trees differ; never a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChange {
    /// Path with `/` between components.
    pub path: Vec<u8>,
    pub old: Option<TreeEntry>,
    pub new: Option<TreeEntry>,
}

impl TreeChange {
    /// Returns whether this is a change of a submodule only, so no file of this repository.
    pub fn is_of_repository(&self) -> bool {
        let mut entries = self.old.iter().chain(&self.new);
        entries.all(|entry| entry.mode == EntryMode::Gitlink)
    }
}
