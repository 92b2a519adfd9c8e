//! A place made durable: its bytes, or the names beside it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::Place;
use crate::host::sync;

/// Makes the bytes of the file here durable; of a link there are none but its name.
pub(in crate::git) fn sync(place: &Place) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match open_as(place, flags) {
        // Its permissions need not let us read it.
        Err(Errno::ACCESS) => open_as(place, flags | OFlags::WRONLY),
        opened => opened,
    };
    match opened {
        Ok(file) => Ok(rustix::fs::fsync(file)?),
        Err(Errno::LOOP | Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Makes the names in the folder durable that this name is in; false if its file system flushes
/// no single folder.
pub(in crate::git) fn sync_folder(place: &Place) -> io::Result<bool> {
    sync::sync_folder(&place.folder)
}

/// Opens what is here.
fn open_as(place: &Place, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(&place.folder, place.name.as_slice(), flags, Mode::empty())
}
