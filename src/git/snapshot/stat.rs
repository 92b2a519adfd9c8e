//! What the file system tells of a file without reading it, and when that suffices.

use std::io;

use gix::index::entry::Stat;
use gix::index::entry::stat::{Options, Time};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

/// What is at a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A folder.
    Folder,
    /// A pipe, socket or device.
    Special,
}

impl From<FileType> for Kind {
    fn from(file_type: FileType) -> Kind {
        match file_type {
            FileType::RegularFile => Kind::File,
            FileType::Symlink => Kind::Link,
            FileType::Directory => Kind::Folder,
            _ => Kind::Special,
        }
    }
}

/// What the file system tells of one name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// What it is.
    pub(super) kind: Kind,
    /// Times, numbers and size as git's index keeps them.
    pub(super) stat: Stat,
    /// The whole size.
    pub(super) size: u64,
    /// Whether its owner may execute it.
    pub(super) executable: bool,
}

impl From<rustix::fs::Stat> for Seen {
    #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
    fn from(s: rustix::fs::Stat) -> Seen {
        let stat = Stat {
            mtime: Time {
                secs: s.st_mtime as u32,
                nsecs: s.st_mtime_nsec as u32,
            },
            ctime: Time {
                secs: s.st_ctime as u32,
                nsecs: s.st_ctime_nsec as u32,
            },
            dev: s.st_dev as u32,
            ino: s.st_ino as u32,
            uid: s.st_uid,
            gid: s.st_gid,
            size: s.st_size as u32,
        };
        let kind = FileType::from_raw_mode(s.st_mode).into();
        Seen {
            kind,
            stat,
            size: s.st_size as u64,
            executable: s.st_mode & 0o100 != 0,
        }
    }
}

/// Returns what is at a name of an open folder, links not followed.
pub(super) fn look(folder: impl AsFd, name: &[u8]) -> io::Result<Seen> {
    Ok(rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.into())
}

/// Returns what an open file is.
pub(super) fn look_at(file: impl AsFd) -> io::Result<Seen> {
    Ok(rustix::fs::fstat(file)?.into())
}

/// Opens a path below an open folder without following a link anywhere.
pub(super) fn open_below(top: impl AsFd, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let path = if path.is_empty() { b"." } else { path };
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&top, path, flags, Mode::empty(), resolve) {
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return Ok(opened?),
        }
    }
    step_by_step(top, path, flags)
}

/// Opens a path one folder after another, for kernels that cannot do it at once.
fn step_by_step(top: impl AsFd, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let steps: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
    let (last, folders) = steps
        .split_last()
        .expect("splitting yields one part at least");
    let walk = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut at: Option<OwnedFd> = None;
    for folder in folders {
        at = Some(rustix::fs::openat(
            at.as_ref().map_or(top.as_fd(), AsFd::as_fd),
            *folder,
            walk,
            Mode::empty(),
        )?);
    }
    Ok(rustix::fs::openat(
        at.as_ref().map_or(top.as_fd(), AsFd::as_fd),
        *last,
        flags,
        Mode::empty(),
    )?)
}

/// Returns whether a failure means that there is nothing at a path.
pub(super) fn is_absent(error: &io::Error) -> bool {
    // A link where a folder was reads as ELOOP: what was below it is gone.
    let link = error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
    link || matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// How stats are compared: as the user's git is set up, and to the nanosecond.
pub(super) fn options(gix: &gix::Repository) -> Options {
    Options {
        use_nsec: true,
        ..gix.stat_options().unwrap_or_default()
    }
}

/// The moment from which on a time stamp proves nothing: a file that was changed in it may have
/// been changed again without a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp(pub(super) Time);

impl Stamp {
    /// Returns whether something with this stat may have changed without a trace.
    pub(super) fn is_racy(self, stat: &Stat) -> bool {
        stat.mtime >= self.0
    }
}
