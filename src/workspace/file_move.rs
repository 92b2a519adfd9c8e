//! A change of the user's files from one tree to another, and the conflict markers of merges in them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::git::diff::{self, TreeChange};
use crate::git::object::{BlobId, TreeId};
use crate::git::repository::Repository;
use crate::session::meta::Workspace;
use crate::session::publication::Delta;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PathChange {
    Added,
    Deleted,
    /// Content or mode.
    Modified,
}

impl PathChange {
    /// `None` if the file does not exist.
    pub fn of<T>(old: &Option<T>, new: &Option<T>) -> PathChange {
        match (old, new) {
            (None, _) => PathChange::Added,
            (_, None) => PathChange::Deleted,
            _ => PathChange::Modified,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMove {
    /// A ref reaches it.
    pub from: TreeId,
    pub to: TreeId,
}

impl FileMove {
    pub fn lines(&self, repository: &Repository) -> anyhow::Result<Vec<String>> {
        let line = |change: &TreeChange| {
            let verb = if change.new.is_some() {
                "write"
            } else {
                "delete"
            };
            format!("{verb} {}", String::from_utf8_lossy(&change.path))
        };
        Ok(diff::changes(repository, self.from, self.to)?
            .iter()
            .filter(|change| !change.is_new_repository())
            .map(line)
            .collect())
    }
}

/// The trees before and after a turn.
pub fn trees_of(repository: &Repository, turn: Delta) -> anyhow::Result<[TreeId; 2]> {
    let [before, after] = [turn.before, turn.after].map(|id| repository.commit(id));
    Ok([before?.tree, after?.tree])
}

pub fn changes_of(repository: &Repository, turn: Delta) -> anyhow::Result<Vec<TreeChange>> {
    let [before, after] = trees_of(repository, turn)?;
    diff::changes(repository, before, after)
}

/// A copy of `tree` with these paths as they are in `from`.
pub fn with_paths_of(
    repository: &Repository,
    tree: TreeId,
    from: TreeId,
    paths: impl IntoIterator<Item = Vec<u8>>,
) -> anyhow::Result<TreeId> {
    let mut edits = BTreeMap::new();
    for path in paths {
        let entry = repository.entry(from, &path)?;
        edits.insert(path, entry);
    }
    diff::tree_with(repository, tree, &edits)
}

/// The files after a turn: without its changes if it was not applied, and without the conflicting
/// ones otherwise.
pub fn tree_left_by(repository: &Repository, workspace: &Workspace) -> anyhow::Result<TreeId> {
    if !workspace.synced {
        return Ok(repository.commit(workspace.before)?.tree);
    }
    let tree = repository.commit(workspace.after)?.tree;
    if workspace.overlaps.is_empty() {
        return Ok(tree);
    }
    let overlaps = workspace.overlaps.iter();
    let overlaps = overlaps.map(|path| path.as_bytes().to_vec());
    let before = repository.commit(workspace.before)?.tree;
    with_paths_of(repository, tree, before, overlaps)
}

/// The first and last line of a conflict. The labels are those that our merge uses, so markers of
/// other tools don't match.
const CONFLICT_MARKERS: [&[u8]; 2] = [b"<<<<<<< yours", b">>>>>>> turn"];

/// Larger files are skipped: every `status` would read them whole.
const MAX_MARKED_FILE: u64 = 16 << 20;

pub fn find_conflict_markers(
    repository: &Repository,
    tree: TreeId,
    paths: &[Vec<u8>],
) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut marked_paths = Vec::new();
    for path in paths {
        let Some(entry) = repository.entry(tree, path)? else {
            continue;
        };
        if !entry.is_file() || repository.blob_size(BlobId::of(entry.id))? > MAX_MARKED_FILE {
            continue;
        }

        if has_conflict_markers(&repository.blob(BlobId::of(entry.id))?) {
            marked_paths.push(path.clone());
        }
    }

    Ok(marked_paths)
}

fn has_conflict_markers(text: &[u8]) -> bool {
    let mut open = CONFLICT_MARKERS.iter();
    let mut next_marker = open.next();
    for line in text.split(|byte| *byte == b'\n') {
        // Both markers in this order. Other text between them does not matter.
        if next_marker.is_some_and(|marker| line.starts_with(marker)) {
            next_marker = open.next();
        }
    }

    next_marker.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_a_pair_of_lines() {
        let with_markers = "a\n<<<<<<< yours\nb\n=======\nc\n>>>>>>> turn\n";
        let actual = [
            with_markers,
            "a\n<<<<<<< yours\nb\n",
            "a <<<<<<< yours\n>>>>>>> turn\n",
        ]
        .map(|text| has_conflict_markers(text.as_bytes()));
        assert_eq!(actual, [true, false, false]);
    }
}
