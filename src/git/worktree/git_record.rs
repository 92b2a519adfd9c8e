//! Names and contents of git's records of session worktrees (`.git/worktrees/teddy-session-...`).
//!
//! git ignores a record without `gitdir`. So that file is written last and removed first, and git
//! never sees a part of a record.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::host::file::{Root, make_writable, remove_below};

/// Directory of git's records in the common git directory.
pub(super) const RECORDS: &str = "worktrees";
/// Prefix of the lock's reason, before the session's name.
pub(super) const LOCK: &str = "teddy session ";
/// git writes no larger file there.
pub(super) const MAX_FILE: u64 = 16 * 1024;
pub(super) const GITDIR: &str = "gitdir";

const PREFIX: &str = "teddy-session-";

pub(super) fn record_name(session: &str) -> String {
    format!("{PREFIX}{session}")
}

pub(super) fn session_of(record: &str) -> Option<&str> {
    record.strip_prefix(PREFIX)
}

/// Returns the content of the file `.git` in a session's worktree. `common` is the common git
/// directory.
pub(super) fn git_file(common: &Path, session: &str) -> Vec<u8> {
    let record = common.join(RECORDS).join(record_name(session));
    [b"gitdir: ", record.as_os_str().as_bytes(), b"\n"].concat()
}

pub(super) fn discard(records: &Root, name: &OsStr) -> io::Result<()> {
    make_writable(records, name);
    if let Ok(record) = records.open_dir(Path::new(name)) {
        // First: git ignores the rest of the record without it.
        remove_below(&record, OsStr::new(GITDIR))?;
    }
    remove_below(records, name)
}
