//! The difference between two trees, path by path, without guessing at renames.

use std::collections::BTreeMap;

use gix::bstr::BStr;
use gix::diff::tree::Recorder;
use gix::diff::tree::recorder;
use gix::objs::{Kind, TreeRefIter, WriteTo};

use super::During;
use super::repository::Repository;
use crate::git::object::absent;
use crate::git::object::writer::Sink;
use crate::git::object::{EntryMode, TreeEntry, TreeId};

/// One path that two trees do not agree about; never a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChange {
    /// The path, with `/` between components.
    pub path: Vec<u8>,
    /// What the old tree has there.
    pub old: Option<TreeEntry>,
    /// What the new tree has there.
    pub new: Option<TreeEntry>,
}

/// Returns the files, links and gitlinks in which two trees differ, sorted by path.
///
/// # Errors
/// Where a tree is missing or damaged.
pub fn changes(
    repository: &Repository,
    old: TreeId,
    new: TreeId,
) -> anyhow::Result<Vec<TreeChange>> {
    if old == new {
        return Ok(Vec::new());
    }

    let before = absent::find(|| repository.gix.find_tree(old.0))
        .during(format_args!("reading tree {old}"))?;
    let after = absent::find(|| repository.gix.find_tree(new.0))
        .during(format_args!("reading tree {new}"))?;
    let mut found = Recorder::default();
    let hash = repository.gix.object_hash();

    gix::diff::tree(
        TreeRefIter::from_bytes(&before.data, hash),
        TreeRefIter::from_bytes(&after.data, hash),
        gix::diff::tree::State::default(),
        &repository.gix.objects,
        &mut found,
    )
    .map_err(|error| anyhow::anyhow!("{error}").context("comparing two trees"))?;
    Ok(leaves(found.records))
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

/// Joins what was recorded for one path, and leaves folders out.
fn leaves(records: Vec<recorder::Change>) -> Vec<TreeChange> {
    let mut by_path: BTreeMap<Vec<u8>, TreeChange> = BTreeMap::new();
    for record in records {
        let (path, old, new) = match record {
            recorder::Change::Addition {
                entry_mode,
                oid,
                path,
                ..
            } => (path, None, leaf(entry_mode, oid)),
            recorder::Change::Deletion {
                entry_mode,
                oid,
                path,
                ..
            } => (path, leaf(entry_mode, oid), None),
            recorder::Change::Modification {
                previous_entry_mode,
                previous_oid,
                entry_mode,
                oid,
                path,
            } => (
                path,
                leaf(previous_entry_mode, previous_oid),
                leaf(entry_mode, oid),
            ),
        };
        if old.is_none() && new.is_none() {
            continue;
        }

        let path = Vec::from(path);
        let change = by_path.entry(path.clone()).or_insert(TreeChange {
            path,
            old: None,
            new: None,
        });
        change.old = change.old.take().or(old);

        change.new = change.new.take().or(new);
    }

    by_path
        .into_values()
        .filter(|change| change.old != change.new)
        .collect()
}

/// Returns an entry that is no folder.
fn leaf(mode: gix::objs::tree::EntryMode, id: gix::ObjectId) -> Option<TreeEntry> {
    let mode = EntryMode::from(mode);
    (mode != EntryMode::Tree).then_some(TreeEntry { mode, id })
}
