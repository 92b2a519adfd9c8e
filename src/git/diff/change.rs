//! What differs at a path.

use crate::git::object::entry::TreeEntry;

/// One path that two trees do not agree about; never a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChange {
    /// The path, with `/` between components.
    pub path: Vec<u8>,
    /// What the old tree has there.
    pub old: Option<TreeEntry>,
    /// What the new tree has there.
    pub new: Option<TreeEntry>,
}
