//! A changed path.

use crate::git::object::entry::TreeEntry;

/// A path at which two trees differ; never a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChange {
    /// Path with `/` between components.
    pub path: Vec<u8>,
    /// Entry in the old tree.
    pub old: Option<TreeEntry>,
    /// Entry in the new tree.
    pub new: Option<TreeEntry>,
}
