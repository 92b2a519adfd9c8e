//! Names in directories of a worktree, resolved without following symlinks.
//!
//! On Linux one `openat2` call resolves the path and rejects symlinks. Elsewhere, and to find out
//! what is in the way, each component is opened separately. Nested repositories are rejected. An
//! open directory stays the same one, even if it is renamed in the meantime.

mod contents;
pub(in crate::git) mod durable;
mod empty;
mod recent;
pub(in crate::git) mod share;
mod state;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use gix::bstr::BStr;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::host::file::{Mounts, open_beneath};
pub(in crate::git) use contents::{ByteSource, FileBody, FileContents, OnDisk};
pub(in crate::git) use recent::RecentLookup;
pub(in crate::git) use state::{NameState, Trace};

/// Paths with more directories are resolved step by step.
const DEEP: usize = 64;

#[derive(Debug)]
pub(in crate::git) struct Top {
    dir: OwnedFd,
    /// Whether mount points below it can be entered.
    mounts: Mounts,
}

/// Result of resolving the directory of a path.
#[derive(Debug)]
pub(in crate::git) enum WalkResult {
    Handle(PathHandle),
    /// A parent directory does not exist.
    Missing,
    /// Something other than a directory is at this length of the path.
    Blocked(usize),
    /// No permission to enter a parent directory.
    Denied,
    /// A parent directory is a nested repository.
    Boundary,
    /// git reserves a component of the path.
    Refused,
}

/// Handling of missing parent directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) enum IfMissing {
    /// Create them.
    Make,
    /// Return [`WalkResult::Missing`].
    Stop,
}

/// A name in an open directory. The name need not exist.
#[derive(Debug)]
pub(in crate::git) struct PathHandle {
    dir: Arc<OwnedFd>,
    name: Vec<u8>,
}

impl Top {
    pub(in crate::git) fn open(path: &Path) -> io::Result<Top> {
        let folder = crate::host::file::openat(rustix::fs::CWD, path, dir_flags(), Mode::empty())?;
        Ok(Top {
            dir: folder,
            mounts: Mounts::Entered,
        })
    }

    /// Opens the top of a worktree of TeDDy's. Entering a mount point below it is an error.
    pub(in crate::git) fn open_own(path: &Path) -> io::Result<Top> {
        Ok(Top {
            mounts: Mounts::Refused,
            ..Top::open(path)?
        })
    }

    pub(in crate::git) fn handle(&self, name: &[u8]) -> io::Result<PathHandle> {
        Ok(PathHandle {
            dir: Arc::new(rustix::io::dup(&self.dir)?),
            name: name.to_vec(),
        })
    }

    pub(in crate::git) fn walk(&self, path: &[u8], missing: IfMissing) -> io::Result<WalkResult> {
        if !path.split(|&byte| byte == b'/').all(is_ordinary) {
            return Ok(WalkResult::Refused);
        }

        if let Some(walked) = self.walk_openat2(path) {
            return Ok(walked);
        }

        let mut dir = rustix::io::dup(&self.dir)?;
        let mut start = 0;
        while let Some(length) = path[start..].iter().position(|&byte| byte == b'/') {
            let end = start + length;
            let name = &path[start..end];
            let next = step(&dir, name, missing);
            // Fails if the directory is a mount point.
            if self.mounts == Mounts::Refused && next.is_ok() {
                open_beneath(
                    &dir,
                    Path::new(OsStr::from_bytes(name)),
                    dir_flags(),
                    self.mounts,
                )?;
            }

            dir = match next {
                Ok(next) => next,
                Err(Errno::NOENT) => return Ok(WalkResult::Missing),
                Err(Errno::NOTDIR | Errno::LOOP) => return Ok(WalkResult::Blocked(end)),
                Err(Errno::ACCESS | Errno::PERM) => return Ok(WalkResult::Denied),
                Err(error) => return Err(error.into()),
            };
            if exists(&dir, b".git")? {
                return Ok(WalkResult::Boundary);
            }

            start = end + 1;
        }

        Ok(WalkResult::Handle(PathHandle {
            dir: Arc::new(dir),
            name: path[start..].to_vec(),
        }))
    }

