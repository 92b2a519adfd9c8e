//! Removes whatever a command left behind: directories of any depth or without permissions, FIFOs,
//! links.
//!
//! Follows no link and enters no other file system. Path length is not limited, and the number of
//! open directories is: deeper ones are moved to the top and emptied in another round.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode as Bits, OFlags};
use rustix::io::Errno;

use super::Root;
use super::beneath::{Mounts, open_beneath};
use super::dir::{LIST_FLAGS, list_names};

/// Maximum number of nested open directories.
const DEPTH: usize = 32;
/// Without these permission bits for the owner, a directory cannot be emptied.
const OWNER: u32 = 0o700;
/// Without this permission bit, the owner cannot read a file.
const READ: u32 = 0o400;

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
    let removed = remove(&root.dir, name);
    removed.map_err(|errno| root.fail("remove", Path::new(name), errno))
}

/// Restores the owner's permissions that are needed to read and remove what a command left: all on a
/// directory, reading on a file. Ignores errors: the use that needs them fails with the reason.
pub fn make_writable(root: &Root, name: &OsStr) {
    let Ok(stat) = rustix::fs::statat(&root.dir, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return;
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => drop(enter(&root.dir, name)),
        // Another name of the file can be the user's.
        FileType::RegularFile if stat.st_mode & READ == 0 && stat.st_nlink == 1 => {
            let rights = stat.st_mode & 0o7777 | READ;
            let handle = open_below(&root.dir, name, HANDLE.difference(OFlags::DIRECTORY));
            let _ = handle.and_then(|file| set_rights(&file, rights));
        }
        _ => {}
    }
}

/// Like [`make_writable`], for everything below a directory. Does not enter other file systems.
pub fn open_up_below(root: &Root) {
    let Ok(top) = rustix::io::fcntl_dupfd_cloexec(&root.dir, 0) else {
        return;
    };
    // Paths, not open directories: a tree can have any depth.
    let mut dirs = vec![PathBuf::new()];
    while let Some(path) = dirs.pop() {
        let Ok(dir) = open_beneath(&top, &path, LIST_FLAGS, Mounts::Refused) else {
            continue;
        };
        let dir = Root { dir };
        for name in dir.names().unwrap_or_default() {
            make_writable(&dir, &name);
            if is_dir(&dir.dir, &name) {
                dirs.push(path.join(name));
            }
        }
    }
}

/// Like [`remove_below`], in an open directory. The error does not name the file.
pub fn remove_at(dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
    Ok(remove(dir, name)?)
}

fn remove(dir: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    if !is_dir(dir, name) {
        return ignore_missing(rustix::fs::unlinkat(dir, name, AtFlags::empty()));
    }

    let mut removal = Removal {
        top: enter(dir, name)?,
        moved: 0,
        failed: None,
    };
    removal.empty_top()?;
    match removal.failed {
        Some(errno) => Err(errno),
        None => ignore_missing(rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)),
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

    fn empty(&mut self, dir: &OwnedFd, depth: usize) -> Result<(), Errno> {
        for name in list_names(dir)? {
            if let Err(errno) = self.remove(dir, &name, depth) {
                self.failed.get_or_insert(errno);
            }
        }
        Ok(())
    }

    fn remove(&mut self, dir: &OwnedFd, name: &OsStr, depth: usize) -> Result<(), Errno> {
        if !is_dir(dir, name) {
            return ignore_missing(rustix::fs::unlinkat(dir, name, AtFlags::empty()));
        }

        let inside = enter(dir, name)?;
        if depth == DEPTH {
            self.moved += 1;
            let free = OsString::from(format!(".teddy-deep-{}-{}", std::process::id(), self.moved));
            return rustix::fs::renameat(dir, name, &self.top, &free);
        }

        self.empty(&inside, depth + 1)?;
        match rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR) {
            // The error that kept it from being emptied was already recorded.
            Err(Errno::NOTEMPTY | Errno::EXIST) if self.failed.is_some() => Ok(()),
            removed => ignore_missing(removed),
        }
    }
}

/// Treats a file that another process removed as success.
fn ignore_missing(removed: Result<(), Errno>) -> Result<(), Errno> {
    match removed {
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

fn is_dir(dir: &OwnedFd, name: &OsStr) -> bool {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// Opens a directory for listing and changing. Adds missing permissions of the owner.
fn enter(dir: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let inside = match open_below(dir, name, LIST_FLAGS) {
        // A command left a directory without read permission.
        Err(Errno::ACCESS | Errno::PERM) => {
            set_rights(&open_below(dir, name, HANDLE)?, OWNER)?;
            open_below(dir, name, LIST_FLAGS)?
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

/// Flags to open a directory that need not be readable.
#[cfg(target_os = "linux")]
const HANDLE: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const HANDLE: OFlags = LIST_FLAGS;

fn set_rights(file: &OwnedFd, rights: u32) -> Result<(), Errno> {
    // `fchmod` fails for an `O_PATH` descriptor, but `chmod` of its `/proc` link works and reaches
    // exactly this file.
    let proc_path = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::chmod(proc_path, Bits::from_raw_mode(rights))
}

fn open_below(dir: &OwnedFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    open_beneath(dir, Path::new(name), flags, Mounts::Refused)
}
