//! Opening what is below a folder without following a link anywhere on the way: the one place that
//! knows how.
//!
//! Linux does it in one call (`openat2`); elsewhere, and where a container forbids that call,
//! the path is walked component by component.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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

/// What a way below a folder does about other file systems that are mounted there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mounts {
    /// It enters them: a person may keep part of a project elsewhere.
    Entered,
    /// It ends there with `XDEV`: nobody has a reason to mount something in a folder of ours, and
    /// what is mounted there is not ours to change.
    Refused,
}

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
    match at_once(root.as_fd(), path, FOLDER, Mounts::Entered) {
        Some(opened) => opened,
        None => walk(root, path, MissingFolder::Fail),
    }
}

/// Opens a folder below `root` and makes those that are missing.
pub(super) fn make_folder(root: impl AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    match open_folder(root.as_fd(), path) {
        Err(Errno::NOENT) => walk(root, path, MissingFolder::Make),
        opened => opened,
    }
}

/// Opens what is at a path below an open folder, of whatever kind; no link is followed, not even at
/// its end. The empty path is the folder itself.
///
/// # Errors
/// The system's: `LOOP` or `NOTDIR` for a link on the way, `XDEV` for a mount that is refused.
pub fn open_beneath(
    top: impl AsFd,
    path: &Path,
    flags: OFlags,
    mounts: Mounts,
) -> rustix::io::Result<OwnedFd> {
    let here = path.as_os_str().is_empty();
    let path = if here { Path::new(".") } else { path };
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match at_once(top.as_fd(), path, flags, mounts) {
        Some(opened) => opened,
        None => step_by_step(top.as_fd(), path, flags, mounts),
    }
}

/// Opens with one call, where the system has it.
#[cfg(target_os = "linux")]
fn at_once(
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
            // The kernel gives up if folders are renamed while it looks.
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Old kernels do not have the call, and some containers forbid it.
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
fn at_once(
    _root: BorrowedFd<'_>,
    _path: &Path,
    _flags: OFlags,
    _mounts: Mounts,
) -> Option<rustix::io::Result<OwnedFd>> {
    None
}

/// Opens component by component, the last one as it is asked for.
pub(super) fn step_by_step(
    top: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mounts: Mounts,
) -> rustix::io::Result<OwnedFd> {
    let last = path.file_name().unwrap_or(OsStr::new("."));
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => {
            let mut folder = rustix::io::fcntl_dupfd_cloexec(top, 0)?;
            for name in parent {
                folder = open_step(folder.as_fd(), name, FOLDER, mounts)?;
            }
            Some(folder)
        }
        _ => None,
    };
    open_step(
        folder.as_ref().map_or(top, AsFd::as_fd),
        last,
        flags,
        mounts,
    )
}

/// Opens a name in a folder, and compares where it is if mounts are refused.
fn open_step(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    flags: OFlags,
    mounts: Mounts,
) -> rustix::io::Result<OwnedFd> {
    let opened = rustix::fs::openat(folder, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
    if mounts == Mounts::Refused
        && rustix::fs::fstat(&opened)?.st_dev != rustix::fs::fstat(folder)?.st_dev
    {
        return Err(Errno::XDEV);
    }
    Ok(opened)
}

/// What is done about a folder that is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingFolder {
    /// It is an error.
    Fail,
    /// It is made.
    Make,
}

/// Opens component by component.
pub(super) fn walk(
    root: impl AsFd,
    path: &Path,
    missing: MissingFolder,
) -> rustix::io::Result<OwnedFd> {
    let mut folder = rustix::io::fcntl_dupfd_cloexec(root, 0)?;
    for name in path {
        let step = |from: &OwnedFd| {
            rustix::fs::openat(from, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())
        };
        let opened = match step(&folder) {
            Err(Errno::NOENT) if missing == MissingFolder::Make => {
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
