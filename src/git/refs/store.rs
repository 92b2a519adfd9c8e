//! What is asked of a store of refs, whatever its format.

use std::path::{Path, PathBuf};

use gix::refs::{FullName, Target};

use crate::git::object::id::CommitId;
use crate::text::shell_word::shell_word;

/// Where TeDDy's refs are.
pub(in crate::git) const OURS: &str = "refs/teddy/";

/// A ref and what it points at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The full name.
    pub name: String,
    /// The commit.
    pub target: CommitId,
}

/// What a ref must be before it is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// It must not exist.
    Absent,
    /// It must point here.
    At(CommitId),
    /// It may be anything.
    Any,
}

impl Expected {
    /// Returns whether a ref is as it must be.
    pub(in crate::git) fn is_met(self, now: Option<CommitId>) -> bool {
        match self {
            Expected::Absent => now.is_none(),
            Expected::At(commit) => now == Some(commit),
            Expected::Any => true,
        }
    }
}

/// A ref that is to point at another commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefMove<'a> {
    /// Its full name.
    pub name: &'a str,
    /// What it must be before.
    pub expected: Expected,
    /// What it is to point at.
    pub to: CommitId,
}

/// Why a ref was not moved.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// Someone else moved it meanwhile.
    #[error("`{name}` was moved by someone else meanwhile")]
    Moved {
        /// The ref.
        name: String,
    },
    /// The ref store cannot be written.
    #[error(transparent)]
    Store(#[from] anyhow::Error),
}

/// Another process keeps the refs locked.
#[derive(Debug, thiserror::Error)]
#[error("another process holds the lock `{}`", lock.display())]
pub struct RefsLocked {
    /// The lock.
    pub lock: PathBuf,
}

impl RefsLocked {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> String {
        format!(
            "try again; if no git is at work here, `rm {}` removes what one left that was killed",
            shell_word(self.lock.as_os_str().as_encoded_bytes())
        )
    }
}

/// A table of refs, or the list of them, is not what git wrote.
#[derive(Debug, thiserror::Error)]
#[error("`{}` is damaged: {why}", path.display())]
pub struct DamagedTable {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub why: &'static str,
}

impl DamagedTable {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> String {
        "every ref is in such a table, your branches too, so nothing is changed; restore it from a \
         backup, or let `git fsck --lost-found` find the commits"
            .to_owned()
    }
}

/// What HEAD says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::git) struct HeadTarget {
    /// The full name of the branch that it is on; nothing where it is detached.
    pub(in crate::git) branch: Option<FullName>,
    /// The commit; nothing on a branch without one.
    pub(in crate::git) commit: Option<CommitId>,
}

/// Every ref of a repository.
#[derive(Debug, Default)]
pub(in crate::git) struct All {
    /// Those that can be read.
    pub(in crate::git) refs: Vec<(FullName, Target)>,
    /// How many cannot.
    pub(in crate::git) damaged: u8,
}

/// Where refs are kept, and how.
///
/// To a store an id is an id. That a ref of ours points at a commit, or below `signed::SIGNED` at a
/// tag, is the business of whoever moves it.
///
/// Moves are all or nothing, each with what its ref must be before. What they point at is durable
/// when they are asked for; they themselves are after [`RefStore::sync`].
pub(in crate::git) trait RefStore {
    /// Returns the commit that a ref points at, or nothing where there is no such ref.
    fn read(&self, name: &str) -> anyhow::Result<Option<CommitId>>;

    /// Returns the id that a ref holds, whatever object it is of; nothing where there is no such
    /// ref, or it is symbolic.
    fn held(&self, name: &str) -> anyhow::Result<Option<CommitId>>;

    /// Returns the refs below a prefix that are not symbolic, sorted by name; a single damaged one
    /// is left out.
    fn list(&self, prefix: &str) -> anyhow::Result<Vec<Reference>>;

    /// Returns every ref.
    fn all(&self) -> anyhow::Result<All>;

    /// Returns what HEAD of this worktree says.
    fn head(&self) -> anyhow::Result<HeadTarget>;

    /// Returns the commit that an expression of `git rev-parse` names.
    fn resolve(&self, expression: &str) -> anyhow::Result<CommitId>;

    /// Moves refs, or none of them; the log of each gets a line.
    fn apply(&self, moves: &[RefMove<'_>], log: &str) -> Result<(), MoveError>;

    /// Deletes a ref with its log.
    fn delete(&self, name: &str, expected: Expected) -> Result<(), MoveError>;

    /// Deletes a ref if that takes no lock of git's that a crash could leave for ever; false where
    /// it would.
    fn discard(&self, name: &str) -> anyhow::Result<bool>;

    /// Makes the newest move of a ref durable.
    fn sync(&self, name: &str) -> anyhow::Result<()>;

    /// Returns what a ref of ours pointed at by its log, newest first, be it there or not.
    fn logged(&self, name: &str) -> anyhow::Result<Vec<CommitId>>;

    /// Returns the refs of ours that hold no id at all.
    fn damaged(&self) -> anyhow::Result<Vec<String>>;

    /// Gives a broken ref a commit, or takes it away where there is none, and takes the lines out
    /// of its log that name what `is_there` does not know; what it was is kept in `aside`.
    fn mend(
        &self,
        name: &str,
        commit: Option<CommitId>,
        aside: &Path,
        is_there: &dyn Fn(CommitId) -> bool,
    ) -> anyhow::Result<()>;

    /// Removes locks of refs that a process of ours left which is gone; returns what they were for.
    /// `is_in_use` knows the refs that move without the lock of the repository.
    fn remove_stale_locks(&self, is_in_use: &dyn Fn(&str) -> bool) -> anyhow::Result<Vec<String>>;

    /// Returns where git's own locks of refs are.
    fn locks(&self) -> Vec<PathBuf>;

    /// Returns what of the user's is in the store besides refs, by name: HEAD, the log of the
    /// stash.
    fn users(&self) -> anyhow::Result<Vec<(String, Vec<u8>)>>;
}
