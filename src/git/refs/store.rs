//! The interface of ref stores, independent of the format.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gix::refs::{FullName, Target};

use crate::git::object::id::CommitId;
use crate::text::first_names;
use crate::text::shell_word::shell_word;

const BRANCHES: &str = "refs/heads/";
pub(in crate::git) const TEDDY_PREFIX: &str = "refs/teddy/";

/// Number of refs that an error names.
const MAX_NAMED_REFS: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub name: String,
    pub target: CommitId,
}

/// Required state of a ref before an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Absent,
    At(CommitId),
    Any,
}

impl Expected {
    pub(in crate::git) fn is_met(self, now: Option<CommitId>) -> bool {
        match self {
            Expected::Absent => now.is_none(),
            Expected::At(commit) => now == Some(commit),
            Expected::Any => true,
        }
    }
}

/// A compare-and-swap of one ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefMove<'a> {
    pub name: &'a str,
    pub expected: Expected,
    pub to: CommitId,
}

#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    #[error("another process moved `{}` meanwhile", short_name(name))]
    Moved {
        /// Full name of the ref.
        name: String,
    },
    #[error(transparent)]
    Store(#[from] anyhow::Error),
}

impl MoveError {
    pub fn hint(&self) -> Option<String> {
        let MoveError::Moved { name } = self else {
            return None;
        };
        let log = match name.strip_prefix(BRANCHES) {
            Some(branch) => format!("git log {}", shell_word(branch.as_bytes())),
            None if name == "HEAD" => "git status".to_owned(),
            None => "teddy log".to_owned(),
        };
        Some(format!("`{log}` shows it; run the command again"))
    }
}

/// The branch, or the full name of another ref.
fn short_name(name: &str) -> &str {
    name.strip_prefix(BRANCHES).unwrap_or(name)
}

/// Another process has the refs locked.
#[derive(Debug, thiserror::Error)]
#[error("another process holds the lock `{}`", lock.display())]
pub struct RefsLocked {
    pub lock: PathBuf,
}

impl RefsLocked {
    pub fn hint(&self) -> String {
        format!(
            "try again; if no git is at work here, `rm {}` removes what one left that was killed",
            shell_word(self.lock.as_os_str().as_encoded_bytes())
        )
    }
}

/// A reftable, or the list of tables, is damaged.
#[derive(Debug, thiserror::Error)]
#[error("`{}` is damaged: {why}", path.display())]
pub struct DamagedTable {
    pub path: PathBuf,
    pub why: &'static str,
}

impl DamagedTable {
    pub fn hint(&self) -> String {
        "every ref is in such a table, your branches too, so nothing is changed; restore it from a \
         backup, or let `git fsck --lost-found` find the commits"
            .to_owned()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::git) struct HeadTarget {
    /// Full name of the current branch; `None` if HEAD is detached.
    pub(in crate::git) branch: Option<FullName>,
    /// `None` on an unborn branch.
    pub(in crate::git) commit: Option<CommitId>,
}

#[derive(Debug, Default)]
pub(in crate::git) struct All {
    pub(in crate::git) refs: Vec<(FullName, Target)>,
    /// Number of unreadable refs, at most 255.
    pub(in crate::git) damaged: u8,
}

/// Storage of refs in one format.
///
/// A store does not interpret ids. The code that updates a ref ensures that it points at a commit,
/// or below `SIGNED_PREFIX` at a tag.
///
/// Updates are compare-and-swap and all or nothing. The caller flushes their objects before; the
/// updates are durable after [`RefStore::sync`].
pub(in crate::git) trait RefStore {
    /// Returns the commit that a ref points at; `None` if the ref does not exist.
    fn read(&self, name: &str) -> anyhow::Result<Option<CommitId>>;

    /// Returns the id in a ref without reading the object; `None` if the ref does not exist or is
    /// symbolic.
    fn read_unpeeled(&self, name: &str) -> anyhow::Result<Option<CommitId>>;

    /// Returns all refs below a prefix such as `refs/`, in any order.
    fn all(&self, prefix: &str) -> anyhow::Result<All>;

    /// Returns the refs below a prefix that are not symbolic, sorted by name. Leaves out damaged
    /// refs.
    fn list(&self, prefix: &str) -> anyhow::Result<Vec<Reference>> {
        let refs = self.all(prefix)?.refs.into_iter();
        let direct = refs.filter_map(|(name, target)| {
            Some(Reference {
                name: name.as_bstr().to_string(),
                target: CommitId(target.try_into_id().ok()?),
            })
        });
        let mut references: Vec<Reference> = direct.collect();
        references.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(references)
    }

    fn head(&self) -> anyhow::Result<HeadTarget>;

    fn resolve(&self, expression: &str) -> anyhow::Result<CommitId>;

