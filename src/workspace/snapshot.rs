//! Records the user's files as workspace commits and keeps them reachable.
//!
//! Every state that TeDDy might overwrite is recorded first. If `git gc` prunes objects meanwhile,
//! the snapshot is taken again, up to `MAX_RECORDS` times. Ignored, large and secret files are left
//! out and reported.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::git::history;
use crate::git::keep::pack::keep;
use crate::git::keep::protect::{self, MergePolicy};
use crate::git::object::{Commit, CommitId, NewCommit, TreeId};
use crate::git::refs::{self, Expected};
use crate::git::repository::Repository;
use crate::git::snapshot::{self, Snapshot, known_files};

use crate::git::snapshot::limits::Forced;
use crate::host::{clock, fault};
use crate::session::draft::Draft;
use crate::session::meta::NotCaptured;
use crate::session::turn::Turn;
use crate::workspace::Checkout;
use crate::workspace::forced_files::{self, read_forced};
use crate::workspace::notice::{FilesNotice, Notify};

const MAX_RECORDS: u32 = 4;
/// Workspace commits of a session that count as reachable. An undo usually returns to one of them.
const MAX_REACHED: usize = 3;
/// Subject of the commits that chain workspace commits under `refs/teddy/snapshots`.
pub const KEEPER: &str = "Snapshots of the workspace";

#[derive(Debug, Clone)]
pub struct RecordedFiles {
    /// A ref reaches it.
    pub commit: CommitId,
    pub tree: TreeId,
    pub not_captured: Vec<NotCaptured>,
    pub scanned_at: Instant,
    pub took: Duration,
    /// Recorded by an earlier command: the user's files can differ by now.
    pub is_earlier: bool,
}

/// Bounds for how long a snapshot counts as fresh.
const BLINK: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// Above this, a snapshot is cheaper than reading the paths one by one.
const FEW_PATHS: usize = 100;

impl RecordedFiles {
    pub fn of(repository: &Repository, commit: CommitId) -> anyhow::Result<RecordedFiles> {
        Ok(RecordedFiles {
            commit,
            tree: repository.commit(commit)?.tree,
            not_captured: Vec::new(),
            scanned_at: Instant::now(),
            took: Duration::ZERO,
            is_earlier: true,
        })
    }

    /// Another scan would not be more exact.
    pub fn is_fresh(&self) -> bool {
        // Files can change during a scan as well. Within the time of one, a second scan tells no
        // more than the first. Overwritten paths are compared one by one in any case.
        self.scanned_at.elapsed() < self.took.clamp(BLINK[0], BLINK[1])
    }

    /// `false` also if there are too many paths to check.
    pub fn still_has(&self, repository: &Repository, paths: &[Vec<u8>]) -> bool {
        paths.len() <= FEW_PATHS
            && snapshot::are_paths_unchanged(repository, self.tree, paths).unwrap_or(false)
    }
}

pub fn not_captured(snapshot: &Snapshot) -> Vec<NotCaptured> {
    snapshot
        .left_out
        .iter()
        .map(|file| NotCaptured {
            path: file.path.clone(),
            reason: file.reason.to_string(),
        })
        .collect()
}

pub fn newly_left_out(
    reported: &[&Vec<NotCaptured>],
    excluded: &[NotCaptured],
) -> Vec<NotCaptured> {
    let key = |file: &NotCaptured| (file.path.clone(), file.reason.clone());
    let reported: HashSet<_> = reported.iter().copied().flatten().map(key).collect();
    let is_new = |file: &&NotCaptured| !reported.contains(&key(file));
    excluded.iter().filter(is_new).cloned().collect()
}

