//! Merges a result into the user's current files, three-way. On a conflict nothing is decided here.

use std::collections::BTreeSet;

use crate::git::merge;
use crate::git::merge::Merged;
use crate::git::object::TreeId;
use crate::git::repository::Repository;
use crate::workspace::file_move::FileMove;

/// Result of the merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// No conflict: apply this.
    Clean(FileMove),
    /// Conflicting paths, with the trees for each resolution. Nothing should be applied yet.
    Overlap(Vec<Vec<u8>>, Box<OverlapTrees>),
}

/// Possible resolutions of a conflict, each as a whole tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlapTrees {
    /// The user's current files.
    pub from: TreeId,
    /// Conflicts resolved in favor of the user's files.
    pub ours: TreeId,
    /// Conflicts resolved in favor of the result.
    pub theirs: TreeId,
    /// Conflicts written as conflict markers.
    pub markers: TreeId,
    /// The paths at which they meet and have no lines to mark: the user's side stays there.
    pub unmarked: BTreeSet<Vec<u8>>,
}

/// Merges the change from `base` to `target` into the user's current files.
pub fn fit(
    repository: &Repository,
    base: TreeId,
    now: TreeId,
    target: TreeId,
) -> anyhow::Result<Fit> {
    Ok(match merge::merge_trees(repository, base, now, target)? {
        Merged::Clean(to) => Fit::Clean(FileMove { from: now, to }),
        Merged::Overlap {
            paths,
            ours,
            theirs,
            markers,
            unmarked,
        } => Fit::Overlap(
            paths,
            Box::new(OverlapTrees {
                from: now,
                ours,
                theirs,
                markers,
                unmarked,
            }),
        ),
    })
}
