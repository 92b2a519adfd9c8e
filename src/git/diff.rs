//! The difference between two trees, path by path, without guessing at renames.

pub mod change;
mod compare;

use std::collections::BTreeMap;

use anyhow::Context as _;
use gix::bstr::BStr;
use gix::objs::{Kind, WriteTo};

use super::During;
use super::repository::Repository;
use crate::git::object::absent;
use crate::git::object::writer::Sink;
use crate::git::object::{TreeEntry, TreeId};

pub use change::TreeChange;

/// Two trees differ in more than is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "they differ in more than {} files and folders, or {} MiB of paths",
    compare::MOST_CHANGES,
    compare::MOST_PATH_BYTES >> 20
)]
pub struct TooDifferent;

/// Returns the files, links and gitlinks in which two trees differ, sorted by path.
///
/// # Errors
/// Where a tree is missing or damaged, or they are [`TooDifferent`].
pub fn changes(
    repository: &Repository,
    old: TreeId,
    new: TreeId,
) -> anyhow::Result<Vec<TreeChange>> {
    if old == new {
        return Ok(Vec::new());
    }
    if let Some(known) = repository.memory.changes([old, new]) {
        return Ok(known);
    }

    let changes = compare::compare(repository, old, new).context("comparing two trees")?;
    repository.memory.keep_changes([old, new], &changes);
    Ok(changes)
}

/// Writes the tree that differs from `base` in exactly the given paths: what is there, or
/// nothing.
///
/// # Errors
/// Where a tree cannot be read or written.
pub fn tree_with(
    repository: &Repository,
    base: TreeId,
    edits: &BTreeMap<Vec<u8>, Option<TreeEntry>>,
) -> anyhow::Result<TreeId> {
    let sink = Sink::new(repository);
    let tree = tree_into(repository, &sink, base, edits)?;
    sink.finish(repository)?;
    Ok(tree)
}

/// Adds the tree of [`tree_with`] to objects on their way.
pub(in crate::git) fn tree_into(
    repository: &Repository,
    sink: &Sink,
    base: TreeId,
    edits: &BTreeMap<Vec<u8>, Option<TreeEntry>>,
) -> anyhow::Result<TreeId> {
    let root = absent::find(|| repository.gix.find_tree(base.0))
        .during(format_args!("reading tree {base}"))?;
    let root = root
        .decode()
        .during(format_args!("reading tree {base}"))?
        .into();
    let mut editor =
        gix::objs::tree::Editor::new(root, &repository.gix.objects, repository.gix.object_hash());

    // What goes may be a file where a folder comes, or the other way round; a folder that is
    // there already is not what goes.
    for path in edits
        .iter()
        .filter(|(_, entry)| entry.is_none())
        .map(|(path, _)| path)
    {
        editor
            .remove_if_leaf(components(path))
            .during("editing a tree")?;
    }

    for (path, entry) in edits {
        let Some(entry) = entry else { continue };
        editor
            .upsert(components(path), entry.mode.into(), entry.id)
            .during("editing a tree")?;
    }

    let written = editor.write(|tree| {
        let mut bytes = Vec::new();
        tree.write_to(&mut bytes)?;
        sink.add(Kind::Tree, bytes)
    });
    written.map(TreeId)
}

/// Returns the components of a path.
fn components(path: &[u8]) -> impl Iterator<Item = &BStr> {
    path.split(|&byte| byte == b'/').map(BStr::new)
}

#[cfg(test)]
mod tests;
