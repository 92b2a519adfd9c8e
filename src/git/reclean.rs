//! Files that stay while the attributes around them change, and what git stores for the same bytes
//! then: a filter or a rule of line ends makes something else of them.

use std::collections::BTreeMap;

use super::diff;
use super::filter::{self, Filter};
use super::object::{BlobId, EntryMode, TreeEntry, TreeId, large};
use super::repository::Repository;

/// How files of attributes are called.
const ATTRIBUTES: &[u8] = b".gitattributes";

/// Returns whether a path is called as files of attributes are.
pub fn is_attributes(path: &[u8]) -> bool {
    path.rsplit(|&byte| byte == b'/').next() == Some(ATTRIBUTES)
}

/// Returns a tree with what another one has at those of some paths where both stand for the same
/// bytes on disk, each by its own attributes.
///
/// # Errors
/// Where an object cannot be read or written, or a filter fails.
pub fn alike(
    repository: &Repository,
    [tree, other]: [TreeId; 2],
    paths: &[Vec<u8>],
) -> anyhow::Result<TreeId> {
    let [mut here, mut there] = filters(repository, [tree, other], paths)?;
    let mut edits = BTreeMap::new();
    for path in paths {
        if here.keeps(path)? && there.keeps(path)? {
            continue;
        }
        let [one, two] = [tree, other].map(|tree| file(repository, tree, path));
        if let (Some((entry, blob)), Some((wanted, other))) = (one?, two?)
            && entry.mode == wanted.mode
            && here.smudge(path, blob)? == there.smudge(path, other)?
        {
            edits.insert(path.clone(), Some(wanted));
        }
    }

    with_edits(repository, tree, &edits)
}

/// Returns the new tree with what git stores there for the bytes that some files of it, which are
/// the same in the old tree, have on disk by the old one. What would not come back as these bytes
/// stays as it is.
///
/// # Errors
/// Where an object cannot be read or written, or a filter fails.
pub fn reclean(
    repository: &Repository,
    [old, new]: [TreeId; 2],
    paths: &[Vec<u8>],
) -> anyhow::Result<TreeId> {
    let [mut before, mut after] = filters(repository, [old, new], paths)?;
    let mut edits = BTreeMap::new();
    for path in paths {
        let Some((TreeEntry { mode, .. }, blob)) = file(repository, new, path)? else {
            continue;
        };
        if let Some(stored) = stored([&mut before, &mut after], path, blob)? {
            let id = repository.write_blob(&stored)?.0;
            edits.insert(path.clone(), Some(TreeEntry { mode, id }));
        }
    }

    with_edits(repository, new, &edits)
}

/// Returns the filters of two trees for some paths.
fn filters<'r>(
    repository: &'r Repository,
    [one, two]: [TreeId; 2],
    paths: &[Vec<u8>],
) -> anyhow::Result<[Filter<'r>; 2]> {
    let of = |tree| filter::filter(repository, tree, paths.iter().map(Vec::as_slice));
    Ok([of(one)?, of(two)?])
}

/// Returns a file of a tree with its blob; nothing of what is not a file, or is large.
fn file(
    repository: &Repository,
    tree: TreeId,
    path: &[u8],
) -> anyhow::Result<Option<(TreeEntry, Vec<u8>)>> {
    let is_file = |entry: &TreeEntry| {
        matches!(entry.mode, EntryMode::File | EntryMode::Executable)
            && large::large(repository, entry.id).is_none()
    };
    let Some(entry) = repository.entry(tree, path)?.filter(is_file) else {
        return Ok(None);
    };
    let blob = repository.blob(BlobId(entry.id))?;
    Ok(Some((entry, blob)))
}

/// Returns a tree with changes, if there are any.
fn with_edits(
    repository: &Repository,
    tree: TreeId,
    edits: &BTreeMap<Vec<u8>, Option<TreeEntry>>,
) -> anyhow::Result<TreeId> {
    match edits.is_empty() {
        true => Ok(tree),
        false => diff::tree_with(repository, tree, edits),
    }
}

/// Returns what the new filters store for the bytes that the old ones write for a blob; nothing
/// where the blob itself still stands for these bytes, or nothing does.
fn stored(
    [before, after]: [&mut Filter<'_>; 2],
    path: &[u8],
    blob: Vec<u8>,
) -> anyhow::Result<Option<Vec<u8>>> {
    let bytes = before.smudge(path, blob.clone())?;
    if after.smudge(path, blob)? == bytes {
        return Ok(None);
    }

    let cleaned = after.clean(path, bytes.as_slice())?;
    let cleaned = cleaned.unwrap_or_else(|| bytes.clone());
    let comes_back = after.smudge(path, cleaned.clone())? == bytes;
    Ok(comes_back.then_some(cleaned))
}
