//! Refs: read, listed, moved and mended, whatever the format in which the repository keeps them.
//!
//! Which store a repository has is decided once, when it is opened, from its configuration
//! (docs/decisions/0029-two-stores-of-refs.md).

pub mod aside;
pub(in crate::git) mod choose;
mod files;
pub mod heal;
mod readable;
mod reftable;
pub mod signed;
mod stale;
pub mod store;

pub use store::{DamagedTable, Expected, MoveError, RefMove, Reference, RefsLocked};

use super::During as _;
use super::repository::Repository;
use crate::git::keep::durable;
use crate::git::object::id::{CommitId, TreeId};
use crate::git::object::{absent, staged};

/// Returns the commit that a ref points at, or nothing where there is no such ref.
///
/// # Errors
/// Where the ref cannot be read or points at something else than a commit.
pub fn read(repository: &Repository, name: &str) -> anyhow::Result<Option<CommitId>> {
    repository.refs.read(name)
}

/// Returns what a ref holds, which below [`signed::SIGNED`] is the id of a tag; nothing where there
/// is no such ref.
///
/// # Errors
/// Where the ref cannot be read.
pub fn held(repository: &Repository, name: &str) -> anyhow::Result<Option<CommitId>> {
    repository.refs.held(name)
}

/// Returns the refs below a prefix such as `refs/teddy/sessions/`, sorted by name.
///
/// # Errors
/// Where the ref store cannot be read; a single damaged ref is left out.
pub fn list(repository: &Repository, prefix: &str) -> anyhow::Result<Vec<Reference>> {
    repository.refs.list(prefix)
}

/// Moves a ref, if it is still what the caller saw; its log gets a line.
///
/// # Errors
/// As for [`apply`].
pub fn move_to(
    repository: &Repository,
    (name, expected): (&str, Expected),
    to: CommitId,
    log: &str,
) -> Result<(), MoveError> {
    apply(repository, &[RefMove { name, expected, to }], log)
}

/// Moves refs, if all of them are still what the caller saw; their logs get a line.
///
/// What they point at is durable before, whoever calls; the moves themselves are after [`sync`].
///
/// # Errors
/// [`MoveError::Moved`] if one is not, and nothing is changed.
pub fn apply(repository: &Repository, moves: &[RefMove<'_>], log: &str) -> Result<(), MoveError> {
    debug_assert!(
        moves.iter().all(|step| !staged::has(repository, step.to)),
        "no ref reaches what is in memory only"
    );
    durable::flush(repository)?;
    repository.refs.apply(moves, log)
}

/// Deletes a ref, packed or not, if it is still what the caller saw.
///
/// # Errors
/// [`MoveError::Moved`] where it is not, and nothing is changed.
pub fn delete(repository: &Repository, name: &str, expected: Expected) -> Result<(), MoveError> {
    repository.refs.delete(name, expected)
}

/// Deletes a ref if that takes no lock of git's that a crash could leave for ever; false where it
/// would.
///
/// # Errors
/// Where it cannot be locked or removed.
pub fn discard(repository: &Repository, name: &str) -> anyhow::Result<bool> {
    repository.refs.discard(name)
}

/// Makes the newest move of a ref durable.
///
/// # Errors
/// As for [`durable::flush`].
pub fn sync(repository: &Repository, name: &str) -> anyhow::Result<()> {
    repository.refs.sync(name)
}

/// Returns the commit that HEAD points at, or nothing on an unborn branch.
///
/// # Errors
/// Where HEAD is damaged.
pub fn head(repository: &Repository) -> anyhow::Result<Option<CommitId>> {
    Ok(repository.refs.head()?.commit)
}

/// Returns the short name of the branch that HEAD is on, or nothing when it is detached.
///
/// # Errors
/// Where HEAD is damaged.
pub fn branch(repository: &Repository) -> anyhow::Result<Option<String>> {
    let branch = repository.refs.head()?.branch;
    Ok(branch.map(|name| name.shorten().to_string()))
}

/// Returns whether a ref may have this name, all of it.
pub fn is_name(name: &str) -> bool {
    gix::validate::reference::name(name.into()).is_ok()
}

/// Returns what `git rev-parse --abbrev-ref HEAD` says: the branch, `HEAD` when it is detached.
///
/// # Errors
/// Where HEAD is damaged.
pub fn branch_or_head(repository: &Repository) -> anyhow::Result<String> {
    Ok(branch(repository)?.unwrap_or_else(|| "HEAD".to_owned()))
}

/// Returns the tree of HEAD, or the empty tree on an unborn branch.
///
/// # Errors
/// Where HEAD is damaged.
pub fn head_tree(repository: &Repository) -> anyhow::Result<TreeId> {
    let Some(commit) = head(repository)? else {
        return Ok(repository.empty_tree());
    };
    let commit = absent::find(|| repository.gix.find_commit(commit.0)).during("reading HEAD")?;
    Ok(TreeId(commit.tree_id().during("reading HEAD")?.detach()))
}

/// Returns the commit that an expression of `git rev-parse` names.
///
/// # Errors
/// Where it names nothing, or something that is no commit.
pub fn resolve(repository: &Repository, expression: &str) -> anyhow::Result<CommitId> {
    repository.refs.resolve(expression)
}
