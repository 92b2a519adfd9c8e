//! Reading a file of a tree to show it, or as a checkout would have it.

use crate::git::filter;
use crate::git::object::large::LARGE;
use crate::git::object::{BlobId, EntryMode, TreeEntry, TreeId};
use crate::git::repository::Repository;

/// Reads a blob to be shown or compared by lines; nothing if it is too large for that.
///
/// # Errors
/// It is missing, damaged or not a blob.
pub fn small_blob(repository: &Repository, id: BlobId) -> anyhow::Result<Option<Vec<u8>>> {
    if repository.blob_size(id)? > LARGE {
        return Ok(None);
    }
    repository.blob(id).map(Some)
}

/// Returns the text of one side of a difference: empty where there is no file, nothing where it
/// is no text, or too much of it.
///
/// # Errors
/// It is missing or damaged.
pub fn text_of(
    repository: &Repository,
    entry: Option<&TreeEntry>,
) -> anyhow::Result<Option<String>> {
    match entry {
        None => Ok(Some(String::new())),
        Some(TreeEntry {
            mode: EntryMode::File | EntryMode::Executable | EntryMode::Link,
            id,
        }) => {
            let bytes = small_blob(repository, BlobId::of(*id))?;
            Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
        }
        Some(_) => Ok(None),
    }
}

/// Returns the bytes that a checkout of a tree has at a path, line ends and filters included;
/// empty where there is no file.
///
/// # Errors
/// Where an object cannot be read or a filter fails.
pub fn checked_out(repository: &Repository, tree: TreeId, path: &str) -> anyhow::Result<Vec<u8>> {
    let Some(blob) = repository.file(tree, path)? else {
        return Ok(Vec::new());
    };
    let path = path.as_bytes();
    filter::filter(repository, tree, std::iter::once(path))?.smudge(path, blob)
}

/// Reads files of a tree as a checkout has them, line ends and filters included.
pub struct CheckedOut<'r> {
    /// The repository.
    repository: &'r Repository,
    /// What git makes of a blob in a checkout.
    filter: filter::Filter<'r>,
}

impl<'r> CheckedOut<'r> {
    /// Prepares to read these paths of a tree.
    ///
    /// # Errors
    /// Where the attributes cannot be read.
    pub fn of<'p>(
        repository: &'r Repository,
        tree: TreeId,
        paths: impl Iterator<Item = &'p [u8]>,
    ) -> anyhow::Result<CheckedOut<'r>> {
        let filter = filter::filter(repository, tree, paths)?;
        Ok(CheckedOut { repository, filter })
    }

    /// Returns the bytes of an entry; a link's are its target.
    ///
    /// # Errors
    /// Where the blob is missing or a filter fails.
    pub fn bytes(&mut self, path: &[u8], entry: &TreeEntry) -> anyhow::Result<Vec<u8>> {
        let blob = self.repository.blob(BlobId::of(entry.id))?;
        match entry.mode {
            EntryMode::File | EntryMode::Executable => self.filter.smudge(path, blob),
            _ => Ok(blob),
        }
    }
}
