//! Opens, creates, lists and moves directories below a root.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path};

use rustix::fs::{CWD, Dir, Mode as Bits, OFlags, RenameFlags};
use rustix::io::Errno;

use super::{PRIVATE, Root, beneath, failure};

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

    /// Opens a subdirectory.
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

    /// Returns the names in the directory, sorted.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        list_names(&self.dir).map_err(|errno| failure("read", Path::new("."), errno.into()))
    }

    /// Moves `name` to the name `free` in another directory. Fails if `free` exists or is on
    /// another file system.
    pub fn move_to(&self, name: &OsStr, other: &Root, free: &OsStr) -> io::Result<()> {
        let flags = RenameFlags::NOREPLACE;
        let moved = match rustix::fs::renameat_with(&self.dir, name, &other.dir, free, flags) {
            // The file system does not know `RENAME_NOREPLACE`. Checking first leaves a race, but
            // callers choose `free` so that no other process uses it, and a directory only replaces
            // an empty one.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                match other.stat(Path::new(free)) {
                    Err(Errno::NOENT) => rustix::fs::renameat(&self.dir, name, &other.dir, free),
                    Ok(_) => Err(Errno::EXIST),
                    Err(errno) => Err(errno),
                }
            }
            moved => moved,
        };

        moved.map_err(|errno| self.fail("move", Path::new(name), errno))
    }
}

pub(super) fn list_names(dir: impl std::os::fd::AsFd) -> rustix::io::Result<Vec<OsString>> {
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
