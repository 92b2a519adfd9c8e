//! Flushes a file, or the directory that contains it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::Place;
use crate::host::sync;

/// Flushes the content of a file. Does nothing for a symlink.
pub(in crate::git) fn sync(place: &Place) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match open_as(place, flags) {
        // The file is possibly not readable by its owner.
        Err(Errno::ACCESS) => open_as(place, flags | OFlags::WRONLY),
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
pub(in crate::git) fn sync_folder(place: &Place) -> io::Result<bool> {
    sync::sync_folder(&place.folder)
}

fn open_as(place: &Place, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    crate::host::file::openat(&place.folder, place.name.as_slice(), flags, Mode::empty())
}
