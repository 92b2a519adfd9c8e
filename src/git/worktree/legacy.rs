//! Takes over worktrees that are registered with git: those of an earlier version, which commands
//! could reach, and our own before a run ([`super::registered`]).
//!
//! A plan's command could write to such a record. So the record is only used to find the session,
//! by the lock's reason or by a path where we would have created the worktree. The worktree is
//! taken over at its usual place, and the record is removed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anyhow::Context as _;

use super::git_record::{LOCK, MAX_FILE, RECORDS, discard, record_name};
use super::root::{GIT, WorktreeRoot, is_plain};
use crate::git::repository::Repository;
use crate::git::worktree::record;
use crate::host::file::make_writable;
use crate::host::file::{FileKind, Root};

/// Returns the sessions with a worktree that an earlier version registered with git, or that we
/// registered and that is gone, sorted. `root` is the directory of worktrees.
pub fn list_legacy_worktrees(repository: &Repository, root: &Path) -> Vec<String> {
    let Ok(records) = git_records(repository) else {
        return Vec::new();
    };
    let names = records.names().unwrap_or_default();
    let sessions = names.iter().filter_map(|name| {
        let session = session_of(&records, name, root)?;
        let is_current = name.to_str() == Some(&record_name(&session))
            && record::worktree_record(repository, &session)
                .root()
                .is_some();
        (!is_current).then_some(session)
    });
    let mut sessions: Vec<_> = sessions.collect();

    sessions.sort();
    sessions.dedup();
    sessions
}

/// Takes over the registered worktree of a session. The caller holds the session's lock.
pub fn adopt_worktree(repository: &Repository, root: &Path, session: &str) -> anyhow::Result<()> {
    let root = WorktreeRoot::make(root, &repository.common_dir())?;
    adopt(repository, &root, session)
}

/// Returns `true` if the reason of a lock is that of a session's worktree.
pub fn is_lock_of_session(reason: &str) -> bool {
    reason.starts_with(LOCK)
}

pub(super) fn adopt(
    repository: &Repository,
    root: &WorktreeRoot,
    session: &str,
) -> anyhow::Result<()> {
    let Ok(records) = git_records(repository) else {
        return Ok(());
    };
    for name in records.names()? {
        if session_of(&records, &name, root.path()).as_deref() != Some(session) {
            continue;
        }

        if !root.is_ours(session) && root.kind(session)?.is_some() {
            root.claim(session)?;
            record::worktree_record(repository, session).keep_root(root.path())?;
            root.remove_git_dir(session)?;
        }

        discard(&records, &name)
            .with_context(|| format!("removing git's record of the worktree of `{session}`"))?;
    }

    // git also removes the directory with the last record.
    let _ = std::fs::remove_dir(repository.common_dir().join(RECORDS));
    Ok(())
}

fn git_records(repository: &Repository) -> std::io::Result<Root> {
    Root::open_strictly(&repository.common_dir().join(RECORDS))
}

/// Returns the session of a record, if an earlier version of TeDDy made it.
fn session_of(records: &Root, name: &OsStr, root: &Path) -> Option<String> {
    if records.kind(Path::new(name)).ok()? != Some(FileKind::Dir) {
        return None;
    }

    make_writable(records, name);
    let record = records.open_dir(Path::new(name)).ok()?;
    let locked = record.read(Path::new("locked"), MAX_FILE).ok();
    let by_lock = locked.as_deref().and_then(|reason| {
        let reason = str::from_utf8(reason).ok()?.trim_end_matches('\n');
        Some(OsString::from(reason.strip_prefix(LOCK)?))
    });
    let by_path = || {
        let git_file = record.read(Path::new("gitdir"), MAX_FILE).ok()?;
        let git_file = Path::new(OsStr::from_bytes(
            git_file.strip_suffix(b"\n").unwrap_or(&git_file),
        ));
        let top = git_file.parent().filter(|_| git_file.ends_with(GIT))?;
        (top.parent()? == root).then(|| top.file_name().map(OsStr::to_owned))?
    };

    let session = by_lock.or_else(by_path)?.into_string().ok()?;
    is_plain(&session).then_some(session)
}
