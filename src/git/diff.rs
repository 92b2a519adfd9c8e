//! Differences between two trees by path, without rename detection.

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

/// The trees differ in more paths than are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "they differ in more than {} files and folders, or {} MiB of paths",
    compare::MOST_CHANGES,
    compare::MOST_PATH_BYTES >> 20
)]
pub struct TooDifferent;

/// Returns the files, symlinks and submodules that differ between two trees, sorted by path. Fails
/// with [`TooDifferent`] beyond the limits.
pub fn changes(
    repository: &Repository,
    old: TreeId,
    new: TreeId,
) -> anyhow::Result<Vec<TreeChange>> {
    if old == new {
        return Ok(Vec::new());
    }
    if let Some(cached) = repository.memory.changes([old, new]) {
        return Ok(cached);
    }

    let changes = compare::compare_trees(repository, old, new).context("comparing two trees")?;
    repository.memory.keep_changes([old, new], &changes);
    Ok(changes)
}

/// Writes a copy of `base` with these paths replaced, or deleted if `None`.
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

/// Like [`tree_with`], but adds the trees to `sink`.
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

    // Deletions first: a file can become a directory or vice versa. `remove_if_leaf` leaves a
    // directory in place of the file alone.
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

fn components(path: &[u8]) -> impl Iterator<Item = &BStr> {
    path.split(|&byte| byte == b'/').map(BStr::new)
}

#[cfg(test)]
mod tests;