    /// Updates all refs, or none, and logs each.
    fn apply(&self, moves: &[RefMove<'_>], log: &str) -> Result<(), MoveError>;

    /// Deletes refs in one transaction.
    fn delete(&self, names: &[&str], expected: Expected) -> Result<(), MoveError>;

    /// Explains why refs were not deleted: one of them has moved, or `error`.
    fn delete_error(&self, names: &[&str], expected: Expected, error: anyhow::Error) -> MoveError {
        let is_moved = |name: &&&str| !expected.is_met(self.read_unpeeled(name).ok().flatten());
        if let Some(name) = names.iter().find(is_moved) {
            let name = (*name).to_owned();
            return MoveError::Moved { name };
        }
        let quoted = names.iter().map(|name| format!("`{name}`"));
        let names = first_names(quoted, MAX_NAMED_REFS);
        error.context(format!("cannot delete {names}")).into()
    }

    /// Deletes a ref unless that needs a lock file of git's own, which a crash would leave behind
    /// forever. Returns `false` then.
    fn discard(&self, name: &str) -> anyhow::Result<bool>;

    fn sync(&self, name: &str) -> anyhow::Result<()>;

    /// Returns the commits in a ref's log, newest first, even if they are missing.
    fn logged(&self, name: &str) -> anyhow::Result<Vec<CommitId>>;

    /// Returns TeDDy's refs that contain no id.
    fn damaged(&self) -> anyhow::Result<Vec<String>>;

    /// Repairs a broken ref: sets it to `commit`, or deletes it if `None`. Removes the log lines of
    /// commits for which `is_there` is false. The old state is kept in `backup_dir`.
    fn repair(
        &self,
        name: &str,
        commit: Option<CommitId>,
        backup_dir: &Path,
        is_there: &dyn Fn(CommitId) -> bool,
    ) -> anyhow::Result<()>;

    /// Removes ref locks that a killed TeDDy process left, and returns the names of their refs.
    /// `is_in_use` returns true for refs that move without the repository lock.
    fn remove_stale_locks(&self, is_in_use: &dyn Fn(&str) -> bool) -> anyhow::Result<Vec<String>>;

    /// Returns the paths of git's own lock files for refs.
    fn locks(&self) -> Vec<PathBuf>;

    /// Returns the user's data in the store other than refs, by name: HEAD and the log of the
    /// stash.
    fn users(&self) -> anyhow::Result<Vec<(String, Vec<u8>)>>;
}

// Backups of refs before their repair.
//
// The name of a file contains that of its ref: `refs:teddy:sessions:a`, then `..2` if it exists
// already, or `..log` for a log. No ref has `:` or `..` in its name.

const BACKUP_SEPARATOR: &str = "..";

const BACKUP_LOG: &str = "log";

pub(super) fn free_backup_file(dir: &Path, name: &str) -> PathBuf {
    free_numbered(dir, name.replace('/', ":"))
}

pub(super) fn free_backup_log(dir: &Path, name: &str) -> PathBuf {
    free_numbered(
        dir,
        format!("{}{BACKUP_SEPARATOR}{BACKUP_LOG}", name.replace('/', ":")),
    )
}

/// Returns the ref of a backup file. `None` for a log.
pub fn ref_of_backup(file_name: &str) -> Option<String> {
    let (name, tail) = file_name
        .split_once(BACKUP_SEPARATOR)
        .unwrap_or((file_name, ""));
    (!tail.starts_with(BACKUP_LOG)).then(|| name.replace(':', "/"))
}

fn free_numbered(dir: &Path, start: String) -> PathBuf {
    let numbered = (2..).map(|number| dir.join(format!("{start}{BACKUP_SEPARATOR}{number}")));
    let mut files = std::iter::once(dir.join(&start)).chain(numbered);
    let is_free = |file: &PathBuf| file.symlink_metadata().is_err();
    files.find(is_free).unwrap_or_else(|| dir.join(&start))
}

/// A lock file that is unchanged for this long is stale.
const STALE_AGE: Duration = Duration::from_secs(1);

const STALE_POLL: Duration = Duration::from_millis(20);

/// Waits until a lock file is one second old. Returns whether it is still the same one.
pub(super) fn is_stale_lock(path: &Path) -> bool {
    let read_stat = || {
        std::fs::symlink_metadata(path)
            .ok()
            .and_then(|metadata| Some((metadata.modified().ok()?, metadata.len())))
    };
    let Some(first) = read_stat() else {
        return false;
    };
    let (started, age) = (Instant::now(), first.0.elapsed().unwrap_or_default());

    while started.elapsed() + age < STALE_AGE {
        std::thread::sleep(STALE_POLL);
        if read_stat() != Some(first) {
            return false;
        }
    }

    read_stat() == Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ref_is_read_from_the_name_of_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let name = "refs/teddy/sessions/change/a-b.log";
        for _ in 0..3 {
            let file = free_backup_file(dir.path(), name);
            let file_name = file.file_name().unwrap().to_str().unwrap();
            assert_eq!(
                ref_of_backup(file_name).as_deref(),
                Some(name),
                "{file_name}"
            );
            std::fs::write(&file, "").unwrap();
            let log = free_backup_log(dir.path(), name);
            assert_eq!(
                ref_of_backup(log.file_name().unwrap().to_str().unwrap()),
                None
            );
            std::fs::write(&log, "").unwrap();
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 6);
    }
}