    /// Resolves the directory of a path with one call, if nothing is in the way. Each parent is
    /// then checked from the top, which takes quadratic time, so deep paths are resolved step by
    /// step.
    fn walk_openat2(&self, path: &[u8]) -> Option<WalkResult> {
        let ends = || {
            path.iter()
                .enumerate()
                .filter(|(_, byte)| **byte == b'/')
                .map(|(at, _)| at)
        };
        let last = ends().next_back()?;
        if ends().count() > DEEP {
            return None;
        }

        let above = Path::new(OsStr::from_bytes(&path[..last]));
        let dir = open_beneath(&self.dir, above, dir_flags(), self.mounts).ok()?;
        for end in ends() {
            if exists(&self.dir, &[&path[..end], b"/.git"].concat()).ok()? {
                return Some(WalkResult::Boundary);
            }
        }

        Some(WalkResult::Handle(PathHandle {
            dir: Arc::new(dir),
            name: path[last + 1..].to_vec(),
        }))
    }
}

impl PathHandle {
    pub(in crate::git) fn name(&self) -> &[u8] {
        &self.name
    }

    pub(in crate::git) fn sibling(&self, name: &[u8]) -> PathHandle {
        PathHandle {
            dir: Arc::clone(&self.dir),
            name: name.to_vec(),
        }
    }

