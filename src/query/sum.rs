//! What turns did to the files together, without the user's own edits between them.
//!
//! Like `teddy land`, it applies the change of each turn to the result of those before it. An undo
//! or restore is a change like any other, so what is undone cancels out. If a turn changes the same
//! lines as an edit of the user's, the edit counts as part of the files that the turn started from. What
//! was not applied does not count.

use std::collections::BTreeMap;

use crate::git::diff;
use crate::git::merge::{self, Merged};
use crate::git::object::{TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::session::meta::Workspace;
use crate::session::turn::Turn;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnsSum {
    pub before: TreeId,
    pub after: TreeId,
}

type Edits = BTreeMap<Vec<u8>, Option<TreeEntry>>;

/// `turns` are consecutive, oldest first. `start` replaces the files before the first one. `None`
/// if none of the turns has files. The last turn counts even if it was not applied.
pub fn sum<'a>(
    repository: &Repository,
    start: Option<TreeId>,
    turns: impl IntoIterator<Item = &'a Turn>,
) -> anyhow::Result<Option<TurnsSum>> {
    sum_to(repository, start, turns, LastTurn::AsItRan)
}

/// Like [`sum`], without what the last turn did if it was not applied.
pub fn sum_of_applied<'a>(
    repository: &Repository,
    turns: impl IntoIterator<Item = &'a Turn>,
) -> anyhow::Result<Option<TurnsSum>> {
    sum_to(repository, None, turns, LastTurn::AsApplied)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LastTurn {
    AsItRan,
    AsApplied,
}

fn sum_to<'a>(
    repository: &Repository,
    start: Option<TreeId>,
    turns: impl IntoIterator<Item = &'a Turn>,
    last: LastTurn,
) -> anyhow::Result<Option<TurnsSum>> {
    // A landing only records what hooks changed in files that are the user's by then.
    let turns = turns.into_iter().filter(|turn| turn.meta.landed.is_none());
    let workspaces: Vec<&Workspace> = turns
        .filter_map(|turn| turn.meta.workspace.as_ref())
        .collect();
    let tree = |commit| repository.commit(commit).map(|commit| commit.tree);
    let Some(first) = workspaces.first() else {
        return Ok(None);
    };

    let first = tree(first.before)?;
    let start = start.unwrap_or(first);
    let mut adding = Adding {
        repository,
        sum: TurnsSum {
            before: start,
            after: start,
        },
        users: first,
    };
    for (at, workspace) in workspaces.iter().enumerate() {
        let (before, after) = (tree(workspace.before)?, tree(workspace.after)?);
        let next = workspaces.get(at + 1);
        let after = match next.is_none() && last == LastTurn::AsItRan {
            true => after,
            false => applied_tree(repository, workspace, before, after)?,
        };
        let Some(next) = next else {
            adding.turn(before, after)?;
            break;
        };
        let next = tree(next.before)?;
        adding.turn(before, drop_unapplied(repository, before, after, next)?)?;
        adding.user(after, next)?;
    }

    Ok(Some(adding.sum))
}

/// Without the changes that the turn says were not applied.
fn applied_tree(
    repository: &Repository,
    workspace: &Workspace,
    before: TreeId,
    after: TreeId,
) -> anyhow::Result<TreeId> {
    if !workspace.synced {
        return Ok(before);
    }
    let mut left = Edits::new();
    for path in &workspace.overlaps {
        left.insert(
            path.clone().into_bytes(),
            repository.entry(before, path.as_bytes())?,
        );
    }
    diff::tree_with(repository, after, &left)
}

/// Without the changes that the next turn did not find in the files: they were not applied.
fn drop_unapplied(
    repository: &Repository,
    before: TreeId,
    after: TreeId,
    next: TreeId,
) -> anyhow::Result<TreeId> {
    if next == after {
        return Ok(after);
    }
    let mut lost = Edits::new();
    for change in diff::changes(repository, before, after)? {
        if repository.entry(next, &change.path)? == change.old {
            lost.insert(change.path, change.old);
        }
    }
    diff::tree_with(repository, after, &lost)
}

struct Adding<'a> {
    repository: &'a Repository,
    sum: TurnsSum,
    /// With nothing but the user's edits.
    users: TreeId,
}

impl Adding<'_> {
    fn turn(&mut self, before: TreeId, after: TreeId) -> anyhow::Result<()> {
        if before == after {
            return Ok(());
        }
        let repository = self.repository;
        match merge::merge_trees(repository, before, self.sum.after, after)? {
            Merged::Clean(tree) => self.sum.after = tree,
            Merged::Overlap { paths, theirs, .. } => {
                let mut edits = Edits::new();
                for path in paths {
                    // The turn changed lines that the user edited, so the edit becomes part of the
                    // state before.
                    let edited = repository.entry(self.users, &path)?;
                    edits.insert(path, edited);
                }
                self.sum.before = diff::tree_with(repository, self.sum.before, &edits)?;
                self.sum.after = theirs;
            }
        }

        Ok(())
    }

    /// Edits between two turns. They count only if they revert what turns did.
    fn user(&mut self, after: TreeId, next: TreeId) -> anyhow::Result<()> {
        if after == next {
            return Ok(());
        }
        let repository = self.repository;
        let mut edits = Edits::new();
        for change in diff::changes(repository, after, next)? {
            // The file is again as it was before the turns.
            if change.new == repository.entry(self.sum.before, &change.path)? {
                edits.insert(change.path, change.new);
            }
        }
        self.sum.after = diff::tree_with(repository, self.sum.after, &edits)?;
        self.users = match merge::merge_trees(repository, after, self.users, next)? {
            Merged::Clean(tree) => tree,
            // Edits in what turns wrote.
            Merged::Overlap { ours, .. } => ours,
        };
        Ok(())
    }
}
