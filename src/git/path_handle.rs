//! Names in directories of a worktree, resolved without following symlinks.
//!
//! On Linux one `openat2` call resolves the path and rejects symlinks. Elsewhere, and to find out
//! what is in the way, each component is opened separately. Nested repositories are rejected. An
//! open directory stays the same one, even if it is renamed in the meantime.

mod state;

use std::ffi::OsStr;
use std::fs::File;
use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
use std::io::{self, Write};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawMode, RenameFlags};
use rustix::io::Errno;

use state::DirRights;
pub(in crate::git) use state::{NameState, Trace};

use crate::git::object::large::Stored;
use crate::git::paths::{self, parent_dirs};
use crate::git::stat;
use crate::host::file;
use crate::host::file::{Mounts, open_beneath};

/// Paths with more directories are resolved step by step.
const DEEP: usize = 64;

#[derive(Debug)]
pub(in crate::git) struct Top {
    dir: OwnedFd,
    /// Whether mount points below it can be entered.
    mounts: Mounts,
}

#[derive(Debug)]
pub(in crate::git) enum WalkResult {
    Handle(PathHandle),
    /// A parent directory does not exist.
    Missing,
    /// Something other than a directory is at this length of the path.
    Blocked(usize),
    Denied,
    /// A parent directory is a nested repository.
    Boundary,
    /// git reserves a component of the path.
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) enum IfMissing {
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
        let folder = file::openat(CWD, path, dir_flags(), Mode::empty())?;
        Ok(Top {
            dir: folder,
            mounts: Mounts::Entered,
        })
    }

    /// Opens the top of one of TeDDy's worktrees. Entering a mount point below it is an error.
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

    /// Removes directories, innermost first, up to the first one that is not empty or must not be
    /// removed.
    pub(in crate::git) fn remove_empty_dirs<'p>(
        &self,
        dirs: impl Iterator<Item = &'p [u8]>,
    ) -> io::Result<()> {
        for dir in dirs {
            let WalkResult::Handle(dir) = self.walk(dir, IfMissing::Stop)? else {
                break;
            };
            let removed = dir.remove_empty_dir();
            // The kernel looks at the permissions first, also if the directory is not empty.
            if let Err(error) = &removed
                && matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
            {
                break;
            }
            if !removed? && !dir.read()?.is_absent() {
                break;
            }
        }
        Ok(())
    }

    /// Resolves the directory of a path with one call, if nothing is in the way. Each parent is
    /// then checked from the top, which takes quadratic time, so deep paths are resolved step by
    /// step.
    fn walk_openat2(&self, path: &[u8]) -> Option<WalkResult> {
        let (above, name) = paths::split(path);
        if above.is_empty() || parent_dirs(path).count() > DEEP {
            return None;
        }

        let dir = Path::new(OsStr::from_bytes(above));
        let dir = open_beneath(&self.dir, dir, dir_flags(), self.mounts).ok()?;
        for above in parent_dirs(path) {
            if exists(&self.dir, &[above, b"/.git"].concat()).ok()? {
                return Some(WalkResult::Boundary);
            }
        }

        Some(WalkResult::Handle(PathHandle {
            dir: Arc::new(dir),
            name: name.to_vec(),
        }))
    }
}

impl PathHandle {
    pub(in crate::git) fn name(&self) -> &[u8] {
        &self.name
    }

