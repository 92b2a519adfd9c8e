//! How a result fits into the user's files as they are now: three-way, and nothing is decided where
//! both changed the same.

use std::collections::BTreeSet;

use crate::git::merge;
use crate::git::merge::Merged;
use crate::git::object::TreeId;
use crate::git::repository::Repository;
use crate::workspace::file_move::FileMove;

/// How the user's files and a result fit together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// They do: this is to be done.
    Clean(FileMove),
    /// They meet at these paths; nothing is to be done.
    Overlap(Vec<Vec<u8>>, Box<WaysOut>),
}

/// What could be done about an overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaysOut {
    /// The user's files now.
    pub from: TreeId,
    /// The user's side where they meet.
    pub ours: TreeId,
    /// The result's side where they meet.
    pub theirs: TreeId,
    /// Conflict markers where they meet.
    pub markers: TreeId,
    /// The paths at which they meet and have no lines to mark: the user's side stays there.
    pub unmarked: BTreeSet<Vec<u8>>,
}

/// Fits a result into the user's files as they are now.
///
/// # Errors
/// Where the repository cannot be read or written.
pub fn fit(
    repository: &Repository,
    base: TreeId,
    now: TreeId,
    target: TreeId,
) -> anyhow::Result<Fit> {
    Ok(match merge::merge(repository, base, now, target)? {
        Merged::Clean(to) => Fit::Clean(FileMove { from: now, to }),
        Merged::Overlap {
            paths,
            ours,
            theirs,
            markers,
            unmarked,
        } => Fit::Overlap(
            paths,
            Box::new(WaysOut {
                from: now,
                ours,
                theirs,
                markers,
                unmarked,
            }),
        ),
    })
}
