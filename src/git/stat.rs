//! Stats of files, and how far they prove that a file is unchanged.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::index::entry::Stat;
use gix::index::entry::stat::{Options, Time};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, OFlags};
use rustix::io::Errno;

use crate::host::file::{Mounts, open_beneath};

/// Flags for a directory whose entries are read. Listing it needs another open.
#[cfg(target_os = "linux")]
const DIR_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
#[cfg(not(target_os = "linux"))]
const DIR_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::git) enum NameKind {
    File,
    Link,
    Dir,
    Special,
}

impl From<FileType> for NameKind {
    fn from(file_type: FileType) -> NameKind {
        match file_type {
            FileType::RegularFile => NameKind::File,
            FileType::Symlink => NameKind::Link,
            FileType::Directory => NameKind::Dir,
            _ => NameKind::Special,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(in crate::git) struct NameStat {
    pub(in crate::git) kind: NameKind,
    /// Times, numbers and size as in git's index.
    pub(in crate::git) stat: Stat,
    /// Full size, not truncated.
    pub(in crate::git) size: u64,
    /// Whether the owner's executable bit is set.
    pub(in crate::git) executable: bool,
    /// Whether the owner can change names in it, if it is a directory.
    pub(in crate::git) writable: bool,
}

impl From<rustix::fs::Stat> for NameStat {
    #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
    fn from(s: rustix::fs::Stat) -> NameStat {
        NameStat {
            kind: FileType::from_raw_mode(s.st_mode).into(),
            stat: as_in_index(&s),
            size: s.st_size as u64,
            executable: s.st_mode & 0o100 != 0,
            writable: s.st_mode & 0o300 == 0o300,
        }
    }
}

/// Converts a stat as git's index does, to the low 32 bits of each field.
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

/// Returns the stat of a name in an open directory, without following symlinks.
pub(in crate::git) fn stat_name(dir: impl AsFd, name: &[u8]) -> io::Result<NameStat> {
    Ok(rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?.into())
}

pub(in crate::git) fn stat_fd(file: impl AsFd) -> io::Result<NameStat> {
    Ok(rustix::fs::fstat(file)?.into())
}

/// Opens a path below an open directory without following symlinks.
pub(in crate::git) fn open_below(
    top: impl AsFd,
    path: &[u8],
    flags: OFlags,
) -> io::Result<OwnedFd> {
    let path = Path::new(OsStr::from_bytes(path));
    // Without NONBLOCK, opening a pipe would wait for a writer.
    Ok(open_beneath(
        top,
        path,
        flags | OFlags::NONBLOCK,
        Mounts::Entered,
    )?)
}

/// Opens a directory to read entries by name, without following symlinks. Faster than opening it
/// for listing.
pub(in crate::git) fn open_dir(top: impl AsFd, path: &[u8]) -> io::Result<OwnedFd> {
    let path = Path::new(OsStr::from_bytes(path));
    Ok(open_beneath(top, path, DIR_FLAGS, Mounts::Entered)?)
}

/// Opens a directory again for listing.
pub(in crate::git) fn open_to_list(dir: impl AsFd) -> io::Result<OwnedFd> {
    open_below(dir, b"", OFlags::RDONLY | OFlags::DIRECTORY)
}

pub(in crate::git) fn is_absent(error: &io::Error) -> bool {
    // ELOOP: a symlink has replaced a parent directory.
    let link = error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
    link || matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Returns whether an error says nothing about the path: the process or system ran out of
/// descriptors or memory.
pub(in crate::git) fn is_exhausted(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

/// Options for comparing stats: the user's git configuration, with nanoseconds.
pub(in crate::git) fn options(gix: &gix::Repository) -> Options {
    Options {
        use_nsec: true,
        ..gix.stat_options().unwrap_or_default()
    }
}

/// A time from which on stats prove nothing: a file that changed in the same clock tick can have
/// changed again with the same stat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::git) struct Stamp(pub(in crate::git) Time);

impl Stamp {
    pub(in crate::git) fn is_racy(self, stat: &Stat) -> bool {
        self.is_racy_at(stat.mtime, stat.ctime)
    }

    /// A program can set the mtime back (`touch -d`, `cp -p`), but not the ctime.
    pub(in crate::git) fn is_racy_at(self, mtime: Time, ctime: Time) -> bool {
        mtime.max(ctime) >= self.0
    }
}

pub(in crate::git) fn names(dir: &OwnedFd) -> io::Result<Vec<(Vec<u8>, NameKind)>> {
    let mut names = Vec::new();
    each_name(dir, |name, kind| names.push((name.to_vec(), kind)))?;
    Ok(names)
}

pub(in crate::git) fn each_name(
    dir: &OwnedFd,
    mut add: impl FnMut(&[u8], NameKind),
) -> io::Result<()> {
    // With thousands of directories, opening each again takes as long as reading it.
    let mut entries = Dir::new(dir.try_clone()?)?;
    entries.rewind();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let kind = match entry.file_type() {
            // Not every file system returns the type.
            FileType::Unknown => match stat_name(dir, name) {
                Err(error) if is_absent(&error) => continue,
                result => result?.kind,
            },
            listed => listed.into(),
        };
        add(name, kind);
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

        let dir = OwnedFd::from(std::fs::File::open(outer.path()).unwrap());
        for _ in 0..2 {
            let mut listed = names(&dir).unwrap();
            listed.sort();
            let (files, others): (Vec<_>, Vec<_>) = listed
                .into_iter()
                .partition(|(_, kind)| *kind == NameKind::File);
            let files: Vec<_> = files.into_iter().map(|(name, _)| name).collect();
            assert!(files == expected);
            let dir = (b"folder".to_vec(), NameKind::Dir);
            assert_eq!(others, [dir, (b"link".to_vec(), NameKind::Link)]);
        }
    }

    #[test]
    fn a_stat_of_the_last_tick_is_racy_even_if_its_mtime_was_set_back() {
        let time = |secs| Time { secs, nsecs: 5 };
        let is_racy = |mtime, ctime| {
            let (mtime, ctime) = (time(mtime), time(ctime));
            Stamp(time(10)).is_racy(&Stat {
                mtime,
                ctime,
                ..Stat::default()
            })
        };
        assert!(!is_racy(9, 9));
        assert!(is_racy(10, 10) && is_racy(11, 9));
        assert!(is_racy(3, 10));
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

    /// Builds remove directories all the time.
    #[test]
    fn nothing_is_in_a_folder_that_was_removed_while_it_was_open() {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().join("folder");
        std::fs::create_dir(&path).unwrap();
        let dir = OwnedFd::from(std::fs::File::open(&path).unwrap());
        std::fs::remove_dir(&path).unwrap();
        assert_eq!(names(&dir).unwrap(), []);
    }
}
