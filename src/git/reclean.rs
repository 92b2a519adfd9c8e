//! Handles files that stay the same on disk while attributes change: with another filter or
//! line-ending rule, git stores something else for the same content.

use std::collections::BTreeMap;

use super::diff;
use super::filter::{self, Filter};
use super::object::{BlobId, TreeEntry, TreeId, large};
use super::paths;
use super::repository::Repository;

const ATTRIBUTES: &[u8] = b".gitattributes";

/// Returns whether a path names an attributes file.
pub fn is_attributes(path: &[u8]) -> bool {
    paths::split(path).1 == ATTRIBUTES
}

/// Returns `tree` with the entries of `other` for those paths that both trees check out to the same
/// content on disk, each with its own attributes.
pub fn alike(
    repository: &Repository,
    tree: TreeId,
    other: TreeId,
    paths: &[Vec<u8>],
) -> anyhow::Result<TreeId> {
    let [mut filter, mut other_filter] = filters(repository, tree, other, paths)?;
    let mut edits = BTreeMap::new();
    for path in paths {
        if filter.keeps(path)? && other_filter.keeps(path)? {
            continue;
        }
        let [one, two] = [tree, other].map(|tree| file(repository, tree, path));
        if let (Some((entry, blob)), Some((target, other))) = (one?, two?)
            && entry.mode == target.mode
            && filter.smudge(path, blob)? == other_filter.smudge(path, other)?
        {
            edits.insert(path.clone(), Some(target));
        }
    }

    with_edits(repository, tree, &edits)
}

/// Re-stores files that only the attributes changed: returns the new tree with the blobs that its
/// filters produce for the content on disk under the old tree.
///
/// A file is left alone if the new filters would not check out the same content again.
pub fn reclean(
    repository: &Repository,
    old: TreeId,
    new: TreeId,
    paths: &[Vec<u8>],
) -> anyhow::Result<TreeId> {
    let [mut before, mut after] = filters(repository, old, new, paths)?;
    let mut edits = BTreeMap::new();
    for path in paths {
        let Some((TreeEntry { mode, .. }, blob)) = file(repository, new, path)? else {
            continue;
        };
        if let Some(stored) = stored(&mut before, &mut after, path, blob)? {
            let id = repository.write_blob(&stored)?.0;
            edits.insert(path.clone(), Some(TreeEntry { mode, id }));
        }
    }

    with_edits(repository, new, &edits)
}

fn filters<'r>(
    repository: &'r Repository,
    one: TreeId,
    two: TreeId,
    paths: &[Vec<u8>],
) -> anyhow::Result<[Filter<'r>; 2]> {
    let of = |tree| filter::open_filter(repository, tree, paths.iter().map(Vec::as_slice));
    Ok([of(one)?, of(two)?])
}

/// Returns a file of a tree with its content; `None` if it is not a file or is large.
fn file(
    repository: &Repository,
    tree: TreeId,
    path: &[u8],
) -> anyhow::Result<Option<(TreeEntry, Vec<u8>)>> {
    let is_file =
        |entry: &TreeEntry| entry.is_file() && large::find_large(repository, entry.id).is_none();
    let Some(entry) = repository.entry(tree, path)?.filter(is_file) else {
        return Ok(None);
    };
    let blob = repository.blob(BlobId(entry.id))?;
    Ok(Some((entry, blob)))
}

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

/// Returns the content that the new filters store for a file that the old filters wrote. `None` if
/// the blob itself is still right, or no blob would be.
fn stored(
    before: &mut Filter<'_>,
    after: &mut Filter<'_>,
    path: &[u8],
    blob: Vec<u8>,
) -> anyhow::Result<Option<Vec<u8>>> {
    let bytes = before.smudge(path, blob.clone())?;
    if after.smudge(path, blob)? == bytes {
        return Ok(None);
    }

    let cleaned = match after.stored(path, &bytes) {
        Ok(cleaned) => cleaned,
        // git refuses content that is not in the encoding, too.
        Err(_) if after.has_encoding(path)? => return Ok(None),
        Err(error) => return Err(error),
    };
    let comes_back = after.smudge(path, cleaned.clone())? == bytes;
    Ok(comes_back.then_some(cleaned))
}
