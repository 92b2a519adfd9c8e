//! Refs of ours that point at tags: the signatures of sessions.

use super::store::{Expected, MoveError, RefMove};
use crate::git::object::id::{CommitId, TagId};
use crate::git::repository::Repository;

/// Where the refs of signatures are.
pub const SIGNED: &str = "refs/teddy/signed/";
/// Where the refs of signatures of remotes' sessions are.
pub const REMOTES_SIGNED: &str = "refs/teddy/remotes-signed/";

/// Where refs come in, signatures among them.
pub const INCOMING: &str = "refs/teddy/incoming/";

/// Returns whether a ref of ours can point at a tag.
pub fn is_of_signature(name: &str) -> bool {
    let prefixes = [SIGNED, REMOTES_SIGNED, INCOMING];
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the tag that a ref points at, if it is one; nothing where there is no such ref.
///
/// # Errors
/// Where the ref cannot be read.
pub fn read(repository: &Repository, name: &str) -> anyhow::Result<Option<TagId>> {
    let held = repository.refs.held(name)?;
    Ok(held.map(|id| TagId(id.0)))
}

/// Points a ref at a tag, if it is still what the caller saw, and makes that durable; its log gets
/// a line.
///
/// # Errors
/// [`MoveError::Moved`] if it is not, and nothing is changed.
pub fn move_to(
    repository: &Repository,
    (name, seen): (&str, Option<TagId>),
    to: TagId,
    log: &str,
) -> Result<(), MoveError> {
    let expected = seen.map_or(Expected::Absent, |tag| Expected::At(CommitId(tag.0)));
    let to = CommitId(to.0);

    super::apply(repository, &[RefMove { name, expected, to }], log)?;
    Ok(repository.refs.sync(name)?)
}
