//! From which tree to which one the user's files are brought.

use crate::git::diff;
use crate::git::diff::TreeChange;
use crate::git::object::TreeId;
use crate::git::repository::Repository;

/// What the user's files are brought to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMove {
    /// Their tree before; reachable.
    pub from: TreeId,
    /// Their tree after.
    pub to: TreeId,
}

impl FileMove {
    /// Returns a line for each file that is written or deleted.
    ///
    /// # Errors
    /// Where a tree cannot be read.
    pub fn lines(&self, repository: &Repository) -> anyhow::Result<Vec<String>> {
        let line = |change: &TreeChange| {
            let what = if change.new.is_some() {
                "write"
            } else {
                "delete"
            };
            format!("{what} {}", String::from_utf8_lossy(&change.path))
        };
        Ok(diff::changes(repository, self.from, self.to)?
            .iter()
            .map(line)
            .collect())
    }
}
