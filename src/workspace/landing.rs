//! A branch of the user's that moves with a turn: the move, and what a crash left of it.

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

/// A branch that has moved, and the index that follows.
#[must_use = "the index does not follow the branch yet"]
pub(super) struct MovedBranch<'a> {
    /// The index, if the user is on the branch.
    index: Option<NewIndex<'a>>,
}

impl MovedBranch<'_> {
    /// Lets the index follow. Returns the paths whose staged version overlaps with what landed, and
    /// stays.
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

/// Moves a branch, once the index that is to follow is ready: the commit point of a landing.
///
/// # Errors
/// If another process moved the branch or writes the index; nothing has changed then.
pub(super) fn advance<'a>(
    repository: &'a Repository,
    to: &BranchMove,
) -> anyhow::Result<MovedBranch<'a>> {
    let new = repository.commit(to.new)?.tree;
    let index = to
        .is_current
        .then(|| NewIndex::prepare(repository, to.old_tree, new))
        .transpose()?;
    fault::point("before-branch")?;
    branch::advance(repository, (&to.name, to.old), to.new, &to.log)?;

    Ok(MovedBranch { index })
}

/// Says that a branch has moved, and the session's ref did not.
pub(super) fn not_recorded(branch: &BranchMove, error: MoveError) -> anyhow::Error {
    anyhow::Error::new(error).context(format!(
        "`{}` is at {} now, but that is not recorded yet; `teddy recover` does it",
        branch.name, branch.new
    ))
}

/// Returns the folder in which the commits of a session are made.
pub fn scratch_folder(checkout: &Checkout<'_>, session: &SessionName) -> PathBuf {
    checkout
        .worktrees
        .join(scratch::LANDINGS)
        .join(session.folder())
}

/// Removes the worktrees in which commits were made by processes that are gone: git takes the
/// branch for one that is in use there. Returns whether there were any.
///
/// # Errors
/// If one cannot be removed.
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

/// Finishes a landing whose branch moved, up to the session's ref; `repository` is the checkout in
/// which it was under way. What a landing left that never got there goes.
///
/// # Errors
/// If the index or a ref cannot be read or written.
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

    // What the user did on the branch since they have done on an index of their own making.
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

/// Returns whether a branch has ever come to where it was to go.
fn has_moved(repository: &Repository, to: &BranchMove) -> anyhow::Result<bool> {
    let reaches = match refs::read(repository, &to.name)? {
        Some(now) => {
            !is_lost(repository, to.new)? && revision::is_ancestor(repository, to.new, now)?
        }
        None => false,
    };
    Ok(reaches || refs::heal::logged(repository, &to.name)?.contains(&to.new))
}

/// Moves the session's ref to the turn that records a landing, unless it is there or somebody else
/// moved it.
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
