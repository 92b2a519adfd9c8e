//! Opening a folder below another one without following a link anywhere on the way.
//!
//! Linux does it in one call (`openat2`); elsewhere, and where a container forbids that call,
//! the path is walked component by component.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

/// A folder as a place to start from: needs no permission to list it.
#[cfg(target_os = "linux")]
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// A folder as a place to start from.
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// How often a lookup is begun again when folders move under it.
const TRIES: usize = 16;

/// Opens the folder from which everything starts; links are followed.
pub(super) fn open_root(path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(CWD, path, FOLDER, Mode::empty())
}

/// Opens a folder below `root`; the empty path is `root` itself. `LOOP` says that a link is on the
/// way.
pub(super) fn open_folder(root: impl AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    if path.as_os_str().is_empty() {
        return rustix::io::fcntl_dupfd_cloexec(root, 0);
    }
    match at_once(root.as_fd(), path) {
        Some(opened) => opened,
        None => walk(root, path, Missing::Fail),
    }
}

/// Opens a folder below `root` and makes those that are missing.
pub(super) fn make_folder(root: impl AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    match open_folder(root.as_fd(), path) {
        Err(Errno::NOENT) => walk(root, path, Missing::Make),
        opened => opened,
    }
}

/// Opens with one call, where the system has it.
#[cfg(target_os = "linux")]
fn at_once(root: impl AsFd, path: &Path) -> Option<rustix::io::Result<OwnedFd>> {
    use rustix::fs::ResolveFlags;

    static REFUSED: AtomicBool = AtomicBool::new(false);
    if REFUSED.load(Ordering::Relaxed) {
        return None;
    }
    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..TRIES {
        match rustix::fs::openat2(root.as_fd(), path, FOLDER, Mode::empty(), rules) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS | Errno::PERM) => {
                REFUSED.store(true, Ordering::Relaxed);
                return None;
            }
            opened => return Some(opened),
        }
    }
    None
}

/// Says that the system has no such call.
#[cfg(not(target_os = "linux"))]
fn at_once(_root: impl AsFd, _path: &Path) -> Option<rustix::io::Result<OwnedFd>> {
    None
}

/// What is done about a folder that is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// It is an error.
    Fail,
    /// It is made.
    Make,
}

/// Opens component by component.
pub(super) fn walk(root: impl AsFd, path: &Path, missing: Missing) -> rustix::io::Result<OwnedFd> {
    let mut folder = rustix::io::fcntl_dupfd_cloexec(root, 0)?;
    for name in path {
        let step = |from: &OwnedFd| {
            rustix::fs::openat(from, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())
        };
        let opened = match step(&folder) {
            Err(Errno::NOENT) if missing == Missing::Make => {
                match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => step(&folder),
                    Err(e) => Err(e),
                }
            }
            opened => opened,
        };
        folder = match opened {
            Err(Errno::NOTDIR) if is_link(&folder, name) => return Err(Errno::LOOP),
            opened => opened?,
        };
    }
    Ok(folder)
}

/// Returns whether a name in a folder is a link.
fn is_link(folder: &OwnedFd, name: &std::ffi::OsStr) -> bool {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}
