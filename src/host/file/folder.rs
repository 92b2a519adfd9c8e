//! Opens, creates, lists and moves directories below a root.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path};

use rustix::fs::{CWD, Dir, Mode as Bits, OFlags, RenameFlags};
use rustix::io::Errno;

use super::{PRIVATE, Root, beneath, failure};

pub(super) const LISTED: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl Root {
    /// Opens the directory at an absolute path. Fails if any component is a link.
    pub fn open_strictly(path: &Path) -> io::Result<Root> {
        let opened = || {
            let top = super::openat(CWD, "/", LISTED, Bits::empty())?;
            let below = path.strip_prefix("/").map_err(|_| Errno::INVAL)?;
            let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
            if !below.components().all(plain) {
                return Err(Errno::INVAL);
            }
            beneath::open_folder(&top, below)
        };
        match opened() {
            Ok(folder) => Ok(Root { folder }),
            Err(errno) => Err(failure("open", path, errno.into())),
        }
    }

    /// Opens a subdirectory.
    pub fn folder(&self, path: &Path) -> io::Result<Root> {
        let opened = beneath::open_folder(&self.folder, path);
        let folder = opened.map_err(|errno| self.fail("open", path, errno))?;
        Ok(Root { folder })
    }

    /// Opens a subdirectory. Creates missing directories on its path.
    pub fn make_folder(&self, path: &Path) -> io::Result<Root> {
        let opened = beneath::make_folder(&self.folder, path);
        let folder = opened.map_err(|errno| self.fail("make", path, errno))?;
        Ok(Root { folder })
    }

    /// Opens a subdirectory. Creates it for this user alone if it does not exist.
    pub fn make_private_folder(&self, name: &Path) -> io::Result<Root> {
        let mode = Bits::from_raw_mode(PRIVATE);
        match rustix::fs::mkdirat(&self.folder, name, mode) {
            Ok(()) | Err(Errno::EXIST) => self.folder(name),
            Err(errno) => Err(self.fail("make", name, errno)),
        }
    }

    /// Returns the names in the directory, sorted.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        names(&self.folder).map_err(|errno| failure("read", Path::new("."), errno.into()))
    }

    /// Moves `name` to the name `free` in another directory. Fails if `free` exists or is on
    /// another file system.
    pub fn move_to(&self, name: &OsStr, other: &Root, free: &OsStr) -> io::Result<()> {
        let flags = RenameFlags::NOREPLACE;
        let moved = match rustix::fs::renameat_with(&self.folder, name, &other.folder, free, flags)
        {
            // The file system does not know `RENAME_NOREPLACE`. Checking first leaves a race, but
            // callers choose `free` so that no other process uses it, and a directory only replaces
            // an empty one.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                match other.stat(Path::new(free)) {
                    Err(Errno::NOENT) => {
                        rustix::fs::renameat(&self.folder, name, &other.folder, free)
                    }
                    Ok(_) => Err(Errno::EXIST),
                    Err(errno) => Err(errno),
                }
            }
            moved => moved,
        };

        moved.map_err(|errno| self.fail("move", Path::new(name), errno))
    }
}

pub(super) fn names(folder: impl std::os::fd::AsFd) -> rustix::io::Result<Vec<OsString>> {
    let listed = super::openat(folder, ".", LISTED, Bits::empty())?;
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
