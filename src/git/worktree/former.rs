//! Worktrees that a version before this one registered with git, as `git worktree add` does.
//!
//! A command could write in git's record of them. So nothing in a record is believed but that it is
//! ours, by the reason of its lock or by the place that it names, which must be where we would have
//! put it; the worktree is taken over where it should be, and the record is removed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anyhow::Context as _;

use super::root::{GIT, WorktreeRoot, is_plain};
use crate::git::repository::Repository;
use crate::git::worktree::record;
use crate::host::file::{FileKind, Root};
use crate::host::file::{open_up, remove_below};

/// What the lock of such a worktree begins with; the session's name follows.
const LOCK: &str = "teddy session ";
/// The folder of git's records.
const RECORDS: &str = "worktrees";
/// More bytes than this are in no file that git wrote there.
const MAX_FILE: u64 = 16 * 1024;

/// Returns the sessions whose worktrees git knows, as far as that can be told, sorted. `root` is
/// the folder of worktrees.
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

/// Takes over the worktree of a session that git knows. The caller holds the session's lock.
///
/// # Errors
/// Where git's record of it cannot be removed.
pub fn take_over_worktree(
    repository: &Repository,
    root: &Path,
    session: &str,
) -> anyhow::Result<()> {
    let root = WorktreeRoot::make(root, &repository.common_dir())?;
    take_over(repository, &root, session)
}

/// Takes over the worktree of a session that git knows, if it does.
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

    // As git does once the last one is gone.
    let _ = std::fs::remove_dir(repository.common_dir().join(RECORDS));
    Ok(())
}

/// Opens the folder of git's records.
fn git_records(repository: &Repository) -> std::io::Result<Root> {
    Root::open_strictly(&repository.common_dir().join(RECORDS))
}

/// Returns the session for which a version before this one made a record.
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
