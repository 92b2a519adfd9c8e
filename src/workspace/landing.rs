//! Moves a branch of the user's together with a turn, and finishes such a move after a crash.

use std::path::PathBuf;

use crate::git::keep::durable;
use crate::git::keep::store_access::is_lost;
use crate::git::land::index::{self, NewIndex};
use crate::git::land::{branch, scratch};
use crate::git::refs::{self, Expected, MoveError};
use crate::git::repository::Repository;
use crate::git::revision;
use crate::host::fault;
use crate::session::journal::{BranchMove, Pending};
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::workspace::Checkout;
use crate::workspace::notice::{FilesNotice, Tell};
use crate::workspace::worktrees::try_lock_worktree;

/// A branch that moved. The index must follow with `settle`.
#[must_use = "the index does not follow the branch yet"]
pub(super) struct MovedBranch<'a> {
    /// The prepared index; `None` if the user is on another branch.
    index: Option<NewIndex<'a>>,
}

impl MovedBranch<'_> {
    /// Installs the new index. Returns the paths whose staged version conflicts with what landed
    /// and is kept.
    pub(super) fn settle(self) -> anyhow::Result<Vec<Vec<u8>>> {
        fault::point("after-branch")?;
        let Some(mut index) = self.index else {
            return Ok(Vec::new());
        };
        let kept = std::mem::take(&mut index.kept);
        index.put()?;
        fault::point("after-index")?;

        Ok(kept)
    }
}

/// Moves a branch: the commit point of a landing.
pub(super) fn advance<'a>(
    repository: &'a Repository,
    to: &BranchMove,
) -> anyhow::Result<MovedBranch<'a>> {
    let new = repository.commit(to.new)?.tree;
    let index = to
        .is_current
        // Written under `index.lock` before the branch moves, so that only a rename is left
        // afterwards.
        .then(|| NewIndex::prepare(repository, to.old_tree, new))
        .transpose()?;
    fault::point("before-branch")?;
    branch::advance(repository, (&to.name, to.old), to.new, &to.log)?;

    Ok(MovedBranch { index })
}

/// The branch moved, but the session's ref did not. The intent stays, so recovery records the
/// landing.
pub(super) fn not_recorded(branch: &BranchMove, error: MoveError) -> anyhow::Error {
    anyhow::Error::new(error).context(format!(
        "`{}` is at {} now, but that is not recorded yet; `teddy recover` does it",
        branch.name, branch.new
    ))
}

/// Directory of the scratch worktree in which a session's landings commit.
pub fn scratch_folder(checkout: &Checkout<'_>, session: &SessionName) -> PathBuf {
    checkout
        .worktrees
        .join(scratch::LANDINGS)
        .join(session.folder())
}

/// Removes scratch worktrees of dead processes. While they exist, git considers the branch checked
/// out there. Returns whether it removed any.
pub(super) fn remove_scratch(checkout: &Checkout<'_>) -> anyhow::Result<bool> {
    let folders = std::fs::read_dir(checkout.worktrees.join(scratch::LANDINGS));
    let mut any = false;
    for folder in folders.into_iter().flatten().flatten() {
        let name = folder.file_name();
        let Some(name) = name.to_str() else { continue };
        if scratch::is_aside(name) {
            scratch::sweep(&folder.path());
        } else if let Some(_lock) = try_lock_worktree(checkout, name, "recover") {
            any |= scratch::remove(checkout.repository, &folder.path())?;
        }
    }

    Ok(any)
}

/// Records a landing whose branch moved before the crash. A landing whose branch did not move is
/// dropped.
///
/// `repository` is the checkout in which the landing ran.
pub(super) fn resume(
    checkout: &Checkout<'_>,
    repository: &Repository,
    (session, pending): (&SessionName, &Pending),
    tell: &mut Tell<'_>,
) -> anyhow::Result<()> {
    let Some(to) = &pending.branch else {
        return Ok(());
    };
    index::release(repository)?;
    let now = refs::read(repository, &to.name)?;
    if !has_moved(repository, to)? {
        return Ok(());
    }

    // Only if the branch is still where the landing put it. If the user committed since, they built
    // their own index, and ours would overwrite it.
    let is_here = refs::head(repository)? == now && now == Some(to.new);
    if to.is_current && is_here {
        let new = repository.commit(to.new)?.tree;
        NewIndex::prepare(repository, to.old_tree, new)?.put()?;
    }

    fault::point("recover-landed")?;
    record(checkout, session, pending)?;
    tell(FilesNotice::LandingFinished {
        branch: to.name.trim_start_matches("refs/heads/").to_owned(),
        commit: to.new,
    });

    Ok(())
}

/// Returns `true` if the branch ever reached the new commit.
fn has_moved(repository: &Repository, to: &BranchMove) -> anyhow::Result<bool> {
    // The user can have reset the branch since, so its reflog counts too.
    let reaches = match refs::read(repository, &to.name)? {
        Some(now) => {
            !is_lost(repository, to.new)? && revision::is_ancestor(repository, to.new, now)?
        }
        None => false,
    };
    Ok(reaches || refs::heal::logged(repository, &to.name)?.contains(&to.new))
}

/// Moves the session's ref to the turn that records the landing, unless it has moved already.
fn record(checkout: &Checkout<'_>, session: &SessionName, pending: &Pending) -> anyhow::Result<()> {
    let repository = checkout.repository;
    let turn = Turn::read(repository, session, pending.commit)?;
    let tip = refs::read(repository, &session.reference())?;
    if let (Some(tip), true) = (tip, tip == turn.previous) {
        durable::flush(repository)?;
        refs::move_to(
            repository,
            (&session.reference(), Expected::At(tip)),
            pending.commit,
            "teddy: recovered",
        )?;
        refs::sync(repository, &session.reference())?;
    }

    Ok(())
}
