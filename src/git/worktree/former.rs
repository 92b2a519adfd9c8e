//! Takes over worktrees that an earlier version registered with git, as `git worktree add` does.
//!
//! A plan's command could write to such a record. So the record is only used to find the session,
//! by the lock's reason or by a path where we would have created the worktree. The worktree is
//! taken over at its usual place, and the record is removed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anyhow::Context as _;

use super::root::{GIT, WorktreeRoot, is_plain};
use crate::git::repository::Repository;
use crate::git::worktree::record;
use crate::host::file::{FileKind, Root};
use crate::host::file::{open_up, remove_below};

/// Prefix of the lock's reason, before the session's name.
const LOCK: &str = "teddy session ";
const RECORDS: &str = "worktrees";
/// git writes no larger file there.
const MAX_FILE: u64 = 16 * 1024;

/// Returns the sessions with a worktree registered with git, sorted. `root` is the directory of
/// worktrees.
pub fn former_worktrees(repository: &Repository, root: &Path) -> Vec<String> {
    let Ok(records) = git_records(repository) else {
        return Vec::new();
    };
    let names = records.names().unwrap_or_default();
    let sessions = names
        .iter()
        .filter_map(|name| session_of(&records, name, root));
    let mut sessions: Vec<_> = sessions.collect();

    sessions.sort();
    sessions.dedup();
    sessions
}

/// Takes over the registered worktree of a session. The caller holds the session's lock.
pub fn take_over_worktree(
    repository: &Repository,
    root: &Path,
    session: &str,
) -> anyhow::Result<()> {
    let root = WorktreeRoot::make(root, &repository.common_dir())?;
    take_over(repository, &root, session)
}

pub(super) fn take_over(
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

        if !root.is_ours(session) && root.look(session)?.is_some() {
            root.claim(session)?;
            record::worktree_record(repository, session).keep_root(root.path())?;
            root.remove_git_dir(session)?;
        }

        remove_below(&records, &name)
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
    if records.kind(Path::new(name)).ok()? != Some(FileKind::Folder) {
        return None;
    }

    open_up(records, name);
    let record = records.folder(Path::new(name)).ok()?;
    let locked = record.read(Path::new("locked"), MAX_FILE).ok();
    let by_lock = locked.as_deref().and_then(|reason| {
        let reason = str::from_utf8(reason).ok()?.trim_end_matches('\n');
        Some(OsString::from(reason.strip_prefix(LOCK)?))
    });
    let by_place = || {
        let place = record.read(Path::new("gitdir"), MAX_FILE).ok()?;
        let place = Path::new(OsStr::from_bytes(
            place.strip_suffix(b"\n").unwrap_or(&place),
        ));
        let top = place.parent().filter(|_| place.ends_with(GIT))?;
        (top.parent()? == root).then(|| top.file_name().map(OsStr::to_owned))?
    };

    let session = by_lock.or_else(by_place)?.into_string().ok()?;
    is_plain(&session).then_some(session)
}
