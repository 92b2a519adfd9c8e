//! A pending checkout of the user's files from one tree to another.

use crate::git::diff;
use crate::git::diff::TreeChange;
use crate::git::object::TreeId;
use crate::git::repository::Repository;

/// A pending checkout from one tree to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMove {
    /// The tree before; a ref reaches it.
    pub from: TreeId,
    /// The tree after.
    pub to: TreeId,
}

impl FileMove {
    /// One line for each file that is written or deleted.
    pub fn lines(&self, repository: &Repository) -> anyhow::Result<Vec<String>> {
        let line = |change: &TreeChange| {
            let verb = if change.new.is_some() {
                "write"
            } else {
                "delete"
            };
            format!("{verb} {}", String::from_utf8_lossy(&change.path))
        };
        Ok(diff::changes(repository, self.from, self.to)?
            .iter()
            .filter(|change| !change.is_of_repository())
            .map(line)
            .collect())
    }
}
