//! Keeps bytes that commands made and that git does not store, such as the output of a notebook that
//! a filter drops: the tree of the turn does not have them, and the worktree goes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::SessionWorktree;
use crate::git::diff;
use crate::git::object::large::LARGE;
use crate::git::object::{BlobId, EntryMode, TreeEntry, TreeId};
use crate::git::publish::replaced;
use crate::git::repository::Repository;
use crate::git::version::{self, TreeVersion};
use crate::host::file::Root;
use crate::text::transplant::without_ids;

/// Keeps the bytes of the files of a worktree that differ between two trees and are not what a
/// checkout of the second one has. The publication that follows writes them.
pub fn keep_unstored(
    repository: &Repository,
    worktree: &SessionWorktree,
    from: TreeId,
    to: TreeId,
) -> anyhow::Result<()> {
    let changes = diff::changes(repository, from, to)?;
    let is_file = |entry: &TreeEntry| matches!(entry.mode, EntryMode::File | EntryMode::Executable);
    let files: Vec<(&[u8], TreeEntry)> = changes
        .iter()
        .filter_map(|change| Some((change.path.as_slice(), change.new.clone()?)))
        .filter(|(_, entry)| is_file(entry))
        .collect();
    if files.is_empty() {
        return Ok(());
    }

    let root = Root::open_strictly(&worktree.files)?;
    let mut version = version::tree_version(repository, to, files.iter().map(|(path, _)| *path))?;
    for (path, entry) in &files {
        if let Some(bytes) = read_unstored(repository, &root, &mut version, path, entry)? {
            replaced::keep_replaced_bytes(repository, entry.id, path, &bytes)?;
        }
    }
    Ok(())
}

/// Returns the bytes of a file if git stores them as an entry and would check out others.
fn read_unstored(
    repository: &Repository,
    root: &Root,
    version: &mut TreeVersion<'_>,
    path: &[u8],
    entry: &TreeEntry,
) -> anyhow::Result<Option<Vec<u8>>> {
    let file = Path::new(OsStr::from_bytes(path));
    let Ok(Some(metadata)) = root.entry(file) else {
        return Ok(None);
    };
    let size = repository.blob_size(BlobId::of(entry.id))?;
    // Without a filter, only other line ends make a difference, and those have another length.
    if version.is_as_stored(path)? && metadata.size == size {
        return Ok(None);
    }
    let Ok(bytes) = root.read(file, LARGE) else {
        return Ok(None);
    };
    let Ok(plain) = version.checked_out(path, entry) else {
        return Ok(None);
    };
    // The id in `$Id$` is that of the version before.
    let is_own =
        without_ids(&plain) != without_ids(&bytes) && version.stores(path, &bytes, entry)?;
    Ok(is_own.then_some(bytes))
}
