//! Reading a file of a tree as a checkout would have it.

use super::object::TreeId;
use super::repository::Repository;

impl Repository {
    /// Returns the bytes that a checkout of a tree has at a path, line ends and filters included;
    /// empty where there is no file.
    ///
    /// # Errors
    /// Where an object cannot be read or a filter fails.
    pub fn checked_out(&self, tree: TreeId, path: &str) -> anyhow::Result<Vec<u8>> {
        let Some(blob) = self.file(tree, path)? else {
            return Ok(Vec::new());
        };
        let path = path.as_bytes();
        self.filter(tree, std::iter::once(path))?.smudge(path, blob)
    }
}
