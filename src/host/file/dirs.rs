//! Removes whatever a command left behind: directories of any depth or without permissions, FIFOs,
//! links.
//!
//! Follows no link and enters no other file system. Path length is not limited, and the number of
//! open directories is: deeper ones are moved to the top and emptied in another round.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode as Bits, OFlags};
use rustix::io::Errno;

use super::beneath::{self, Mounts, open_beneath};
use super::{PRIVATE, Root};
use crate::host::file::failure;

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

/// Like [`remove_below`], at a path. Succeeds if its parent directory does not exist.
pub fn remove_at_path(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    match Root::open(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        root => remove_below(&root?, name),
    }
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
        // Emptied in the next round, so that few directories are open at once.
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
    // A file system that is mounted in a directory of ours is not ours to empty.
    open_beneath(dir, Path::new(name), flags, Mounts::Refused)
}

pub(super) const LIST_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl Root {
    /// Opens the directory at an absolute path. Fails if any component is a link.
    pub fn open_strictly(path: &Path) -> io::Result<Root> {
        let opened = || {
            let top = super::openat(CWD, "/", LIST_FLAGS, Bits::empty())?;
            let rel_path = path.strip_prefix("/").map_err(|_| Errno::INVAL)?;
            let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
            if !rel_path.components().all(plain) {
                return Err(Errno::INVAL);
            }
            beneath::open_dir(&top, rel_path)
        };
        match opened() {
            Ok(dir) => Ok(Root { dir }),
            Err(errno) => Err(failure("open", path, errno.into())),
        }
    }

    pub fn open_dir(&self, path: &Path) -> io::Result<Root> {
        let opened = beneath::open_dir(&self.dir, path);
        let dir = opened.map_err(|errno| self.fail("open", path, errno))?;
        Ok(Root { dir })
    }

    /// Opens a subdirectory. Creates missing directories on its path.
    pub fn make_dir(&self, path: &Path) -> io::Result<Root> {
        let opened = beneath::make_dir(&self.dir, path);
        let dir = opened.map_err(|errno| self.fail("make", path, errno))?;
        Ok(Root { dir })
    }

    /// Opens a subdirectory. Creates it for this user alone if it does not exist.
    pub fn make_private_dir(&self, name: &Path) -> io::Result<Root> {
        let mode = Bits::from_raw_mode(PRIVATE);
        match rustix::fs::mkdirat(&self.dir, name, mode) {
            Ok(()) | Err(Errno::EXIST) => self.open_dir(name),
            Err(errno) => Err(self.fail("make", name, errno)),
        }
    }

    pub fn names(&self) -> io::Result<Vec<OsString>> {
        list_names(&self.dir).map_err(|errno| failure("read", Path::new("."), errno.into()))
    }

    /// Moves `name` to the name `free` in another directory. Fails if `free` exists or is on
    /// another file system.
    pub fn move_to(&self, name: &OsStr, other: &Root, free: &OsStr) -> io::Result<()> {
        let moved = super::rename_to_free_name(&self.dir, name, &other.dir, free);
        moved.map_err(|errno| self.fail("move", Path::new(name), errno))
    }
}

fn list_names(dir: impl std::os::fd::AsFd) -> rustix::io::Result<Vec<OsString>> {
    let listed = super::openat(dir, ".", LIST_FLAGS, Bits::empty())?;
    let mut names = Vec::new();
    for entry in Dir::new(listed)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }

    names.sort();
    Ok(names)
}
