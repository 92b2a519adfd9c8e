//! Renaming that never overwrites by accident.
//!
//! One atomic call where the file system has it; elsewhere the file has both names for a moment,
//! and where there are no hard links either, a file that appears in that moment is lost.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;

/// One end of a renaming: an open folder and a name in it.
pub(super) struct RenameEnd<'p> {
    /// The folder.
    pub(super) folder: OwnedFd,
    /// The name.
    pub(super) name: &'p OsStr,
}

/// Renames, replacing.
pub(super) fn over(from: &RenameEnd<'_>, to: &RenameEnd<'_>) -> rustix::io::Result<()> {
    rustix::fs::renameat(&from.folder, from.name, &to.folder, to.name)
}

/// Renames to a name that is free.
pub(super) fn to_free_name(from: &RenameEnd<'_>, to: &RenameEnd<'_>) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(
        &from.folder,
        from.name,
        &to.folder,
        to.name,
        RenameFlags::NOREPLACE,
    ) {
        Err(e) if unsupported(e) => to_free_name_in_steps(from, to),
        done => done,
    }
}

/// Renames to a name that is free by giving the file a second name first.
pub(super) fn to_free_name_in_steps(
    from: &RenameEnd<'_>,
    to: &RenameEnd<'_>,
) -> rustix::io::Result<()> {
    match rustix::fs::linkat(
        &from.folder,
        from.name,
        &to.folder,
        to.name,
        AtFlags::empty(),
    ) {
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::MLINK | Errno::NOSYS) => {
            match rustix::fs::statat(&to.folder, to.name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => over(from, to),
                Ok(_) => Err(Errno::EXIST),
                Err(e) => Err(e),
            }
        }
        linked => {
            linked?;
            rustix::fs::unlinkat(&from.folder, from.name, AtFlags::empty())
        }
    }
}

/// Returns whether the error says that this file system or kernel does not know the call.
fn unsupported(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOTTY
    )
}