/// `force` lists paths to include despite the ignore rules.
pub fn snapshot(checkout: &Checkout<'_>, force: &[Vec<u8>]) -> anyhow::Result<Snapshot> {
    let repository = checkout.repository;
    let index = checkout.index(&repository.worktree_name());
    let force = forced(checkout, force)?;
    let snapshot = snapshot::take_snapshot(repository, &index, &checkout.limits, &force)?;
    // Rules that came after a turn can hide its files, which would then look deleted.
    let missing = forced_files::find_missing(repository, snapshot.tree)?;
    if missing.is_empty() {
        return Ok(snapshot);
    }
    let force = [force, missing].concat();
    snapshot::take_snapshot(repository, &index, &checkout.limits, &force)
}

fn forced(checkout: &Checkout<'_>, paths: &[Vec<u8>]) -> anyhow::Result<Vec<Forced>> {
    let paths = paths.iter().cloned().map(Forced::new);
    Ok(paths.chain(read_forced(checkout.repository)?).collect())
}

/// Reports what a snapshot includes or leaves out unexpectedly: once per session the number of
/// untracked files, and each left-out file the first time.
pub fn report_captured(
    checkout: &Checkout<'_>,
    tip: &Turn,
    draft: &mut Draft,
    recorded: &RecordedFiles,
    notify: &mut Notify<'_>,
) -> anyhow::Result<()> {
    if tip.number() == 0 && draft.commit.is_none() {
        let index = checkout.index(&checkout.repository.worktree_name());
        let untracked = known_files::count_untracked(checkout.repository, &index, recorded.tree)?;
        if untracked > 0 {
            notify(FilesNotice::UntrackedCaptured(untracked));
        }
    }

    let reported = [&tip.meta.not_captured, &draft.meta.not_captured];
    let new = newly_left_out(&reported, &recorded.not_captured);
    if !new.is_empty() {
        notify(FilesNotice::NotCaptured(new));
    }

    draft.meta.not_captured.clone_from(&recorded.not_captured);
    Ok(())
}

/// The caller holds the lock.
pub(super) fn record(
    checkout: &Checkout<'_>,
    tip: &Turn,
    force: &[Vec<u8>],
) -> anyhow::Result<RecordedFiles> {
    fault::point("before-record")?;
    // Before the scan, which includes the files that are still listed.
    forced_files::forget_removed(checkout.repository)?;
    for _ in 0..MAX_RECORDS {
        let began = Instant::now();
        let index = checkout.index(&checkout.repository.worktree_name());
        let force = forced(checkout, force)?;
        let take = |force: &[Forced]| {
            snapshot::staged_snapshot(checkout.repository, &index, &checkout.limits, force)
        };
        let mut snapshot = take(&force)?;
        let missing = forced_files::find_missing(checkout.repository, snapshot.tree)?;
        if !missing.is_empty() {
            forced_files::keep(checkout.repository, &missing)?;
            // The first scan's objects are scanned again and protected by the second.
            snapshot
                .keep
                .take()
                .map_or(Ok(()), |keep| keep::release(&keep))?;
            let force = [force.clone(), missing].concat();
            snapshot = take(&force)?;
        }
        let took = began.elapsed();
        let commit = find_or_stage_commit(checkout.repository, snapshot.tree, tip)?;

        // The session's ref reaches the result of its newest turn.
        let is_reached = Some(commit) == tip.workspace
            && refs::read(checkout.repository, &kept_reference(checkout.repository))?.is_some();
        let reachable = reachable_trees(checkout.repository, tip.workspace);
        if is_reached || keep(checkout, commit, &reachable)? {
            protect::restore_staged(checkout.repository)?;
            fault::point("after-snapshot-ref")?;
            let not_captured = not_captured(&snapshot);
            snapshot.keep.map_or(Ok(()), |keep| keep::release(&keep))?;
            return Ok(RecordedFiles {
                commit,
                tree: snapshot.tree,
                not_captured,
                scanned_at: began + took,
                took,
                is_earlier: false,
            });
        }

        // `git gc` pruned objects that existed when they were scanned, before a ref reached them.
        // Read everything again.
        snapshot::forget_snapshot(checkout.repository, &index);
    }

    anyhow::bail!(
        "`git gc` removes objects as fast as they are written; try again when it has ended"
    )
}

