//! Removes whatever a command left behind: directories of any depth or without permissions, FIFOs,
//! links.
//!
//! Follows no link and enters no other file system. Path length is not limited, and the number of
//! open directories is: deeper ones are moved to the top and emptied in another round.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode as Bits, OFlags};
use rustix::io::Errno;

use super::Root;
use super::beneath::{Mounts, open_beneath};
use super::folder::{LISTED, names};

/// Maximum number of nested open directories.
const DEPTH: usize = 32;
/// Without these permission bits for the owner, a directory cannot be emptied.
const OWNER: u32 = 0o700;

struct Removal {
    top: OwnedFd,
    /// Number of directories moved up so far. Makes their names unique.
    moved: u64,
    /// The first error. Removal continues after it.
    failed: Option<Errno>,
}

/// Removes a file or directory. Succeeds if it does not exist. On failure, as much as possible was
/// removed.
pub fn remove_below(root: &Root, name: &OsStr) -> io::Result<()> {
    let removed = remove(&root.folder, name);
    removed.map_err(|errno| root.fail("remove", Path::new(name), errno))
}

/// Restores the owner's permissions on a directory, without which it cannot be moved.
pub fn open_up(root: &Root, name: &OsStr) {
    if is_folder(&root.folder, name) {
        let _ = enter(&root.folder, name);
    }
}

/// Like [`remove_below`], in an open directory. The error does not name the file.
pub fn remove_at(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    Ok(remove(folder, name)?)
}

fn remove(folder: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    if !is_folder(folder, name) {
        return gone(rustix::fs::unlinkat(folder, name, AtFlags::empty()));
    }

    let mut removal = Removal {
        top: enter(folder, name)?,
        moved: 0,
        failed: None,
    };
    removal.empty_top()?;
    match removal.failed {
        Some(errno) => Err(errno),
        None => gone(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)),
    }
}

impl Removal {
    fn empty_top(&mut self) -> Result<(), Errno> {
        let top = rustix::io::fcntl_dupfd_cloexec(&self.top, 0)?;
        loop {
            // Each round empties the directories that the previous one moved up.
            let moved = self.moved;
            self.empty(&top, 0)?;
            if self.moved == moved {
                return Ok(());
            }
        }
    }

    fn empty(&mut self, folder: &OwnedFd, depth: usize) -> Result<(), Errno> {
        for name in names(folder)? {
            if let Err(errno) = self.remove(folder, &name, depth) {
                self.failed.get_or_insert(errno);
            }
        }
        Ok(())
    }

    fn remove(&mut self, folder: &OwnedFd, name: &OsStr, depth: usize) -> Result<(), Errno> {
        if !is_folder(folder, name) {
            return gone(rustix::fs::unlinkat(folder, name, AtFlags::empty()));
        }

        let inside = enter(folder, name)?;
        if depth == DEPTH {
            self.moved += 1;
            let free = OsString::from(format!(".teddy-deep-{}-{}", std::process::id(), self.moved));
            return rustix::fs::renameat(folder, name, &self.top, &free);
        }

        self.empty(&inside, depth + 1)?;
        match rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR) {
            // The error that kept it from being emptied was already recorded.
            Err(Errno::NOTEMPTY | Errno::EXIST) if self.failed.is_some() => Ok(()),
            removed => gone(removed),
        }
    }
}

/// Treats a file that another process removed as success.
fn gone(removed: Result<(), Errno>) -> Result<(), Errno> {
    match removed {
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

fn is_folder(folder: &OwnedFd, name: &OsStr) -> bool {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// Opens a directory for listing and changing. Adds missing permissions of the owner.
fn enter(folder: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let inside = match open_below(folder, name, LISTED) {
        // A command left a directory without read permission.
        Err(Errno::ACCESS | Errno::PERM) => {
            give_rights(&open_below(folder, name, PLACE)?)?;
            open_below(folder, name, LISTED)?
        }
        opened => opened?,
    };
    let bits = rustix::fs::fstat(&inside)?.st_mode & 0o7777;
    if bits & OWNER != OWNER {
        // If this fails, the removal fails with the actual reason.
        let _ = rustix::fs::fchmod(&inside, Bits::from_raw_mode(bits | OWNER));
    }

    Ok(inside)
}

/// Handle to a directory that need not be readable.
#[cfg(target_os = "linux")]
const PLACE: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const PLACE: OFlags = LISTED;

fn give_rights(folder: &OwnedFd) -> Result<(), Errno> {
    // `fchmod` fails for an `O_PATH` descriptor, but `chmod` of its `/proc` link works and reaches
    // exactly this directory.
    let place = format!("/proc/self/fd/{}", folder.as_raw_fd());
    rustix::fs::chmod(place, Bits::from_raw_mode(OWNER))
}

fn open_below(folder: &OwnedFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    open_beneath(folder, Path::new(name), flags, Mounts::Refused)
}
