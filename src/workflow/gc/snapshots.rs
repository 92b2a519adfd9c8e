//! Expires old workspace snapshots that no turn references.

use anyhow::Context as _;

use crate::git::keep::durable;
use crate::git::keep::protect;
use crate::git::keep::protect::MergePolicy;
use crate::git::object::{CommitId, NewCommit};
use crate::git::refs::{self, Expected, Reference};
use crate::git::repository::Repository;
use crate::host::{clock, fault};
use crate::workspace::snapshot::KEEPER;

#[derive(Debug)]
pub(super) struct AgedSnapshots {
    reference: Reference,
    /// Remaining snapshots, newest first.
    retained: Vec<CommitId>,
    pub(super) old: usize,
}

pub(super) fn find_aged_snapshots(
    repository: &Repository,
    days: u32,
) -> anyhow::Result<Vec<AgedSnapshots>> {
    let oldest = clock::now().timestamp().as_second() - i64::from(days) * 24 * 60 * 60;
    let mut snapshots = Vec::new();
    for reference in refs::list(repository, "refs/teddy/snapshots/")? {
        let mut retained: Vec<CommitId> = Vec::new();
        let (mut at, mut old) = (Some(reference.target), 0);
        while let Some(id) = at {
            let commit = repository.commit(id)?;
            let keeper = commit.message.trim_end() == KEEPER;
            // The newest snapshot is the last recorded state of the files, whatever its age.
            let stays = retained.is_empty() || commit.seconds >= oldest;
            if stays {
                retained.extend(if keeper {
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
            snapshots.push(AgedSnapshots {
                reference,
                retained,
                old,
            });
        }
    }

    Ok(snapshots)
}

pub(super) fn forget_snapshots(
    repository: &Repository,
    aged: &[AgedSnapshots],
) -> anyhow::Result<()> {
    aged.iter().try_for_each(|one| {
        move_snapshot_ref(
            repository,
            &one.reference,
            &rebuild_chain(repository, &one.retained)?,
        )
    })
}

/// Rebuilds the chain of keeper commits from the remaining snapshots, given newest first.
fn rebuild_chain(repository: &Repository, retained: &[CommitId]) -> anyhow::Result<Vec<CommitId>> {
    let (mut remaining, message) = (retained.iter().rev(), format!("{KEEPER}\n"));
    let mut tip = *remaining
        .next()
        .context("the newest snapshot is always kept")?;
    let mut commits = vec![tip];
    for &commit in remaining {
        let tree = repository.commit(commit)?.tree;
        tip = repository.stage_commit(&NewCommit {
            tree,
            parents: &[commit, tip],
            message: &message,
            time: &clock::now(),
        })?;
        commits.push(tip);
    }

    Ok(commits)
}

fn move_snapshot_ref(
    repository: &Repository,
    reference: &Reference,
    commits: &[CommitId],
) -> anyhow::Result<()> {
    let trees = commits
        .iter()
        .map(|&commit| Ok(repository.commit(commit)?.tree))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let protected = protect::protect_commits(repository, commits, &trees, MergePolicy::Separate)?;
    let protected = protected.context(
        "`git gc` removed objects while they were written; nothing was forgotten, try again",
    )?;

    // Moving the ref makes the old commits unreachable, so the new ones must be durable first.
    durable::flush(repository)?;
    fault::point("before-snapshot-ref")?;
    let tip = *commits
        .last()
        .context("the newest snapshot is always kept")?;
    refs::move_to(
        repository,
        (&reference.name, Expected::At(reference.target)),
        tip,
        "teddy: gc",
    )?;

    protect::release_protected(repository, &protected)
}
