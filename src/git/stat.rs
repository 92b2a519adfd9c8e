//! What the file system tells of a file without reading it, and when that suffices.

use std::ffi::OsStr;
use std::io;
#[cfg(target_os = "linux")]
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::index::entry::Stat;
use gix::index::entry::stat::{Options, Time};
use rustix::fd::{AsFd, OwnedFd};
#[cfg(target_os = "linux")]
use rustix::fs::RawDir;
use rustix::fs::{AtFlags, FileType, OFlags};
use rustix::io::Errno;

use crate::host::file::{Mounts, open_beneath};

/// A folder to look at what is in it; it is opened once more to be listed.
#[cfg(target_os = "linux")]
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
/// A folder to look at what is in it.
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// So many bytes of names are asked for at once.
#[cfg(target_os = "linux")]
const BLOCK: usize = 32 << 10;

/// What is at a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::git) enum NameKind {
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A folder.
    Folder,
    /// A pipe, socket or device.
    Special,
}

impl From<FileType> for NameKind {
    fn from(file_type: FileType) -> NameKind {
        match file_type {
            FileType::RegularFile => NameKind::File,
            FileType::Symlink => NameKind::Link,
            FileType::Directory => NameKind::Folder,
            _ => NameKind::Special,
        }
    }
}

/// What the file system tells of one name.
#[derive(Debug, Clone, Copy)]
pub(in crate::git) struct NameStat {
    /// What it is.
    pub(in crate::git) kind: NameKind,
    /// Times, numbers and size as git's index keeps them.
    pub(in crate::git) stat: Stat,
    /// The whole size.
    pub(in crate::git) size: u64,
    /// Whether its owner may execute it.
    pub(in crate::git) executable: bool,
}

impl From<rustix::fs::Stat> for NameStat {
    #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
    fn from(s: rustix::fs::Stat) -> NameStat {
        NameStat {
            kind: FileType::from_raw_mode(s.st_mode).into(),
            stat: as_in_index(&s),
            size: s.st_size as u64,
            executable: s.st_mode & 0o100 != 0,
        }
    }
}

/// Returns what git's index keeps of a file's times and numbers: the low 32 bits of each.
#[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
pub(in crate::git) fn as_in_index(s: &rustix::fs::Stat) -> Stat {
    Stat {
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
    }
}

/// Returns what is at a name of an open folder, links not followed.
pub(in crate::git) fn look(folder: impl AsFd, name: &[u8]) -> io::Result<NameStat> {
    Ok(rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.into())
}

/// Returns what an open file is.
pub(in crate::git) fn look_at(file: impl AsFd) -> io::Result<NameStat> {
    Ok(rustix::fs::fstat(file)?.into())
}

/// Opens a path below an open folder without following a link anywhere.
pub(in crate::git) fn open_below(
    top: impl AsFd,
    path: &[u8],
    flags: OFlags,
) -> io::Result<OwnedFd> {
    let path = Path::new(OsStr::from_bytes(path));
    // Without NONBLOCK the opening of a pipe would wait for somebody who writes.
    Ok(open_beneath(
        top,
        path,
        flags | OFlags::NONBLOCK,
        Mounts::Entered,
    )?)
}

/// Opens a folder below an open one to look at what is in it, no link followed. Not to be listed, it
/// is opened in less time.
pub(in crate::git) fn open_folder(top: impl AsFd, path: &[u8]) -> io::Result<OwnedFd> {
    let path = Path::new(OsStr::from_bytes(path));
    Ok(open_beneath(top, path, FOLDER, Mounts::Entered)?)
}

/// Opens a folder once more, to be listed.
pub(in crate::git) fn open_to_list(folder: impl AsFd) -> io::Result<OwnedFd> {
    open_below(folder, b"", OFlags::RDONLY | OFlags::DIRECTORY)
}

