//! Removing whatever a command left: folders of any depth and without permissions, pipes, links.
//!
//! No link is followed and no other file system entered. Nothing depends on the length of a path,
//! and few folders are open at once: what lies deeper is moved up first.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode as Bits, OFlags};
use rustix::io::Errno;

use super::Root;
use super::beneath::{Mounts, open_beneath};
use super::folder::{LISTED, names};

/// So many folders below each other are open at once.
const DEPTH: usize = 32;
/// The permissions of its owner, without which a folder cannot be emptied.
const OWNER: u32 = 0o700;

/// A removal under way.
struct Removal {
    /// The folder that is removed.
    top: OwnedFd,
    /// Counts what was moved up to it.
    moved: u64,
    /// The first failure; the rest is removed all the same.
    failed: Option<Errno>,
}

/// Removes what has a name here, whatever it is; nothing where there is nothing. As much as
/// possible is gone even where it fails.
///
/// # Errors
/// Something cannot be removed, such as a mount.
pub fn remove_below(root: &Root, name: &OsStr) -> io::Result<()> {
    let removed = remove(&root.folder, name);
    removed.map_err(|errno| root.fail("remove", Path::new(name), errno))
}

/// Gives the owner back the rights to list, change and enter the folder of a name, which it
/// takes to move it; nothing where it is not a directory.
pub fn open_up(root: &Root, name: &OsStr) {
    if is_folder(&root.folder, name) {
        let _ = enter(&root.folder, name);
    }
}

/// Removes what has a name in an open folder, as [`Root::remove`] does.
///
/// # Errors
/// Something cannot be removed.
pub fn remove_at(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    Ok(remove(folder, name)?)
}

/// Removes a name of a folder.
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
    /// Empties the folder, in rounds: each finds what the one before moved up.
    fn empty_top(&mut self) -> Result<(), Errno> {
        let top = rustix::io::fcntl_dupfd_cloexec(&self.top, 0)?;
        loop {
            let moved = self.moved;
            self.empty(&top, 0)?;
            if self.moved == moved {
                return Ok(());
            }
        }
    }

    /// Removes everything in a folder.
    fn empty(&mut self, folder: &OwnedFd, depth: usize) -> Result<(), Errno> {
        for name in names(folder)? {
            if let Err(errno) = self.remove(folder, &name, depth) {
                self.failed.get_or_insert(errno);
            }
        }
        Ok(())
    }

    /// Removes a name in a folder.
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
            // Why it is not empty is known already.
            Err(Errno::NOTEMPTY | Errno::EXIST) if self.failed.is_some() => Ok(()),
            removed => gone(removed),
        }
    }
}

/// Takes for done what somebody else removed.
fn gone(removed: Result<(), Errno>) -> Result<(), Errno> {
    match removed {
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

/// Returns whether a name is that of a folder.
fn is_folder(folder: &OwnedFd, name: &OsStr) -> bool {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// Opens a folder so that it can be emptied, as package managers and vandals leave them not to be.
fn enter(folder: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let inside = match open_below(folder, name, LISTED) {
        Err(Errno::ACCESS | Errno::PERM) => {
            give_rights(&open_below(folder, name, PLACE)?)?;
            open_below(folder, name, LISTED)?
        }
        opened => opened?,
    };
    let bits = rustix::fs::fstat(&inside)?.st_mode & 0o7777;
    if bits & OWNER != OWNER {
        // Where that is refused the removal says why.
        let _ = rustix::fs::fchmod(&inside, Bits::from_raw_mode(bits | OWNER));
    }

    Ok(inside)
}

/// A folder that need not be readable.
#[cfg(target_os = "linux")]
const PLACE: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// A folder.
#[cfg(not(target_os = "linux"))]
const PLACE: OFlags = LISTED;

/// Gives the owner all rights over an open folder that cannot be read.
fn give_rights(folder: &OwnedFd) -> Result<(), Errno> {
    // `fchmod` refuses what was only opened as a place; its name among our own files does not, and
    // is this very folder.
    let place = format!("/proc/self/fd/{}", folder.as_raw_fd());
    rustix::fs::chmod(place, Bits::from_raw_mode(OWNER))
}

/// Opens a folder of a name, if nothing is mounted there.
fn open_below(folder: &OwnedFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    open_beneath(folder, Path::new(name), flags, Mounts::Refused)
}