    fn os_name(&self) -> &OsStr {
        OsStr::from_bytes(&self.name)
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

    pub(in crate::git) fn siblings(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        stat::each_name(&stat::open_to_list(&self.dir)?, |name, _| {
            names.push(name.to_vec());
        })?;
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
        let mode = match permissions {
            // No other user can read the file before it has the permissions of the file that it
            // replaces.
            Some(permissions) => permissions & 0o700 | 0o200,
            None if *executable => 0o777,
            None => 0o666,
        };
        file::create_file(&self.dir, self.os_name(), mode, |file| {
            source.write_to(file)?;
            if let Some(permissions) = permissions {
                rustix::fs::fchmod(&*file, Mode::from_raw_mode(*permissions))?;
            }
            // Read back, because not every file system has an executable bit.
            let mode = Mode::from_raw_mode(rustix::fs::fstat(&*file)?.st_mode);
            if durable {
                file::sync_open_file(file)?;
            }
            Ok(mode.contains(Mode::XUSR))
        })
    }

    /// Swaps this name with another one. `false` if the file system does not support it.
    pub(in crate::git) fn exchange(&self, other: &PathHandle) -> io::Result<bool> {
        let (from, to) = (self.name.as_slice(), other.name.as_slice());
        match rustix::fs::renameat_with(&self.dir, from, &other.dir, to, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(true),
            Err(error) if file::is_unsupported_call(error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Renames to a free name of the directory. Fails with `AlreadyExists` if it is taken.
    pub(in crate::git) fn move_to(&self, free: &PathHandle) -> io::Result<()> {
        let (from, to) = (self.os_name(), free.os_name());
        Ok(file::rename_to_free_name(&self.dir, from, &free.dir, to)?)
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

    /// Renames to a free path below a directory. `false` if that is on another file system.
    fn move_to_dir(&self, dir: BorrowedFd<'_>, free: &[u8]) -> io::Result<bool> {
        let from = self.name.as_slice();
        match rustix::fs::renameat_with(&self.dir, from, dir, free, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(true),
            Err(Errno::XDEV) => Ok(false),
            Err(error) if file::is_unsupported_call(error) => Ok(false),
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

    pub(in crate::git) fn remove_all(&self) -> io::Result<()> {
        file::remove_at(&self.dir, self.os_name())
    }

    /// Creates a copy with the content, permissions and mtime of `source`. The kernel shares blocks
    /// if the file system can. Fails if the name exists.
    pub(in crate::git) fn copy_from(&self, source: &mut File) -> io::Result<()> {
        let metadata = source.metadata()?;
        // Private until it has the permissions of the source.
        file::create_file(&self.dir, self.os_name(), 0o600, |file| {
            io::copy(source, file)?;
            file.set_permissions(metadata.permissions())?;
            file.set_modified(metadata.modified()?)
        })
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
    match file::openat(dir, name, dir_flags(), Mode::empty()) {
        Err(Errno::NOENT) if missing == IfMissing::Make => {
            match rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(0o777)) {
                // Another thread or process can create it first.
                Ok(()) | Err(Errno::EXIST) => file::openat(dir, name, dir_flags(), Mode::empty()),
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
    paths::is_valid_name(component) && !component.contains(&0)
}

#[derive(Debug, Clone)]
pub(in crate::git) enum OnDisk {
    Absent,
    File {
        body: FileBody,
        permissions: RawMode,
    },
    Link(Vec<u8>),
    Dir,
    /// A special file, or a file that is too large or unreadable.
    Other,
}

#[derive(Debug, Clone)]
pub(in crate::git) enum FileBody {
    Bytes(Vec<u8>),
    /// Larger than [`LARGE`](crate::git::object::large::LARGE): kept open instead of in memory.
    Large {
        file: Arc<File>,
        size: u64,
    },
}

#[derive(Debug, Clone)]
pub(in crate::git) enum FileContents {
    File {
        source: ByteSource,
        /// Permissions; `None` for the defaults of a new file.
        permissions: Option<RawMode>,
        executable: bool,
    },
    Link(Vec<u8>),
}

#[derive(Debug, Clone)]
pub(in crate::git) enum ByteSource {
    Bytes(Vec<u8>),
    Stored(Stored),
}

impl OnDisk {
    pub(in crate::git) fn is_absent(&self) -> bool {
        matches!(self, OnDisk::Absent)
    }

    pub(in crate::git) fn is_dir(&self) -> bool {
        matches!(self, OnDisk::Dir)
    }

    /// The content of a file that is not large.
    pub(in crate::git) fn bytes(&self) -> Option<&[u8]> {
        match self {
            OnDisk::File {
                body: FileBody::Bytes(bytes),
                ..
            } => Some(bytes),
            _ => None,
        }
    }
}

impl ByteSource {
    fn write_to(&self, file: &mut File) -> io::Result<()> {
        match self {
            ByteSource::Bytes(bytes) => file.write_all(bytes),
            ByteSource::Stored(stored) => stored.copy_to(file),
        }
    }
}

/// Limit, because each directory is open while its contents are checked.
const MAX_EMPTY_DIRS: usize = 256;

impl PathHandle {
    /// Removes the directory and its subdirectories if they contain no file. Otherwise `false`, and
    /// all of them stay.
    pub(in crate::git) fn remove_empty_dirs(&self) -> io::Result<bool> {
        // An empty directory need not be opened, which its permissions could forbid.
        if self.remove_empty_dir()? {
            return Ok(true);
        }

        let mut entries = vec![self.sibling(&self.name)];
        let mut next = 0;
        while next < entries.len() {
            if entries[next].file_type()? != Some(FileType::Directory)
                || entries.len() > MAX_EMPTY_DIRS
            {
                return Ok(false);
            }
            let Ok(Some(inside)) = entries[next].child(b".") else {
                return Ok(false);
            };
            let names = inside.siblings()?;
            entries.extend(names.iter().map(|name| inside.sibling(name)));
            next += 1;
        }

        for dir in entries.iter().rev() {
            if !dir.remove_empty_dir()? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Flushes the content of a file. Does nothing for a symlink.
pub(in crate::git) fn sync_contents(handle: &PathHandle) -> io::Result<()> {
    let opened = match handle.open(OFlags::RDONLY) {
        // The file is possibly not readable by its owner.
        Err(Errno::ACCESS) => handle.open(OFlags::WRONLY),
        opened => opened,
    };
    match opened {
        Ok(file) => file::sync_open_file(&file),
        Err(Errno::LOOP | Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Flushes the directory that contains the name. `false` if its file system cannot flush single
/// directories.
pub(in crate::git) fn sync_parent_dir(handle: &PathHandle) -> io::Result<bool> {
    file::sync_dir(&handle.dir)
}

// Caches the last resolved directory for the next path in it.
//
// The result of a walk is only true at its own instant: the process can be paused for longer than
// [`MAX_RECENT_AGE`] before it uses the result. So a directory that was resolved within that time is as
// good as one resolved just now, and many files in one directory cost one walk per millisecond.
// The open directory itself is never a symlink.

const MAX_RECENT_AGE: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub(in crate::git) struct RecentLookup {
    last: Option<RecentDir>,
}

#[derive(Debug)]
struct RecentDir {
    /// Empty for the top.
    path: Vec<u8>,
    dir: Arc<OwnedFd>,
    began: Instant,
    rights: Option<DirRights>,
}

impl RecentLookup {
    /// Resolves the directory of a path like [`Top::walk`], unless it is cached.
    pub(in crate::git) fn walk(
        &mut self,
        top: &Top,
        path: &[u8],
        missing: IfMissing,
    ) -> io::Result<WalkResult> {
        let (dir, name) = paths::split(path);
        let is_here = |recent: &&RecentDir| {
            recent.path == dir && is_ordinary(name) && recent.began.elapsed() < MAX_RECENT_AGE
        };
        if let Some(recent) = self.last.as_ref().filter(is_here) {
            return Ok(WalkResult::Handle(PathHandle {
                dir: Arc::clone(&recent.dir),
                name: name.to_vec(),
            }));
        }

        // Before the walk, so the directory is never older than it seems.
        let began = Instant::now();
        let walked = top.walk(path, missing)?;
        self.last = match &walked {
            WalkResult::Handle(handle) => Some(RecentDir {
                path: dir.to_vec(),
                dir: Arc::clone(&handle.dir),
                began,
                rights: None,
            }),
            _ => None,
        };

        Ok(walked)
    }

    /// Like [`PathHandle::is_free`], but reads the rights of the cached directory only once.
    pub(in crate::git) fn is_free(&mut self, handle: &PathHandle) -> io::Result<bool> {
        let current = self.last.as_mut();
        let Some(recent) = current.filter(|last| Arc::ptr_eq(&last.dir, &handle.dir)) else {
            return handle.is_free();
        };
        let rights = match recent.rights {
            Some(rights) => rights,
            None => *recent.rights.insert(handle.rights()?),
        };

        handle.is_free_in(rights)
    }

    /// Clears the cache, because the directory was possibly removed.
    pub(in crate::git) fn forget(&mut self) {
        self.last = None;
    }
}

impl Top {
    /// Returns whether the file system might support cloning. Ext4 and tmpfs are known not to;
    /// others are tried.
    #[cfg(target_os = "linux")]
    pub(in crate::git) fn may_share_blocks(&self) -> bool {
        let cannot = [libc::EXT4_SUPER_MAGIC, libc::TMPFS_MAGIC];
        rustix::fs::fstatfs(&self.dir).is_ok_and(|stat| !cannot.contains(&stat.f_type))
    }

    #[cfg(not(target_os = "linux"))]
    pub(in crate::git) fn may_share_blocks(&self) -> bool {
        false
    }
}

/// Opens a regular file if it is readable and has this size.
pub(in crate::git) fn open_file_of_size(handle: &PathHandle, size: u64) -> Option<File> {
    let file = handle.open(OFlags::RDONLY).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    (is_regular && u64::try_from(stat.st_size) == Ok(size)).then_some(file)
}

/// Creates a clone of `source`. Fails without a trace if the file system cannot clone or the name
/// exists.
pub(in crate::git) fn clone_blocks(
    handle: &PathHandle,
    source: &File,
    executable: bool,
) -> io::Result<()> {
    let mode = if executable { 0o777 } else { 0o666 };
    file::create_file(&handle.dir, handle.os_name(), mode, |file| {
        ficlone(file, source)
    })
}

#[cfg(target_os = "linux")]
fn ficlone(file: &File, source: &File) -> io::Result<()> {
    Ok(rustix::fs::ioctl_ficlone(file, source)?)
}

#[cfg(not(target_os = "linux"))]
fn ficlone(_file: &File, _source: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_walked_to_again_after_a_moment() {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(outer.path().join("a/b")).unwrap();
        let top = Top::open(outer.path()).unwrap();
        let mut recent = RecentLookup::default();
        let dir = |recent: &mut RecentLookup, path: &str| match recent
            .walk(&top, path.as_bytes(), IfMissing::Stop)
            .unwrap()
        {
            WalkResult::Handle(handle) => Ok(handle.dir),
            other => Err(format!("{other:?}")),
        };
        let first = dir(&mut recent, "a/b/1").unwrap();
        recent.last.as_mut().unwrap().began = Instant::now() + Duration::from_secs(60);
        let second = dir(&mut recent, "a/b/2").unwrap();
        assert!(Arc::ptr_eq(&first, &second));

        recent.last.as_mut().unwrap().began = Instant::now() - MAX_RECENT_AGE;
        let third = dir(&mut recent, "a/b/3").unwrap();
        assert!(!Arc::ptr_eq(&first, &third));
        assert_eq!(dir(&mut recent, "a/b/.git").unwrap_err(), "Refused");
        recent.forget();
        std::fs::rename(outer.path().join("a"), outer.path().join("c")).unwrap();
        assert_eq!(dir(&mut recent, "a/b/4").unwrap_err(), "Missing");
    }
}