/// Records the user's files without a session. The caller holds the lock.
pub fn record_alone(checkout: &Checkout<'_>) -> anyhow::Result<CommitId> {
    let repository = checkout.repository;
    let tree = snapshot(checkout, &[])?.tree;
    let head = refs::head(repository)?;
    if let Some(head) = head
        && repository.commit(head)?.tree == tree
    {
        return Ok(head);
    }

    let commit = repository.stage_commit(&NewCommit {
        tree,
        parents: head.as_slice(),
        message: "Workspace before a recording\n",
        time: &clock::now(),
    })?;
    let is_kept = keep(checkout, commit, &[])?;
    anyhow::ensure!(
        is_kept,
        "`git gc` removed objects while they were recorded; nothing was changed, try again"
    );
    Ok(commit)
}

/// Returns a reachable workspace commit with this tree: HEAD, the newest turn's, or a new one.
pub fn commit_of(checkout: &Checkout<'_>, tree: TreeId, tip: &Turn) -> anyhow::Result<CommitId> {
    let repository = checkout.repository;
    let commit = find_or_stage_commit(repository, tree, tip)?;
    if [refs::head(repository)?, tip.workspace].contains(&Some(commit)) {
        return Ok(commit);
    }

    let is_kept = keep(
        checkout,
        commit,
        &reachable_trees(repository, tip.workspace),
    )?;
    anyhow::ensure!(
        is_kept,
        "`git gc` removed objects while they were recorded; nothing was changed, try again"
    );
    Ok(commit)
}

/// HEAD, the newest workspace commit, or a new commit on top of them.
fn find_or_stage_commit(
    repository: &Repository,
    tree: TreeId,
    tip: &Turn,
) -> anyhow::Result<CommitId> {
    let (head, last) = (refs::head(repository)?, tip.workspace);
    for candidate in [head, last].into_iter().flatten() {
        if repository.commit(candidate)?.tree == tree {
            return Ok(candidate);
        }
    }

    let parents = match (head, last) {
        (Some(head), Some(last)) if history::is_ancestor(repository, head, last)? => vec![last],
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

/// Keeps a workspace commit and all earlier ones reachable, until `teddy gc` expires them. Trees in
/// `reachable` need no protection from `git gc`. Returns `false` if `git gc` removed an object.
pub fn keep(
    checkout: &Checkout<'_>,
    commit: CommitId,
    reachable: &[TreeId],
) -> anyhow::Result<bool> {
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
    let trees = [
        reachable,
        &[
            kept_tree(checkout.repository)?,
            refs::head_tree(repository)?,
        ],
    ]
    .concat();
    let Some(protected) =
        protect::protect_commits(repository, &unreached, &trees, MergePolicy::Separate)?
    else {
        return Ok(false);
    };

    fault::point("before-snapshot-ref")?;
    let expected = old.map_or(Expected::Absent, Expected::At);
    refs::move_to(repository, &name, expected, new, "teddy: snapshot")?;
    protect::release_protected(repository, &protected)?;
    Ok(true)
}

pub fn reachable_trees(repository: &Repository, workspace: Option<CommitId>) -> Vec<TreeId> {
    let read = |id: CommitId| repository.commit(id).ok();
    let commits = std::iter::successors(workspace.and_then(read), |commit| {
        read(*commit.parents.first()?)
    });
    commits
        .take(MAX_REACHED)
        .map(|commit| commit.tree)
        .collect()
}

pub fn kept_reference(repository: &Repository) -> String {
    format!("refs/teddy/snapshots/{}", repository.worktree_name())
}

pub fn kept_tree(repository: &Repository) -> anyhow::Result<TreeId> {
    match refs::read(repository, &kept_reference(repository))? {
        Some(commit) => repository.commit(commit).map(|commit| commit.tree),
        None => refs::head_tree(repository),
    }
}

/// Returns `base` itself if it has this tree already.
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
    repository.stage_commit(&NewCommit {
        tree,
        parents: &[base],
        message,
        time: &clock::now(),
    })
}
