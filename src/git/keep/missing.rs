//! What a tree holds beyond others that are whole: the objects that have to be there before a ref
//! moves to it, because nothing else may reach them.

use std::collections::HashMap;

use gix::ObjectId;

use crate::git::During;
use crate::git::object::TreeId;
use crate::git::repository::Repository;

/// What a tree holds beyond others.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    /// Trees that can be read, and what else they name.
    pub there: Vec<ObjectId>,
    /// Trees that are gone; nobody knows what they name.
    pub gone: Vec<ObjectId>,
}

/// Returns the objects of a tree that others, which are whole, do not have in its place.
///
/// Commits of embedded repositories are not ours to have.
///
/// # Errors
/// Where a tree that is there cannot be read.
pub fn beyond(repository: &Repository, tree: TreeId, whole: &[TreeId]) -> anyhow::Result<Beyond> {
    let mut beyond = Beyond::default();
    let mut pairs = vec![(tree.0, whole.iter().map(|tree| tree.0).collect::<Vec<_>>())];
    while let Some((tree, whole)) = pairs.pop() {
        if whole.contains(&tree) {
            continue;
        }

        let Some(entries) = entries_of(repository, tree)? else {
            beyond.gone.push(tree);
            continue;
        };

        beyond.there.push(tree);
        // Of one that cannot be read, as in a clone without all trees, nothing is taken for
        // there.
        let known: Vec<_> = whole
            .into_iter()
            .filter_map(|whole| entries_of(repository, whole).ok().flatten())
            .collect();
        let known: Vec<HashMap<_, _>> = known
            .iter()
            .map(|known| known.iter().map(|entry| (&entry.filename, entry)).collect())
            .collect();

        for entry in entries {
            let before: Vec<_> = known
                .iter()
                .filter_map(|known| known.get(&entry.filename))
                .collect();
            if before.iter().any(|before| before.oid == entry.oid) || entry.mode.is_commit() {
                continue;
            }

            if entry.mode.is_tree() {
                pairs.push((
                    entry.oid,
                    before
                        .iter()
                        .filter(|before| before.mode.is_tree())
                        .map(|before| before.oid)
                        .collect(),
                ));
            } else {
                beyond.there.push(entry.oid);
            }
        }
    }

    Ok(beyond)
}

/// Reads a tree's entries; nothing where it is gone.
fn entries_of(
    repository: &Repository,
    tree: ObjectId,
) -> anyhow::Result<Option<Vec<gix::objs::tree::Entry>>> {
    let found = repository
        .gix
        .try_find_object(tree)
        .during("reading a tree")?;
    let Some(found) = found else { return Ok(None) };
    let tree = found.try_into_tree().during("reading a tree")?;
    let decoded = tree.decode().during("reading a tree")?;
    let entries = decoded.entries.iter();

    Ok(Some(entries.map(|&entry| entry.into()).collect()))
}
