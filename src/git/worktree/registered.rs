//! Registers session worktrees with git between turns, as `git worktree add` does.
//!
//! Then `git worktree list` names them, and `git log`, `show` and `diff` work in them. HEAD is
//! detached, so no branch counts as checked out, and the record is locked, so git does not prune
//! it. The record is removed before anything runs in the worktree: commands see only their own git
//! directory. TeDDy writes the record and never reads a path or a commit from it, because a command
//! without the sandbox can change it.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::git_record::{LOCK, MAX_FILE, RECORDS, discard, git_file, record_name};
use super::own_root;
use super::record::worktree_record;
use super::root::{GIT, is_plain};
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::host::file::{FileKind, FileMode, Root, remove_below};

/// Name of a record while it is made, in TeDDy's own record of the worktree.
const NEW: &str = "git-record-new";

/// Registers the worktree of a session with git, with HEAD at a commit. Does nothing if there is no
/// worktree, if a record of another program has the name, or if refs are in a reftable, which needs
/// one of its own for each worktree. The caller holds the session's lock.
pub fn register_worktree(
    repository: &Repository,
    session: &str,
    at: CommitId,
) -> anyhow::Result<()> {
    let own = worktree_record(repository, session);
    let root = own.root().and_then(|path| own_root(repository, &path));
    let Some(root) = root.filter(|root| is_plain(session) && root.is_ours(session)) else {
        return Ok(());
    };
    let path = root.place(session);
    // git ends the path at a line feed.
    let has_line_feed = path.as_os_str().as_bytes().contains(&b'\n');
    let is_there = root.look(session)? == Some(FileKind::Folder);
    if has_line_feed || !is_there || repository.common_dir().join("reftable").exists() {
        return Ok(());
    }

    discard_record(repository, session)?;
    let staging = own.open()?;
    remove_below(&staging, OsStr::new(NEW))?;
    let new = staging.make_folder(Path::new(NEW))?;
    let gitdir = [path.as_os_str().as_bytes(), b"/.git\n"].concat();
    new.create_aside(Path::new("HEAD"), format!("{at}\n").as_bytes())?;
    new.create_aside(Path::new("commondir"), b"../..\n")?;
    new.create_aside(Path::new("gitdir"), &gitdir)?;
    new.create_aside(Path::new("locked"), format!("{LOCK}{session}\n").as_bytes())?;

    let common = Root::open_strictly(&repository.common_dir())?;
    let records = common.make_folder(Path::new(RECORDS))?;
    // One rename, so git never sees a part of a record.
    let name = record_name(session);
    match staging.move_to(OsStr::new(NEW), &records, OsStr::new(&name)) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Ok(remove_below(&staging, OsStr::new(NEW))?);
        }
        moved => moved?,
    }

    root.remove_git_dir(session)?;
    let link = git_file(&repository.common_dir(), session);
    root.worktree(session)?
        .create_new(Path::new(GIT), &link, FileMode::Plain)?;
    Ok(())
}

/// Removes git's record of a session's worktree, if it is ours.
pub(super) fn discard_record(repository: &Repository, session: &str) -> anyhow::Result<()> {
    let Ok(records) = Root::open_strictly(&repository.common_dir().join(RECORDS)) else {
        return Ok(());
    };
    let name = record_name(session);
    let lock = records.read(&Path::new(&name).join("locked"), MAX_FILE);
    let expected = format!("{LOCK}{session}");
    let is_ours = lock.is_ok_and(|reason| reason.trim_ascii_end() == expected.as_bytes());
    if is_ours {
        let staging = worktree_record(repository, session).open().ok();
        discard(&records, OsStr::new(&name), staging.as_ref())?;
        // git also removes the directory with the last record.
        let _ = std::fs::remove_dir(repository.common_dir().join(RECORDS));
    }
    Ok(())
}