/// Returns whether a failure means that there is nothing at a path.
pub(in crate::git) fn is_absent(error: &io::Error) -> bool {
    // A link where a folder was reads as ELOOP: what was below it is gone.
    let link = error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
    link || matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Returns whether a failure says nothing of a path: this process, or the system, has no more room.
pub(in crate::git) fn is_exhausted(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

/// How stats are compared: as the user's git is set up, and to the nanosecond.
pub(in crate::git) fn options(gix: &gix::Repository) -> Options {
    Options {
        use_nsec: true,
        ..gix.stat_options().unwrap_or_default()
    }
}

/// The moment from which on a time stamp proves nothing: a file that was changed in it may have
/// been changed again without a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::git) struct Stamp(pub(in crate::git) Time);

impl Stamp {
    /// Returns whether something with this stat may have changed without a trace.
    pub(in crate::git) fn is_racy(self, stat: &Stat) -> bool {
        stat.mtime >= self.0
    }
}

/// Returns the names of a folder with what they are.
pub(in crate::git) fn names(folder: &OwnedFd) -> io::Result<Vec<(Vec<u8>, NameKind)>> {
    let mut names = Vec::new();
    each_name(folder, |name, kind| names.push((name.to_vec(), kind)))?;
    Ok(names)
}

/// Goes through the names of a folder with what they are.
pub(in crate::git) fn each_name(
    folder: &OwnedFd,
    mut add: impl FnMut(&[u8], NameKind),
) -> io::Result<()> {
    each_listed(folder, |name, file_type| {
        if name != b"." && name != b".." {
            let kind = match file_type {
                FileType::Unknown => match look(folder, name) {
                    Err(error) if is_absent(&error) => return Ok(()),
                    looked => looked?.kind,
                },
                known => known.into(),
            };
            add(name, kind);
        }
        Ok(())
    })
}

/// Goes through the names of an open folder. It is not opened once more to be read: with thousands
/// of folders that takes as long as reading them.
#[cfg(target_os = "linux")]
fn each_listed(
    folder: &OwnedFd,
    mut add: impl FnMut(&[u8], FileType) -> io::Result<()>,
) -> io::Result<()> {
    rustix::fs::seek(folder, rustix::fs::SeekFrom::Start(0))?;
    let mut buffer = [MaybeUninit::uninit(); BLOCK];
    let mut entries = RawDir::new(folder, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = match entry {
            // The folder was removed while it was open: nothing is in it.
            Err(Errno::NOENT) => return Ok(()),
            entry => entry?,
        };
        add(entry.file_name().to_bytes(), entry.file_type())?;
    }
    Ok(())
}

/// Goes through the names of an open folder.
#[cfg(not(target_os = "linux"))]
fn each_listed(
    folder: &OwnedFd,
    mut add: impl FnMut(&[u8], FileType) -> io::Result<()>,
) -> io::Result<()> {
    for entry in rustix::fs::Dir::read_from(folder)? {
        let entry = entry?;
        add(entry.file_name().to_bytes(), entry.file_type())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_listed_whole_and_as_often_as_it_is_asked_for() {
        let outer = tempfile::tempdir().unwrap();
        let mut expected: Vec<_> = (0..2_000)
            .map(|number| format!("{number}-{}", "x".repeat(number % 200)).into_bytes())
            .collect();
        expected.sort();
        for name in &expected {
            std::fs::write(outer.path().join(OsStr::from_bytes(name)), "").unwrap();
        }
        std::fs::create_dir(outer.path().join("folder")).unwrap();
        std::os::unix::fs::symlink("folder", outer.path().join("link")).unwrap();

        let folder = OwnedFd::from(std::fs::File::open(outer.path()).unwrap());
        for _ in 0..2 {
            let mut found = names(&folder).unwrap();
            found.sort();
            let (files, others): (Vec<_>, Vec<_>) = found
                .into_iter()
                .partition(|(_, kind)| *kind == NameKind::File);
            let files: Vec<_> = files.into_iter().map(|(name, _)| name).collect();
            assert!(files == expected);
            let folder = (b"folder".to_vec(), NameKind::Folder);
            assert_eq!(others, [folder, (b"link".to_vec(), NameKind::Link)]);
        }
    }

    #[test]
    fn what_says_nothing_of_a_path_is_told_from_what_does() {
        let check = |errno: Errno, [absent, exhausted]: [bool; 2]| {
            let error = io::Error::from(errno);
            assert_eq!(
                [is_absent(&error), is_exhausted(&error)],
                [absent, exhausted]
            );
        };
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            check(errno, [false, true]);
        }
        for errno in [Errno::NOENT, Errno::NOTDIR, Errno::LOOP] {
            check(errno, [true, false]);
        }
        check(Errno::ACCESS, [false, false]);
    }

    /// A build removes folders all the time.
    #[test]
    fn nothing_is_in_a_folder_that_was_removed_while_it_was_open() {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().join("folder");
        std::fs::create_dir(&path).unwrap();
        let folder = OwnedFd::from(std::fs::File::open(&path).unwrap());
        std::fs::remove_dir(&path).unwrap();
        assert_eq!(names(&folder).unwrap(), []);
    }
}
