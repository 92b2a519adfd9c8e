//! Records the user's files as workspace commits and keeps them reachable.
//!
//! Every state that TeDDy might overwrite is recorded first. If `git gc` prunes objects meanwhile,
//! the snapshot is taken again.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::git::keep::hold;
use crate::git::keep::hold::Older;
use crate::git::keep::pack::keep;
use crate::git::object::batch;
use crate::git::object::{Commit, CommitId, NewCommit, TreeId};
use crate::git::refs::{self, Expected};
use crate::git::repository::Repository;
use crate::git::revision;
use crate::git::snapshot;
use crate::git::snapshot::Snapshot;
use crate::git::snapshot::limits::Forced;
use crate::git::snapshot::paths;
use crate::git::snapshot::untracked;
use crate::host::{clock, fault};
use crate::session::draft::Draft;
use crate::session::meta::NotCaptured;
use crate::session::turn::Turn;
use crate::workspace::Checkout;
use crate::workspace::kept;
use crate::workspace::kept::kept;
use crate::workspace::notice::{FilesNotice, Tell};

const MAX_RECORDS: u32 = 4;
/// Workspace commits of a session whose objects count as reachable: of the last turn, of the one
/// before, and the one from which this turn started. An undo usually returns to one of these.
const MAX_REACHED: usize = 3;
/// Subject of the commits that chain workspace commits under `refs/teddy/snapshots`.
pub const KEEPER: &str = "Snapshots of the workspace";

/// The recorded state of the user's files.
#[derive(Debug, Clone)]
pub struct RecordedFiles {
    /// The workspace commit; a ref reaches it.
    pub commit: CommitId,
    /// Its tree.
    pub tree: TreeId,
    /// Files that the snapshot leaves out.
    pub not_captured: Vec<NotCaptured>,
    /// When the scan of the files ended.
    pub seen: Instant,
    /// How long the scan took.
    pub took: Duration,
}

/// Bounds for how long a snapshot counts as fresh.
const BLINK: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// Above this, a snapshot is cheaper than reading the paths one by one.
const FEW_PATHS: usize = 100;

impl RecordedFiles {
    /// Wraps an existing workspace commit.
    pub fn of(repository: &Repository, commit: CommitId) -> anyhow::Result<RecordedFiles> {
        Ok(RecordedFiles {
            commit,
            tree: repository.commit(commit)?.tree,
            not_captured: Vec::new(),
            seen: Instant::now(),
            took: Duration::ZERO,
        })
    }

    /// Returns `true` if the scan is so recent that another would not be more exact.
    pub fn is_fresh(&self) -> bool {
        // Files can change during a scan as well. Within the time of one, a second scan tells no
        // more than the first. Overwritten paths are compared one by one in any case.
        self.seen.elapsed() < self.took.clamp(BLINK[0], BLINK[1])
    }

    /// Returns `true` if the files at these paths are known to be as recorded. `false` also if
    /// there are too many to check.
    pub fn still_has(&self, repository: &Repository, paths: &[Vec<u8>]) -> bool {
        paths.len() <= FEW_PATHS && paths::are_as_in(repository, self.tree, paths).unwrap_or(false)
    }
}

/// The files that a snapshot leaves out, with the reason.
pub fn not_captured(snapshot: &Snapshot) -> Vec<NotCaptured> {
    snapshot
        .left_out
        .iter()
        .map(|left| NotCaptured {
            path: left.path.clone(),
            reason: left.reason.to_string(),
        })
        .collect()
}

/// The files in `left` that have not been reported before.
pub fn newly_left_out(told: &[&Vec<NotCaptured>], left: &[NotCaptured]) -> Vec<NotCaptured> {
    let known = |file: &NotCaptured| (file.path.clone(), file.reason.clone());
    let told: HashSet<_> = told.iter().copied().flatten().map(known).collect();
    let is_new = |file: &&NotCaptured| !told.contains(&known(file));
    left.iter().filter(is_new).cloned().collect()
}

/// Starts reading the index in the background, ahead of a snapshot.
pub fn expect(checkout: &Checkout<'_>) {
    let repository = checkout.repository;
    let index = checkout.index(&repository.worktree_name());
    snapshot::expect(repository, &index);
}

