//! Flushes a file, or the directory that contains it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::PathHandle;
use crate::host::sync;

/// Flushes the content of a file. Does nothing for a symlink.
pub(in crate::git) fn sync_contents(handle: &PathHandle) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match open_for_sync(handle, flags) {
        // The file is possibly not readable by its owner.
        Err(Errno::ACCESS) => open_for_sync(handle, flags | OFlags::WRONLY),
        opened => opened,
    };
    match opened {
        Ok(file) => Ok(rustix::fs::fsync(file)?),
        Err(Errno::LOOP | Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Flushes the directory that contains the name. `false` if its file system cannot flush single
/// directories.
pub(in crate::git) fn sync_parent_dir(handle: &PathHandle) -> io::Result<bool> {
    sync::sync_dir(&handle.dir)
}

fn open_for_sync(handle: &PathHandle, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    crate::host::file::openat(&handle.dir, handle.name.as_slice(), flags, Mode::empty())
}
