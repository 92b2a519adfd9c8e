//! Refs: read, listed, moved by compare-and-swap, and repaired, in loose, packed or reftable form.
//!
//! All moves of one call happen or none, and each is logged. The objects are flushed before the refs move;
//! the moves themselves are durable after [`sync`]. `extensions.refStorage` selects the store once, when
//! the repository is opened (docs/decisions/0005-ref-stores.md).
//!
//! Limitation: the user's branches are moved by `git` in [`land`](super::land) only.
//!
//! # Example
//!
//! ```
//! # use std::process::Command;
//! # use teddy::git::repository::Repository;
//! # let dir = tempfile::tempdir()?;
//! # let git = |args: &[&str]| {
//! #     let mut git = Command::new("git");
//! #     git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
//! #     git.current_dir(&dir).args(args).status()
//! # };
//! # git(&["init", "-q", "-b", "main"])?;
//! # std::fs::write(dir.path().join("a.txt"), "one\n")?;
//! # git(&["add", "a.txt"])?;
//! # git(&["-c", "user.name=A", "-c", "user.email=a@localhost", "commit", "-qm", "first"])?;
//! # let repository = Repository::discover(dir.path(), None)?;
//! use teddy::git::refs::{self, Expected, MoveError};
//!
//! let head = refs::head(&repository)?.expect("a commit");
//! refs::move_to(&repository, "refs/teddy/example", Expected::Absent, head, "example")?;
//! assert_eq!(refs::read(&repository, "refs/teddy/example")?, Some(head));
//! let again = refs::move_to(&repository, "refs/teddy/example", Expected::Absent, head, "example");
//! assert!(matches!(again, Err(MoveError::Moved { .. })));
//! # Ok::<(), anyhow::Error>(())
//! ```

pub(in crate::git) mod choose;
mod files;
mod reftable;
pub mod repair;
pub mod store;

pub use store::{DamagedTable, Expected, MoveError, RefMove, Reference, RefsLocked};

use super::During as _;
use super::repository::Repository;
use crate::git::command::run_checked;
use crate::git::keep::durable;
use crate::git::object::id::{CommitId, TagId, TreeId};
use crate::git::object::{absent, writer};

/// Returns the commit that a ref points at; `None` if it does not exist. Fails if the object is not
/// a commit.
pub fn read(repository: &Repository, name: &str) -> anyhow::Result<Option<CommitId>> {
    repository.refs.read(name)
}

/// Returns the id in a ref without reading its object, which is a tag below [`SIGNED_PREFIX`].
/// `None` if the ref does not exist.
pub fn read_unpeeled(repository: &Repository, name: &str) -> anyhow::Result<Option<CommitId>> {
    repository.refs.read_unpeeled(name)
}

/// Returns the refs below a prefix such as `refs/teddy/sessions/`, sorted by name. Leaves out
/// single damaged refs.
pub fn list(repository: &Repository, prefix: &str) -> anyhow::Result<Vec<Reference>> {
    repository.refs.list(prefix)
}

/// Updates one ref by compare-and-swap and logs it. Fails like [`apply`].
pub fn move_to(
    repository: &Repository,
    name: &str,
    expected: Expected,
    to: CommitId,
    log: &str,
) -> Result<(), MoveError> {
    apply(repository, &[RefMove { name, expected, to }], log)
}

/// Updates refs by compare-and-swap and logs them. Fails with [`MoveError::Moved`] if one of them
/// changed; none is updated then.
///
/// The new objects are flushed first. The updates themselves are durable after [`sync`].
pub fn apply(repository: &Repository, moves: &[RefMove<'_>], log: &str) -> Result<(), MoveError> {
    debug_assert!(
        moves
            .iter()
            .all(|step| !writer::is_staged(repository, step.to)),
        "no ref reaches what is in memory only"
    );
    // A ref must never become durable before its objects.
    durable::flush(repository)?;
    repository.refs.apply(moves, log)
}

/// Deletes a ref, packed or not, by compare-and-swap. Fails with [`MoveError::Moved`] if it
/// changed.
pub fn delete(repository: &Repository, name: &str, expected: Expected) -> Result<(), MoveError> {
    repository.refs.delete(&[name], expected)
}

/// Deletes refs in one transaction, whatever they point at.
pub fn delete_all(repository: &Repository, names: &[&str]) -> anyhow::Result<()> {
    match names {
        [] => Ok(()),
        names => Ok(repository.refs.delete(names, Expected::Any)?),
    }
}

/// Deletes a ref unless that needs a lock file of git's own, which a crash would leave behind
/// forever. Returns `false` then.
pub fn discard(repository: &Repository, name: &str) -> anyhow::Result<bool> {
    repository.refs.discard(name)
}

/// Returns the messages of a ref's log, newest first.
pub fn log_messages(repository: &Repository, name: &str) -> anyhow::Result<Vec<String>> {
    let mut git = repository.git()?;
    git.args(["reflog", "show", "--format=%gs", name, "--"]);
    let log = run_checked(&mut git, "read the log of a ref")?;
    Ok(String::from_utf8_lossy(&log)
        .lines()
        .map(str::to_owned)
        .collect())
}

/// Flushes the latest update of a ref.
pub fn sync(repository: &Repository, name: &str) -> anyhow::Result<()> {
    repository.refs.sync(name)
}

/// Returns the commit of HEAD; `None` on an unborn branch.
pub fn head(repository: &Repository) -> anyhow::Result<Option<CommitId>> {
    Ok(repository.refs.head()?.commit)
}

/// Returns the short name of the current branch; `None` if HEAD is detached.
pub fn branch(repository: &Repository) -> anyhow::Result<Option<String>> {
    let branch = repository.refs.head()?.branch;
    Ok(branch.map(|name| name.shorten().to_string()))
}

pub fn is_name(name: &str) -> bool {
    gix::validate::reference::name(name.into()).is_ok()
}

/// Returns the output of `git rev-parse --abbrev-ref HEAD`: the branch, or `HEAD` if it is
/// detached.
pub fn branch_or_head(repository: &Repository) -> anyhow::Result<String> {
    Ok(branch(repository)?.unwrap_or_else(|| "HEAD".to_owned()))
}

/// Returns the tree of HEAD; the empty tree on an unborn branch.
pub fn head_tree(repository: &Repository) -> anyhow::Result<TreeId> {
    let Some(commit) = head(repository)? else {
        return Ok(repository.empty_tree());
    };
    let commit = absent::find(|| repository.gix.find_commit(commit.0)).during("reading HEAD")?;
    Ok(TreeId(commit.tree_id().during("reading HEAD")?.detach()))
}

pub fn resolve(repository: &Repository, expression: &str) -> anyhow::Result<CommitId> {
    repository.refs.resolve(expression)
}

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
    name: &str,
    old: Option<TagId>,
    to: TagId,
    log: &str,
) -> Result<(), MoveError> {
    let expected = old.map_or(Expected::Absent, |tag| Expected::At(CommitId(tag.0)));
    let to = CommitId(to.0);

    apply(repository, &[RefMove { name, expected, to }], log)?;
    Ok(repository.refs.sync(name)?)
}
