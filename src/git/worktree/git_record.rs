//! Names and contents of git's records of session worktrees (`.git/worktrees/teddy-session-...`).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::host::file::{Root, remove_below};

/// Directory of git's records in the common git directory.
pub(super) const RECORDS: &str = "worktrees";
/// Prefix of the lock's reason, before the session's name.
pub(super) const LOCK: &str = "teddy session ";
/// git writes no larger file there.
pub(super) const MAX_FILE: u64 = 16 * 1024;
/// Name of a record while it is removed.
const OLD: &str = "git-record-old";

/// Returns the name of git's record of a session's worktree.
pub(super) fn record_name(session: &str) -> String {
    format!("teddy-session-{session}")
}

/// Returns the content of the file `.git` in a session's worktree. `common` is the common git
/// directory.
pub(super) fn git_file(common: &Path, session: &str) -> Vec<u8> {
    let record = common.join(RECORDS).join(record_name(session));
    [b"gitdir: ", record.as_os_str().as_bytes(), b"\n"].concat()
}

/// Removes a record. Moves it to a directory of ours first, because git fails on a part of one.
pub(super) fn discard(records: &Root, name: &OsStr, staging: Option<&Root>) -> anyhow::Result<()> {
    let Some(staging) = staging else {
        return Ok(remove_below(records, name)?);
    };
    remove_below(staging, OsStr::new(OLD))?;
    records.move_to(name, staging, OsStr::new(OLD))?;
    Ok(remove_below(staging, OsStr::new(OLD))?)
}
