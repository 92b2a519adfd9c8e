//! Determines the base of a recorded turn: the files as the newest turn left them, or as they were
//! when the work began, plus what other turns have applied since.

use std::collections::BTreeMap;

use super::RecordStart;
use crate::git::merge::{Merged, merge_trees};
use crate::git::object::{CommitId, TreeId};
use crate::git::refs;
use crate::git::repository::Repository;
use crate::git::revision;
use crate::session::meta::Workspace;
use crate::session::publication::Publication;
use crate::session::turn::Turn;
use crate::workflow::project::Project;
use crate::workspace::snapshot;
use crate::workspace::stack::{PatchId, Stacks};

const MAX_TURNS_BETWEEN: usize = 64;

/// Returns a commit with the files as the newest turn of the session left them. If another session
/// changed them since, or another branch is checked out, the base is HEAD plus what was applied on
/// top of it.
pub(super) fn read_last_state(project: &Project, tip: &Turn) -> anyhow::Result<CommitId> {
    let repository = &project.repository;
    let last = Stacks::new(repository).last()?;
    let is_newest = last.is_none_or(|(id, _)| tip.publication == Some(id));
    let workspace = tip.meta.workspace.as_ref().filter(|_| is_newest);
    let branch = refs::branch_or_head(repository)?;
    let workspace = workspace.filter(|state| {
        state.worktree == repository.worktree_name()
            && state.branch.as_ref().is_none_or(|old| *old == branch)
    });

    let tree = match workspace {
        Some(workspace) => tree_left_by(repository, workspace)?,
        None => state_without_session(project)?,
    };
    snapshot::commit_of(&project.checkout(), tree, tip)
}

/// The tree that a turn left in the user's files: without its changes if it was not applied, and
/// without the conflicting ones otherwise.
fn tree_left_by(repository: &Repository, workspace: &Workspace) -> anyhow::Result<TreeId> {
    let tree = |id: CommitId| Ok::<_, anyhow::Error>(repository.commit(id)?.tree);
    if !workspace.synced {
        return tree(workspace.before);
    }

    let paths = workspace.overlaps.iter();
    let paths = paths.map(|path| path.as_bytes().to_vec()).collect();
    tree_without(repository, paths, [workspace.before, workspace.after])
}

fn tree_without(
    repository: &Repository,
    paths: Vec<Vec<u8>>,
    [before, after]: [CommitId; 2],
) -> anyhow::Result<TreeId> {
    let tree = repository.commit(after)?.tree;
    if paths.is_empty() {
        return Ok(tree);
    }

    let before = repository.commit(before)?.tree;
    let mut edits = BTreeMap::new();
    for path in paths {
        let entry = repository.entry(before, &path)?;
        edits.insert(path, entry);
    }
    crate::git::diff::tree_with(repository, tree, &edits)
}

/// The known state of the files without a session: HEAD, merged with the last publication.
pub(super) fn state_without_session(project: &Project) -> anyhow::Result<TreeId> {
    let repository = &project.repository;
    let head = refs::head(repository)?;
    let Some((id, publication)) = Stacks::new(repository).last()? else {
        return refs::head_tree(repository);
    };
    let applied = applied_tree(repository, id, &publication)?;
    let Some(head) = head else {
        return Ok(applied);
    };
    let Some(base) = revision::merge_base(repository, head, id)? else {
        return refs::head_tree(repository);
    };

    let base = repository.commit(base)?.tree;
    Ok(
        match merge_trees(repository, base, refs::head_tree(repository)?, applied)? {
            Merged::Clean(tree) => tree,
            // The commits in HEAD are newer than the publication.
            Merged::Overlap { ours, .. } => ours,
        },
    )
}

fn applied_tree(
    repository: &Repository,
    id: CommitId,
    publication: &Publication,
) -> anyhow::Result<TreeId> {
    match publication.change {
        Some(change) if publication.applied => {
            tree_without(repository, publication.left.clone(), [change.before, id])
        }
        Some(change) => Ok(repository.commit(change.before)?.tree),
        None => Ok(repository.commit(id)?.tree),
    }
}

/// Returns a commit with the files from the start of the work, plus what turns have applied since,
/// which is not part of the work.
pub(super) fn state_since(
    project: &Project,
    tip: &Turn,
    baseline: RecordStart,
) -> anyhow::Result<CommitId> {
    let repository = &project.repository;
    let stacks = Stacks::new(repository);
    let last = stacks.last()?;
    if last.as_ref().map(|(id, _)| *id) == baseline.published {
        return Ok(baseline.files);
    }

    let mut between = Vec::new();
    let mut next = stacks.current(tip)?.top;
    let start = baseline.published.map(PatchId::Published);
    while let Some(id) = next.filter(|id| Some(*id) != start && between.len() < MAX_TURNS_BETWEEN) {
        let patch = stacks.patch(id)?;
        between.push(patch.change);
        next = patch.base.top;
    }

    // A restore moved to another stack, or there are too many turns. Use the state after the last
    // publication.
    if next != start {
        let newest = last.map(|(id, publication)| applied_tree(repository, id, &publication));
        let Some(newest) = newest.transpose()? else {
            return Ok(baseline.files);
        };
        return snapshot::commit_of(&project.checkout(), newest, tip);
    }

    let tree = |id: CommitId| Ok::<_, anyhow::Error>(repository.commit(id)?.tree);
    let mut now = tree(baseline.files)?;
    for change in between.iter().rev() {
        now = match merge_trees(repository, tree(change.before)?, now, tree(change.after)?)? {
            Merged::Clean(tree) => tree,
            Merged::Overlap { theirs, .. } => theirs,
        };
    }
    snapshot::commit_of(&project.checkout(), now, tip)
}
