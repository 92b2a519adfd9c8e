//! Renames files without overwriting by accident.
//!
//! Uses `renameat2(RENAME_NOREPLACE)`. On file systems without it, a hard link followed by an
//! unlink: the file has two names for a moment. On file systems without hard links, a check
//! followed by a rename: a file created in between is lost.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;

pub(super) struct RenameEnd<'p> {
    pub(super) dir: OwnedFd,
    pub(super) name: &'p OsStr,
}

/// Replaces `to`.
pub(super) fn rename_over(from: &RenameEnd<'_>, to: &RenameEnd<'_>) -> rustix::io::Result<()> {
    rustix::fs::renameat(&from.dir, from.name, &to.dir, to.name)
}

/// Fails with `EEXIST` if `to` exists.
pub(super) fn rename_to_free_name(
    from: &RenameEnd<'_>,
    to: &RenameEnd<'_>,
) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(
        &from.dir,
        from.name,
        &to.dir,
        to.name,
        RenameFlags::NOREPLACE,
    ) {
        Err(e) if is_unsupported_call(e) => rename_to_free_name_in_steps(from, to),
        result => result,
    }
}

pub(super) fn rename_to_free_name_in_steps(
    from: &RenameEnd<'_>,
    to: &RenameEnd<'_>,
) -> rustix::io::Result<()> {
    match rustix::fs::linkat(&from.dir, from.name, &to.dir, to.name, AtFlags::empty()) {
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::MLINK | Errno::NOSYS) => {
            match rustix::fs::statat(&to.dir, to.name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => rename_over(from, to),
                Ok(_) => Err(Errno::EXIST),
                Err(e) => Err(e),
            }
        }
        linked => {
            linked?;
            rustix::fs::unlinkat(&from.dir, from.name, AtFlags::empty())
        }
    }
}

/// Returns whether the kernel or the file system lacks the call.
fn is_unsupported_call(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOTTY
    )
}
