//! A change of the user's files from one tree to another, and the conflict markers of merges in them.

use crate::git::diff::{self, TreeChange};
use crate::git::object::{BlobId, CommitId, TreeId};
use crate::git::repository::Repository;

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
            .filter(|change| !change.is_of_repository())
            .map(line)
            .collect())
    }
}

/// The trees of two commits, such as those before and after a turn.
pub fn trees_of(repository: &Repository, commits: [CommitId; 2]) -> anyhow::Result<[TreeId; 2]> {
    let [before, after] = commits.map(|id| repository.commit(id));
    Ok([before?.tree, after?.tree])
}

/// What changed between two commits.
pub fn changes_between(
    repository: &Repository,
    before: CommitId,
    after: CommitId,
) -> anyhow::Result<Vec<TreeChange>> {
    let [before, after] = trees_of(repository, [before, after])?;
    diff::changes(repository, before, after)
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