    /// Returns a name in this directory; `None` if it is not a directory or is a nested repository.
    pub(in crate::git) fn child(&self, name: &[u8]) -> io::Result<Option<PathHandle>> {
        match step(&self.dir, &self.name, IfMissing::Stop) {
            Ok(dir) if exists(&dir, b".git")? => Ok(None),
            Ok(dir) => Ok(Some(PathHandle {
                dir: Arc::new(dir),
                name: name.to_vec(),
            })),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Lists the directory that contains this name.
    pub(in crate::git) fn siblings(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.dir)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Creates a file or symlink, and returns whether it is executable. Fails if the name exists.
    /// With `durable`, the content is flushed, but not the name.
    pub(in crate::git) fn create(
        &self,
        contents: &FileContents,
        durable: bool,
    ) -> io::Result<bool> {
        let (source, permissions, executable) = match contents {
            FileContents::Link(target) => {
                rustix::fs::symlinkat(target.as_slice(), &self.dir, self.name.as_slice())?;
                return Ok(false);
            }
            FileContents::File {
                source,
                permissions,
                executable,
            } => (source, permissions, executable),
        };
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(match permissions {
            // No other user can read the file before it has the permissions of the file that it
            // replaces.
            Some(permissions) => permissions & 0o700 | 0o200,
            None if *executable => 0o777,
            None => 0o666,
        });

        let mut file = File::from(crate::host::file::openat(
            &self.dir,
            self.name.as_slice(),
            flags,
            mode,
        )?);
        let written = source.write_to(&mut file).and_then(|()| {
            if let Some(permissions) = permissions {
                rustix::fs::fchmod(&file, Mode::from_raw_mode(*permissions))?;
            }
            // Read back, because not every file system has an executable bit.
            Ok(Mode::from_raw_mode(rustix::fs::fstat(&file)?.st_mode).contains(Mode::XUSR))
        });

        let written = written.and_then(|executable| {
            if durable {
                file.sync_all()?;
            }
            Ok(executable)
        });
        if written.is_err() {
            let _ = self.remove();
        }

        written
    }

    /// Swaps this name with another one. `false` if the file system does not support it.
    pub(in crate::git) fn exchange(&self, other: &PathHandle) -> io::Result<bool> {
        self.rename(other, RenameFlags::EXCHANGE)
    }

    /// Renames to a free name of the directory. Fails with `AlreadyExists` if it is taken.
    pub(in crate::git) fn move_to(&self, free: &PathHandle) -> io::Result<()> {
        if self.rename(free, RenameFlags::NOREPLACE)? {
            return Ok(());
        }

        // A hard link also fails if the name is taken. On file systems without hard links there is
        // a race between the check and the rename.
        let (from, to) = (self.name.as_slice(), free.name.as_slice());
        match rustix::fs::linkat(&self.dir, from, &free.dir, to, AtFlags::empty()) {
            Ok(()) => return self.remove(),
            Err(Errno::EXIST) => return Err(Errno::EXIST.into()),
            Err(_) if free.file_type()?.is_some() => return Err(Errno::EXIST.into()),
            Err(_) => {}
        }

        Ok(rustix::fs::renameat(&self.dir, from, &free.dir, to)?)
    }

    /// Renames over another name, for file systems that cannot swap.
    pub(in crate::git) fn replace(&self, other: &PathHandle) -> io::Result<()> {
        Ok(rustix::fs::renameat(
            &self.dir,
            self.name.as_slice(),
            &other.dir,
            other.name.as_slice(),
        )?)
    }

    /// Renames to a free path elsewhere. `false` if that is on another file system.
    pub(in crate::git) fn move_out(&self, free: &Path) -> io::Result<bool> {
        self.move_to_dir(CWD, free.as_os_str().as_bytes())
    }

    /// Like [`PathHandle::move_out`], to a place in another directory.
    pub(in crate::git) fn move_over(&self, free: &PathHandle) -> io::Result<bool> {
        self.move_to_dir(free.dir.as_fd(), &free.name)
    }

    /// Renames to a free path below a directory. `false` as above.
    fn move_to_dir(&self, dir: BorrowedFd<'_>, free: &[u8]) -> io::Result<bool> {
        let from = self.name.as_slice();
        match rustix::fs::renameat_with(&self.dir, from, dir, free, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(true),
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Renames with a flag. `false` if the file system does not support it.
    fn rename(&self, other: &PathHandle, flags: RenameFlags) -> io::Result<bool> {
        let (from, to) = (self.name.as_slice(), other.name.as_slice());
        match rustix::fs::renameat_with(&self.dir, from, &other.dir, to, flags) {
            Ok(()) => Ok(true),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub(in crate::git) fn remove(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(
            &self.dir,
            self.name.as_slice(),
            AtFlags::empty(),
        )?)
    }

    /// Deletes whatever is here, recursively.
    pub(in crate::git) fn remove_all(&self) -> io::Result<()> {
        crate::host::file::remove_at(&self.dir, OsStr::from_bytes(&self.name))
    }

    /// Creates a copy with the content, permissions and mtime of `source`. The kernel shares blocks
    /// if the file system can. Fails if the name exists.
    pub(in crate::git) fn copy_from(&self, source: &mut File) -> io::Result<()> {
        let metadata = source.metadata()?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        let opened = crate::host::file::openat(&self.dir, self.name.as_slice(), flags, mode)?;
        let mut file = File::from(opened);
        let copied = io::copy(source, &mut file)
            .and_then(|_| file.set_permissions(metadata.permissions()))
            .and_then(|()| file.set_modified(metadata.modified()?));

        if copied.is_err() {
            let _ = self.remove();
        }

        copied
    }

    /// Removes the directory if it is empty; `false` otherwise.
    pub(in crate::git) fn remove_empty_dir(&self) -> io::Result<bool> {
        match rustix::fs::unlinkat(&self.dir, self.name.as_slice(), AtFlags::REMOVEDIR) {
            Ok(()) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT | Errno::NOTDIR | Errno::BUSY) => {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn step(dir: &OwnedFd, name: &[u8], missing: IfMissing) -> Result<OwnedFd, Errno> {
    match crate::host::file::openat(dir, name, dir_flags(), Mode::empty()) {
        Err(Errno::NOENT) if missing == IfMissing::Make => {
            match rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(0o777)) {
                // Another thread or process can create it first.
                Ok(()) | Err(Errno::EXIST) => {
                    crate::host::file::openat(dir, name, dir_flags(), Mode::empty())
                }
                Err(error) => Err(error),
            }
        }
        opened => opened,
    }
}

fn dir_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// Returns whether a directory contains a name. A broken symlink counts.
fn exists(dir: &OwnedFd, name: &[u8]) -> io::Result<bool> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether a component is neither `.` nor `..` nor any spelling of `.git`.
fn is_ordinary(component: &[u8]) -> bool {
    let options = gix::validate::path::component::Options {
        protect_windows: false,
        protect_hfs: true,
        protect_ntfs: true,
    };
    gix::validate::path::component(BStr::new(component), None, options).is_ok()
        && !component.contains(&0)
}
