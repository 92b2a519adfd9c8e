//! A place made durable: its bytes, or the names beside it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::Place;
use crate::host::sync::sync_folder;

impl Place {
    /// Makes the bytes of the file here durable; of a link there are none but its name.
    pub(in crate::git) fn sync(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = match self.open_as(flags) {
            // Its permissions need not let us read it.
            Err(Errno::ACCESS) => self.open_as(flags | OFlags::WRONLY),
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
    pub(in crate::git) fn sync_folder(&self) -> io::Result<bool> {
        sync_folder(&self.folder)
    }

    /// Opens what is here.
    fn open_as(&self, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        rustix::fs::openat(&self.folder, self.name.as_slice(), flags, Mode::empty())
    }
}
