//! Whether HEAD contains a turn, also if it was committed by hand together with edits.

use std::collections::BTreeSet;

use anyhow::Context as _;

use crate::git::history::{is_ancestor, merge_base};
use crate::git::merge::merge_in_memory;
use crate::git::object::{CommitId, TreeId};
use crate::git::refs::{self, LogEntry};
use crate::git::repository::Repository;
use crate::project::Project;
use crate::session::turn::Turn;
use crate::workspace::file_move::trees_of;
use crate::workspace::snapshot;

/// Limit on the commits since a turn that are searched.
const MAX_COMMITS_BACK: usize = 1000;

/// Returns whether a tree has what a turn did to some files, with edits of the user's on top: each is
/// the same there as in a later turn that no restore separates from it, or in the user's files, if
/// the user has committed it since.
pub fn is_contained(
    project: &Project,
    tip: &Turn,
    turn: &Turn,
    paths: &[Vec<u8>],
    tree: TreeId,
    compares_files: bool,
) -> anyhow::Result<bool> {
    if paths.is_empty() {
        return Ok(true);
    }
    let repository = &project.repository;
    let mut missing: BTreeSet<&[u8]> = paths.iter().map(Vec::as_slice).collect();
    // What git can have put there, as by a pull, says nothing about the turn.
    let (mut uncertain, mut tree) = (BTreeSet::new(), tree);
    if let Some(head) = refs::head(repository)?.filter(|_| compares_files) {
        for path in committed_with(repository, turn, head, &missing)? {
            missing.remove(path);
        }
        uncertain = missing.clone();
        if ran_on_branch(repository, turn)? {
            for path in committed_by_user(repository, turn, head, &missing)? {
                uncertain.remove(path);
            }
        }
        tree = repository.commit(head)?.tree;
        let entries = repository.entries_at(tree, &missing)?;
        let now = snapshot::snapshot(&project.checkout(), &[])?.tree;
        let now = repository.entries_at(now, &missing)?;
        missing.retain(|path| now.get(path) != entries.get(path) || uncertain.contains(path));
        if missing.is_empty() {
            return Ok(true);
        }
    }

    let entries = repository.entries_at(tree, &missing)?;
    let (number, mut later) = (turn.number(), Vec::new());
    for turn in project.store().history(tip.clone()) {
        let turn = turn?;
        if turn.number() <= number {
            break;
        }
        later.push(turn);
    }
    let later = later.iter().rev();
    for turn in later.take_while(|turn| turn.meta.restored.is_none()) {
        let Some(workspace) = &turn.meta.workspace else {
            continue;
        };
        let at = |commit| repository.entries_at(repository.commit(commit)?.tree, &missing);
        let [before, after] = [at(workspace.before)?, at(workspace.after)?];
        missing.retain(|path| {
            let [old, new] = [before.get(path), after.get(path)];
            let there = entries.get(path);
            let is_of_turn = new == there && old != new;
            !is_of_turn && (uncertain.contains(path) || (old != there && new != there))
        });
        if missing.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the branch of the turn is still checked out.
fn ran_on_branch(repository: &Repository, turn: &Turn) -> anyhow::Result<bool> {
    let branch = refs::branch_or_head(repository)?;
    let files = turn.meta.workspace.as_ref();
    Ok(files.is_some_and(|files| files.branch.as_ref().is_none_or(|old| *old == branch)))
}

/// The files with a version, committed since a turn, into which merging the turn changes nothing.
fn committed_with<'p>(
    repository: &Repository,
    turn: &Turn,
    head: CommitId,
    paths: &BTreeSet<&'p [u8]>,
) -> anyhow::Result<BTreeSet<&'p [u8]>> {
    let files = turn.meta.workspace.as_ref().context("it has files")?;
    let [before, after] = trees_of(repository, files.change())?;
    let base = merge_base(repository, head, files.before)?;
    let (mut with_turn, mut next) = (BTreeSet::new(), Some(head));
    for _ in 0..MAX_COMMITS_BACK {
        let missing: BTreeSet<&[u8]> = paths.difference(&with_turn).copied().collect();
        // A shallow clone has commits without their parents.
        let commit = next.filter(|id| Some(*id) != base && !missing.is_empty());
        let Some(commit) = commit.and_then(|id| repository.commit(id).ok()) else {
            break;
        };
        next = commit.parents.first().copied();
        let parent = next.and_then(|id| repository.commit(id).ok());
        let old = parent.map(|parent| repository.entries_at(parent.tree, &missing));
        let old = old.transpose()?.unwrap_or_default();
        let new = repository.entries_at(commit.tree, &missing)?;
        if old == new {
            continue;
        }
        let merged = merge_in_memory(repository, before, commit.tree, after)?;
        let merged_entries = repository.entries_at(merged.ours, &missing)?;
        let has_turn = missing.iter().filter(|path| {
            let is_clean = merged.paths.iter().all(|other| other != *path);
            is_clean && new.contains_key(*path) && merged_entries.get(*path) == new.get(*path)
        });
        with_turn.extend(has_turn);
    }
    Ok(with_turn)
}

/// The files that a commit made in this checkout was the first to change in HEAD since a turn, with
/// what they had then. After any other change, such as a pull, they have what git wrote.
fn committed_by_user<'p>(
    repository: &Repository,
    turn: &Turn,
    head: CommitId,
    paths: &BTreeSet<&'p [u8]>,
) -> anyhow::Result<BTreeSet<&'p [u8]>> {
    let files = turn.meta.workspace.as_ref().context("it has files")?;
    let of_head = refs::log(repository, "HEAD")?;
    let log = match refs::branch(repository)? {
        Some(branch) => refs::log(repository, &format!("refs/heads/{branch}"))?,
        None => of_head.clone(),
    };
    let is_earlier = |entry: &LogEntry| is_ancestor(repository, entry.commit, files.before);
    let mut since = log.iter().take(MAX_COMMITS_BACK);
    let begin = since.position(|entry| is_earlier(entry).unwrap_or(false));
    let Some(log) = begin.and_then(|begin| log.get(..=begin)) else {
        return Ok(BTreeSet::new());
    };
    let is_kept = |commit| is_ancestor(repository, commit, head).unwrap_or(false);
    let (mut waiting, mut by_user) = (paths.clone(), BTreeSet::new());
    for moved in log.windows(2).rev() {
        let [new, old] = moved else { continue };
        // It left the files as they were.
        if new.action == "teddy land" {
            continue;
        }
        let at = |commit| repository.entries_at(repository.commit(commit)?.tree, &waiting);
        let (Ok(old), Ok(entries)) = (at(old.commit), at(new.commit)) else {
            break;
        };
        let mut changed = waiting.clone();
        changed.retain(|path| old.get(path) != entries.get(path));
        waiting.retain(|path| !changed.contains(path));
        let is_commit = new.action.starts_with("commit") && new.action != "commit (merge)";
        // A rebase makes copies.
        let is_copy = |entry: &LogEntry| {
            let is_picked = entry.action.contains("rebase") && entry.subject == new.subject;
            is_picked && is_kept(entry.commit)
        };
        if is_commit && (is_kept(new.commit) || of_head.iter().any(is_copy)) {
            changed.retain(|path| entries.contains_key(path));
            by_user.extend(changed);
        }
    }
    Ok(by_user)
}
