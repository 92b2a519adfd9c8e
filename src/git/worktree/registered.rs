//! Registers session worktrees with git between turns, as `git worktree add` does.
//!
//! Then `git worktree list` names them, and `git log`, `show` and `diff` work in them. The record
//! is removed before anything runs in the worktree: commands see only their own git directory.
//! TeDDy reads no path and no commit from the record: a command without the sandbox can change it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::git_record::{
    GITDIR, LOCK, MAX_FILE, RECORDS, discard, git_file, record_name, session_of,
};
use super::record::worktree_record;
use super::root::{GIT, WorktreeRoot, is_plain};
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::host::file::{FileKind, FileMode, Root};

/// Registers the worktree of a session with git, with HEAD at a commit. Has no effect without a
/// worktree, if a record of another program has the name, or if refs are in a reftable, which needs
/// one of its own for each worktree. The caller holds the session's lock.
pub fn register_worktree(
    repository: &Repository,
    session: &str,
    at: CommitId,
) -> anyhow::Result<()> {
    let own = worktree_record(repository, session);
    let root = own.root();
    let root = root.and_then(|path| WorktreeRoot::open(&path, &repository.common_dir()));
    let Some(root) = root.filter(|root| is_plain(session) && root.is_ours(session)) else {
        return Ok(());
    };
    let path = root.worktree_path(session);
    // git ends the path at a line feed.
    let has_line_feed = path.as_os_str().as_bytes().contains(&b'\n');
    let is_there = root.kind(session)? == Some(FileKind::Dir);
    if has_line_feed || !is_there || repository.common_dir().join("reftable").exists() {
        return Ok(());
    }

    // A command without the sandbox can have changed the old one.
    discard_record(repository, session)?;
    let common = Root::open_strictly(&repository.common_dir())?;
    let records = common.make_dir(Path::new(RECORDS))?;
    let name = record_name(session);
    if records.kind(Path::new(&name))?.is_some() {
        return Ok(());
    }

    let record = records.make_dir(Path::new(&name))?;
    write_record(&record, session, &path, at)?;
    root.remove_git_dir(session)?;
    let link = git_file(&repository.common_dir(), session);
    root.worktree(session)?
        .create_new(Path::new(GIT), &link, FileMode::Plain)?;
    Ok(())
}

fn write_record(record: &Root, session: &str, path: &Path, at: CommitId) -> anyhow::Result<()> {
    // git does not prune a locked record.
    let lock = format!("{LOCK}{session}\n");
    record.create_aside(Path::new("locked"), lock.as_bytes())?;
    // Detached, so no branch counts as checked out.
    record.create_aside(Path::new("HEAD"), format!("{at}\n").as_bytes())?;
    record.create_aside(Path::new("commondir"), b"../..\n")?;
    // Last: git ignores the record without it.
    let gitdir = [path.as_os_str().as_bytes(), b"/.git\n"].concat();
    record.create_new(Path::new(GITDIR), &gitdir, FileMode::Plain)?;
    Ok(())
}

/// Removes git's records of all session worktrees. The next turn of a session writes its own again.
pub fn discard_records(repository: &Repository) -> anyhow::Result<()> {
    let records = repository.common_dir().join(RECORDS);
    for entry in records.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        if let Some(session) = name.to_str().and_then(session_of) {
            discard_record(repository, session)?;
        }
    }
    Ok(())
}

/// Returns the sessions whose worktree git lists although our record of it is gone, sorted.
pub fn lost_records(repository: &Repository) -> Vec<String> {
    let records = Root::open_strictly(&repository.common_dir().join(RECORDS));
    let names = records.and_then(|records| records.names());
    let names = names.unwrap_or_default().into_iter();
    let is_lost = |session: &String| {
        is_plain(session) && worktree_record(repository, session).root().is_none()
    };
    let sessions = names.filter_map(|name| session_of(name.to_str()?).map(str::to_owned));
    let mut lost: Vec<String> = sessions.filter(is_lost).collect();
    lost.sort();
    lost
}

/// Returns `true` if the reason of a lock is that of a session's worktree.
pub fn is_lock_of_session(reason: &str) -> bool {
    reason.starts_with(LOCK)
}

/// Removes git's record of a session's worktree, if it is ours. Returns whether it was. The caller
/// holds the session's lock.
pub fn discard_record(repository: &Repository, session: &str) -> anyhow::Result<bool> {
    let Ok(records) = Root::open_strictly(&repository.common_dir().join(RECORDS)) else {
        return Ok(false);
    };
    let name = record_name(session);
    let read = |file: &str| records.read(&Path::new(&name).join(file), MAX_FILE);
    let expected = format!("{LOCK}{session}");
    let has_lock = read("locked").is_ok_and(|lock| lock.trim_ascii_end() == expected.as_bytes());
    // The user can have unlocked it.
    let own = worktree_record(repository, session).root();
    let is_at_ours = own.is_some_and(|root| {
        let path = root.join(session).join(GIT);
        let expected = [path.as_os_str().as_bytes(), b"\n"].concat();
        read(GITDIR).is_ok_and(|gitdir| gitdir == expected)
    });
    // Only a crash of ours leaves a part of a record.
    let is_part = matches!(records.kind(Path::new(&name)), Ok(Some(FileKind::Dir)))
        && matches!(records.kind(&Path::new(&name).join(GITDIR)), Ok(None));
    let is_ours = has_lock || is_at_ours || is_part;
    if is_ours {
        discard(&records, OsStr::new(&name))?;
        // git also removes the directory with the last record.
        let _ = std::fs::remove_dir(repository.common_dir().join(RECORDS));
    }
    Ok(is_ours)
}