/// Takes a snapshot of the user's files. `force` lists paths to include despite the ignore rules.
pub fn snapshot(checkout: &Checkout<'_>, force: &[Vec<u8>]) -> anyhow::Result<Snapshot> {
    let repository = checkout.repository;
    let index = checkout.index(&repository.worktree_name());
    let force = forced(checkout, force)?;
    let taken = snapshot::snapshot(repository, &index, &checkout.limits, &force)?;
    let missed = kept::missed(repository, taken.tree)?;
    if missed.is_empty() {
        return Ok(taken);
    }
    let force = [force, missed].concat();
    snapshot::snapshot(repository, &index, &checkout.limits, &force)
}

/// Returns what a snapshot takes whatever the rules say: these paths, and what turns made.
fn forced(checkout: &Checkout<'_>, paths: &[Vec<u8>]) -> anyhow::Result<Vec<Forced>> {
    let paths = paths.iter().cloned().map(Forced::new);
    Ok(paths.chain(kept(checkout.repository)?).collect())
}

/// Reports what a snapshot includes or leaves out unexpectedly: once per session the number of
/// untracked files, and each left-out file the first time.
pub fn tell_captured(
    checkout: &Checkout<'_>,
    tip: &Turn,
    draft: &mut Draft,
    recorded: &RecordedFiles,
    tell: &mut Tell<'_>,
) -> anyhow::Result<()> {
    if tip.number() == 0 && draft.commit.is_none() {
        let index = checkout.index(&checkout.repository.worktree_name());
        let untracked = untracked::untracked(checkout.repository, &index, recorded.tree)?;
        if untracked > 0 {
            tell(FilesNotice::UntrackedCaptured(untracked));
        }
    }

    let known = [&tip.meta.not_captured, &draft.meta.not_captured];
    let new = newly_left_out(&known, &recorded.not_captured);
    if !new.is_empty() {
        tell(FilesNotice::NotCaptured(new));
    }

    draft.meta.not_captured.clone_from(&recorded.not_captured);
    Ok(())
}

/// Records the user's files as a workspace commit and makes it reachable. The caller holds the
/// lock.
pub(super) fn record(
    checkout: &Checkout<'_>,
    tip: &Turn,
    force: &[Vec<u8>],
) -> anyhow::Result<RecordedFiles> {
    fault::point("before-record")?;
    // Before the scan, which includes the files that are still listed.
    kept::forget_removed(checkout.repository)?;
    for _ in 0..MAX_RECORDS {
        let began = Instant::now();
        let index = checkout.index(&checkout.repository.worktree_name());
        let force = forced(checkout, force)?;
        let take = |force: &[Forced]| {
            snapshot::staged_snapshot(checkout.repository, &index, &checkout.limits, force)
        };
        let mut snapshot = take(&force)?;
        let missed = kept::missed(checkout.repository, snapshot.tree)?;
        if !missed.is_empty() {
            kept::keep(checkout.repository, &missed)?;
            snapshot
                .keep
                .take()
                .map_or(Ok(()), |keep| keep::release(&keep))?;
            let force = [force.clone(), missed].concat();
            snapshot = take(&force)?;
        }
        let took = began.elapsed();
        let commit = place(checkout.repository, snapshot.tree, tip)?;

        // The session's ref reaches the result of its newest turn.
        let is_reached = Some(commit) == tip.workspace
            && refs::read(checkout.repository, &kept_reference(checkout.repository))?.is_some();
        let reached = reached(checkout.repository, tip.workspace);
        if is_reached || keep(checkout, commit, &reached)? {
            hold::restore_staged(checkout.repository)?;
            fault::point("after-snapshot-ref")?;
            let not_captured = not_captured(&snapshot);
            snapshot.keep.map_or(Ok(()), |keep| keep::release(&keep))?;
            return Ok(RecordedFiles {
                commit,
                tree: snapshot.tree,
                not_captured,
                seen: began + took,
                took,
            });
        }

        // `git gc` pruned objects that existed when they were scanned, before a ref reached them.
        // Read everything again.
        snapshot::forget(checkout.repository, &index);
    }

    anyhow::bail!(
        "`git gc` removes objects as fast as they are written; try again when it has ended"
    )
}

/// Returns a reachable workspace commit with this tree: HEAD, the newest turn's, or a new one.
pub fn commit_of(checkout: &Checkout<'_>, tree: TreeId, tip: &Turn) -> anyhow::Result<CommitId> {
    let repository = checkout.repository;
    let commit = place(repository, tree, tip)?;
    if [refs::head(repository)?, tip.workspace].contains(&Some(commit)) {
        return Ok(commit);
    }

    let is_kept = keep(checkout, commit, &reached(repository, tip.workspace))?;
    anyhow::ensure!(
        is_kept,
        "`git gc` removed objects while they were recorded; nothing was changed, try again"
    );
    Ok(commit)
}

