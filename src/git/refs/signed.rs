//! Reads and updates refs that point at tags: the signatures of sessions.

use super::store::{Expected, MoveError, RefMove};
use crate::git::object::id::{CommitId, TagId};
use crate::git::repository::Repository;

/// Prefix of the refs of signatures.
pub const SIGNED_PREFIX: &str = "refs/teddy/signed/";
/// Prefix of the refs of signatures fetched from remotes.
pub const REMOTES_SIGNED_PREFIX: &str = "refs/teddy/remotes-signed/";

/// Prefix of fetched refs that are not accepted yet, signatures included.
pub const INCOMING_PREFIX: &str = "refs/teddy/incoming/";

/// Returns whether a ref of TeDDy's can point at a tag.
pub fn is_signature_ref(name: &str) -> bool {
    let prefixes = [SIGNED_PREFIX, REMOTES_SIGNED_PREFIX, INCOMING_PREFIX];
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the tag that a ref points at; `None` if the ref does not exist.
pub fn read_tag(repository: &Repository, name: &str) -> anyhow::Result<Option<TagId>> {
    let target = repository.refs.read_unpeeled(name)?;
    Ok(target.map(|id| TagId(id.0)))
}

/// Updates a ref to a tag by compare-and-swap, logs and flushes it. Fails with [`MoveError::Moved`]
/// if it changed.
pub fn move_tag_to(
    repository: &Repository,
    (name, old): (&str, Option<TagId>),
    to: TagId,
    log: &str,
) -> Result<(), MoveError> {
    let expected = old.map_or(Expected::Absent, |tag| Expected::At(CommitId(tag.0)));
    let to = CommitId(to.0);

    super::apply(repository, &[RefMove { name, expected, to }], log)?;
    Ok(repository.refs.sync(name)?)
}
