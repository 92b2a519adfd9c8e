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
