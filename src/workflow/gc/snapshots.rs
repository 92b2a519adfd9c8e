//! Expires old workspace snapshots that no turn references.

use anyhow::Context as _;

use crate::git::keep::durable;
use crate::git::keep::hold;
use crate::git::keep::hold::Older;
use crate::git::object::{CommitId, NewCommit};
use crate::git::refs::{self, Expected, Reference};
use crate::git::repository::Repository;
use crate::host::{clock, fault};
use crate::workspace::snapshot::KEEPER;

#[derive(Debug)]
pub(super) struct AgedSnapshots {
    reference: Reference,
    /// Remaining snapshots, newest first.
    kept: Vec<CommitId>,
    pub(super) old: usize,
}

pub(super) fn aged(repository: &Repository, days: u32) -> anyhow::Result<Vec<AgedSnapshots>> {
    let oldest = clock::now().timestamp().as_second() - i64::from(days) * 24 * 60 * 60;
    let mut found = Vec::new();
    for reference in refs::list(repository, "refs/teddy/snapshots/")? {
        let mut kept: Vec<CommitId> = Vec::new();
        let (mut at, mut old) = (Some(reference.target), 0);
        while let Some(id) = at {
            let commit = repository.commit(id)?;
            let keeper = commit.message.trim_end() == KEEPER;
            // The newest snapshot is the last recorded state of the files, whatever its age.
            let stays = kept.is_empty() || commit.seconds >= oldest;
            if stays {
                kept.extend(if keeper {
                    commit.parents.first().copied()
                } else {
                    Some(id)
                })
            } else {
                old += 1
            }

            at = commit.parents.get(1).copied().filter(|_| keeper);
        }

        if old > 0 {
            found.push(AgedSnapshots {
                reference,
                kept,
                old,
            });
        }
    }

    Ok(found)
}

pub(super) fn forget(repository: &Repository, aged: &[AgedSnapshots]) -> anyhow::Result<()> {
    aged.iter()
        .try_for_each(|one| move_to(repository, &one.reference, &chain(repository, &one.kept)?))
}

/// Rebuilds the chain of keeper commits from the remaining snapshots, given newest first.
fn chain(repository: &Repository, kept: &[CommitId]) -> anyhow::Result<Vec<CommitId>> {
    let (mut kept, message) = (kept.iter().rev(), format!("{KEEPER}\n"));
    let mut tip = *kept.next().context("the newest snapshot is always kept")?;
    let mut made = vec![tip];
    for &commit in kept {
        let tree = repository.commit(commit)?.tree;
        tip = repository.stage_commit(&NewCommit {
            tree,
            parents: &[commit, tip],
            message: &message,
            time: &clock::now(),
        })?;
        made.push(tip);
    }

    Ok(made)
}

fn move_to(
    repository: &Repository,
    reference: &Reference,
    made: &[CommitId],
) -> anyhow::Result<()> {
    let trees = made
        .iter()
        .map(|&commit| Ok(repository.commit(commit)?.tree))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let held = hold::hold(repository, made, &trees, Older::Stay)?;
    let held = held.context(
        "`git gc` removed objects while they were written; nothing was forgotten, try again",
    )?;

    // Moving the ref makes the old commits unreachable, so the new ones must be durable first.
    durable::flush(repository)?;
    fault::point("before-snapshot-ref")?;
    let tip = *made.last().context("the newest snapshot is always kept")?;
    refs::move_to(
        repository,
        (&reference.name, Expected::At(reference.target)),
        tip,
        "teddy: gc",
    )?;

    hold::settle(repository, &held)
}
