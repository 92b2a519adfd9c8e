//! Folders below a root: opened, made, listed, and moved as one.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path};

use rustix::fs::{CWD, Dir, Mode as Bits, OFlags, RenameFlags};
use rustix::io::Errno;

use super::{Root, beneath, failure};

/// A folder that is listed.
pub(super) const LISTED: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl Root {
    /// Opens the folder of an absolute path, no component of which is a link.
    ///
    /// # Errors
    /// There is no such folder, or a link is on the way.
    pub fn open_strictly(path: &Path) -> io::Result<Root> {
        let opened = || {
            let top = rustix::fs::openat(CWD, "/", LISTED, Bits::empty())?;
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

    /// Opens a folder below.
    ///
    /// # Errors
    /// There is no such folder, or the path goes through a link.
    pub fn folder(&self, path: &Path) -> io::Result<Root> {
        let opened = beneath::open_folder(&self.folder, path);
        let folder = opened.map_err(|errno| self.fail("open", path, errno))?;
        Ok(Root { folder })
    }

    /// Opens a folder below, and makes what of it is missing.
    ///
    /// # Errors
    /// Something else is in its place, or the path goes through a link.
    pub fn make_folder(&self, path: &Path) -> io::Result<Root> {
        let opened = beneath::make_folder(&self.folder, path);
        let folder = opened.map_err(|errno| self.fail("make", path, errno))?;
        Ok(Root { folder })
    }

    /// Returns the names in the folder, sorted.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        names(&self.folder).map_err(|errno| failure("read", Path::new("."), errno.into()))
    }

    /// Moves what has a name here to a name of another folder that must be free.
    ///
    /// # Errors
    /// The name is taken, or the folders are on two file systems.
    pub fn move_to(&self, name: &OsStr, other: &Root, free: &OsStr) -> io::Result<()> {
        let flags = RenameFlags::NOREPLACE;
        let moved = match rustix::fs::renameat_with(&self.folder, name, &other.folder, free, flags)
        {
            // A folder replaces only an empty one, and a name of our own is not taken meanwhile.
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

/// Returns the names in a folder, sorted.
pub(super) fn names(folder: impl std::os::fd::AsFd) -> rustix::io::Result<Vec<OsString>> {
    let listed = rustix::fs::openat(folder, ".", LISTED, Bits::empty())?;
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