/// Returns a commit with this tree: HEAD, the newest workspace commit, or a new one on top of them.
fn place(repository: &Repository, tree: TreeId, tip: &Turn) -> anyhow::Result<CommitId> {
    let (head, last) = (refs::head(repository)?, tip.workspace);
    for known in [head, last].into_iter().flatten() {
        if repository.commit(known)?.tree == tree {
            return Ok(known);
        }
    }

    let parents = match (head, last) {
        (Some(head), Some(last)) if revision::is_ancestor(repository, head, last)? => vec![last],
        (head, last) => head.into_iter().chain(last).collect(),
    };
    let message = format!(
        "Workspace before turn {} of {}\n",
        tip.number() + 1,
        tip.session
    );
    repository.stage_commit(&NewCommit {
        tree,
        parents: &parents,
        message: &message,
        time: &clock::now(),
    })
}

/// Keeps a workspace commit and all earlier ones reachable, so that overwritten content stays
/// available until `teddy gc` expires it. `reached` lists trees that need no protection from `git
/// gc`.
///
/// Returns `false` if `git gc` removed an object.
pub fn keep(checkout: &Checkout<'_>, commit: CommitId, reached: &[TreeId]) -> anyhow::Result<bool> {
    let (name, repository) = (kept_reference(checkout.repository), checkout.repository);
    let old = refs::read(repository, &name)?;
    let new = match old {
        // Already the newest.
        Some(old) if old == commit || repository.commit(old)?.parents.first() == Some(&commit) => {
            return Ok(true);
        }
        Some(old) => {
            let Ok(Commit { tree, .. }) = repository.commit(commit) else {
                return Ok(false);
            };
            let message = format!("{KEEPER}\n");
            repository.stage_commit(&NewCommit {
                tree,
                parents: &[commit, old],
                message: &message,
                time: &clock::now(),
            })?
        }
        None => commit,
    };

    let head = refs::head(repository)?;
    let unreached: Vec<_> = [commit, new]
        .into_iter()
        .filter(|id| Some(*id) != head)
        .collect();
    let whole = [
        reached,
        &[
            kept_tree(checkout.repository)?,
            refs::head_tree(repository)?,
        ],
    ]
    .concat();
    let Some(held) = hold::hold(repository, &unreached, &whole, Older::Stay)? else {
        return Ok(false);
    };

    fault::point("before-snapshot-ref")?;
    let expected = old.map_or(Expected::Absent, Expected::At);
    refs::move_to(repository, (&name, expected), new, "teddy: snapshot")?;
    hold::settle(repository, &held)?;
    Ok(true)
}

/// Trees of the workspace commits that a session's ref reaches, newest first.
pub fn reached(repository: &Repository, workspace: Option<CommitId>) -> Vec<TreeId> {
    let read = |id: CommitId| repository.commit(id).ok();
    let commits = std::iter::successors(workspace.and_then(read), |commit| {
        read(*commit.parents.first()?)
    });
    commits
        .take(MAX_REACHED)
        .map(|commit| commit.tree)
        .collect()
}

/// The ref that keeps the workspace commits of this checkout.
pub fn kept_reference(repository: &Repository) -> String {
    format!("refs/teddy/snapshots/{}", repository.worktree_name())
}

/// The newest kept tree, or that of HEAD.
pub fn kept_tree(repository: &Repository) -> anyhow::Result<TreeId> {
    match refs::read(repository, &kept_reference(repository))? {
        Some(commit) => repository.commit(commit).map(|commit| commit.tree),
        None => refs::head_tree(repository),
    }
}

/// Returns a workspace commit with this tree on `base`, or `base` itself if nothing changed.
pub fn advance(
    repository: &Repository,
    base: CommitId,
    tree: TreeId,
    message: &str,
) -> anyhow::Result<CommitId> {
    if repository.commit(base)?.tree == tree {
        return Ok(base);
    }

    // Only staged: the caller protects it before a ref points at it.
    let batch = batch::batch(repository);
    let commit = batch.commit(&NewCommit {
        tree,
        parents: &[base],
        message,
        time: &clock::now(),
    })?;

    batch.stage()?;
    Ok(commit)
}
