//! Opens paths below a directory without following links.
//!
//! Uses `openat2` on Linux. Other systems, and containers that forbid the call, walk the path
//! component by component.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Handle to a directory. `O_PATH` needs no permission to list it.
#[cfg(target_os = "linux")]
const DIR: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// Retries of `openat2` after `EAGAIN`.
const TRIES: usize = 16;

/// How to treat file systems that are mounted below the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mounts {
    /// Enter them. The user can keep a part of the project on another file system.
    Entered,
    /// Fail with `EXDEV`. For directories that only TeDDy uses: a mount in one is not ours to
    /// change.
    Refused,
}

/// Like `openat` of the system, but retried if a signal interrupts it. On network and FUSE file
/// systems, opening a file can take long enough for that.
#[expect(clippy::disallowed_methods, reason = "this is its one home")]
pub fn openat<P: rustix::path::Arg + Copy>(
    folder: impl AsFd,
    path: P,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    rustix::io::retry_on_intr(|| rustix::fs::openat(folder.as_fd(), path, flags, mode))
}

/// Repeats a call of the standard library that does not do so itself, such as `read_dir`, while
/// signals interrupt it.
pub fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Follows links.
pub(super) fn open_root(path: &Path) -> rustix::io::Result<OwnedFd> {
    openat(CWD, path, DIR, Mode::empty())
}

/// Opens a directory below `root`; the empty path is `root` itself. Fails with `ELOOP` if a
/// component is a link.
pub(super) fn open_dir(root: impl AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    if path.as_os_str().is_empty() {
        return rustix::io::fcntl_dupfd_cloexec(root, 0);
    }
    match open_with_openat2(root.as_fd(), path, DIR, Mounts::Entered) {
        Some(opened) => opened,
        None => step_by_step(root.as_fd(), path, DIR, Mounts::Entered),
    }
}

/// Like [`open_dir`], but creates missing directories.
pub(super) fn make_dir(root: impl AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    match open_dir(root.as_fd(), path) {
        Err(Errno::NOENT) => {}
        opened => return opened,
    }
    let mut dir = rustix::io::fcntl_dupfd_cloexec(root, 0)?;
    for name in path {
        let step = |dir: &OwnedFd| open_step(dir.as_fd(), name, DIR, Mounts::Entered);
        dir = match step(&dir) {
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o777)) {
                    // Another process can create the directory at the same time.
                    Ok(()) | Err(Errno::EXIST) => step(&dir)?,
                    Err(error) => return Err(error),
                }
            }
            opened => opened?,
        };
    }
    Ok(dir)
}

/// Opens a file of any type below an open directory; the empty path is the directory itself. Fails
/// with `ELOOP` or `ENOTDIR` at a link, and with `EXDEV` at a refused mount.
pub fn open_beneath(
    top: impl AsFd,
    path: &Path,
    flags: OFlags,
    mounts: Mounts,
) -> rustix::io::Result<OwnedFd> {
    let here = path.as_os_str().is_empty();
    let path = if here { Path::new(".") } else { path };
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match open_with_openat2(top.as_fd(), path, flags, mounts) {
        Some(opened) => opened,
        None => step_by_step(top.as_fd(), path, flags, mounts),
    }
}

/// Returns `None` if the system has no such call.
#[cfg(target_os = "linux")]
fn open_with_openat2(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mounts: Mounts,
) -> Option<rustix::io::Result<OwnedFd>> {
    use rustix::fs::ResolveFlags;

    static REFUSED: AtomicBool = AtomicBool::new(false);

    if REFUSED.load(Ordering::Relaxed) {
        return None;
    }

    let mut rules = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rules.set(ResolveFlags::NO_XDEV, mounts == Mounts::Refused);
    for _ in 0..TRIES {
        match rustix::fs::openat2(root, path, flags, Mode::empty(), rules) {
            // A rename below the root during the lookup makes the kernel give up.
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Linux before 5.6 lacks the call, and some containers forbid it.
            Err(Errno::NOSYS | Errno::PERM) => {
                REFUSED.store(true, Ordering::Relaxed);
                return None;
            }
            opened => return Some(opened),
        }
    }

    None
}

#[cfg(not(target_os = "linux"))]
fn open_with_openat2(
    _root: BorrowedFd<'_>,
    _path: &Path,
    _flags: OFlags,
    _mounts: Mounts,
) -> Option<rustix::io::Result<OwnedFd>> {
    None
}

/// Like `openat2`, but opens the components one after the other.
pub(super) fn step_by_step(
    top: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mounts: Mounts,
) -> rustix::io::Result<OwnedFd> {
    let last = path.file_name().unwrap_or(OsStr::new("."));
    let dir = match path.parent() {
        Some(parent) if parent != Path::new("") => {
            let mut dir = rustix::io::fcntl_dupfd_cloexec(top, 0)?;
            for name in parent {
                dir = open_step(dir.as_fd(), name, DIR, mounts)?;
            }
            Some(dir)
        }
        _ => None,
    };
    open_step(dir.as_ref().map_or(top, AsFd::as_fd), last, flags, mounts)
}

fn open_step(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    flags: OFlags,
    mounts: Mounts,
) -> rustix::io::Result<OwnedFd> {
    let opened = match openat(dir, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
        // With `O_DIRECTORY`, a link fails with `ENOTDIR` and not with `ELOOP`.
        Err(Errno::NOTDIR) if is_link(dir, name) => return Err(Errno::LOOP),
        opened => opened?,
    };
    // Unlike `RESOLVE_NO_XDEV`, this does not detect a bind mount of the same file system.
    if mounts == Mounts::Refused
        && rustix::fs::fstat(&opened)?.st_dev != rustix::fs::fstat(dir)?.st_dev
    {
        return Err(Errno::XDEV);
    }
    Ok(opened)
}

fn is_link(dir: BorrowedFd<'_>, name: &OsStr) -> bool {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}
