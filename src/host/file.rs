//! Access to the files below a directory, without following symbolic links.
//!
//! A [`Root`] is a directory that is opened once. All paths given to it are relative. Each use
//! opens every directory on the path without following a link. A link that replaces a directory
//! after a check therefore cannot lead out of the project. Paths are bytes, because repositories
//! contain names that are not UTF-8. Errors name the file and keep the kind of the system's error.

mod beneath;
mod compare;
mod dir;
mod dirs;
mod end;
mod entry;
mod failure;
mod make;
mod output_dir;
mod reading;
mod state;
mod swap;
mod unnamed;
mod write;

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode as Bits, OFlags, Stat};
use rustix::io::Errno;

pub use beneath::{Mounts, open_beneath, openat, uninterrupted};
pub use compare::replace_if;
pub use dirs::{make_writable, open_up_below, remove_at, remove_below};
pub use end::{FileEnd, read_end};
pub use entry::{read_link, remove_empty_above, remove_file, replace_entry, write_link};
pub use failure::{failure, is_out_of_reach, reason};
pub use make::{PRIVATE, PRIVATE_FILE, make_dirs, make_shared_dirs};
pub use output_dir::OutputDir;
pub use reading::{append_regular, append_shared, is_null_device, open_own, open_regular};
pub use reading::{read_named, read_regular, read_regular_text, read_sized};
pub use state::{write_atomic, write_cache};
pub use unnamed::UnnamedFile;

/// An open directory, and access to everything below it.
#[derive(Debug)]
pub struct Root {
    dir: OwnedFd,
}

const COMPARED: usize = 128 << 10;

/// Prefix of the names of our temporary files.
pub const TEMPORARY: &str = ".teddy-tmp-";

/// The part of a file's permissions that git records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileMode {
    /// Not executable.
    Plain,
    /// Executable by its owner.
    Executable,
}

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Regular file.
    File(FileMode),
    /// Symbolic link.
    Link,
    /// Directory.
    Dir,
    /// FIFO, socket or device.
    Other,
}

/// Type and attributes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileInfo {
    /// The type.
    pub kind: FileKind,
    /// Size in bytes.
    pub size: u64,
    /// Number of hard links.
    pub links: u64,
    /// Permission bits, without setuid, setgid and sticky.
    pub permissions: u32,
}

impl Root {
    /// Opens a directory. Links in `path` itself are followed.
    pub fn open(path: &Path) -> io::Result<Root> {
        let dir = beneath::open_root(path).map_err(|e| failure("open", path, e.into()))?;
        Ok(Root { dir })
    }

    /// Returns the type of a file, or `None` if it does not exist. Does not follow a link.
    pub fn kind(&self, path: &Path) -> io::Result<Option<FileKind>> {
        Ok(self.entry(path)?.map(|entry| entry.kind))
    }

    /// Returns the type and attributes of a file, or `None` if it does not exist.
    pub fn entry(&self, path: &Path) -> io::Result<Option<FileInfo>> {
        match self.stat(path) {
            Ok(stat) => Ok(Some(FileInfo::from(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(e) => Err(self.fail("look at", path, e)),
        }
    }

    fn open_regular(&self, path: &Path) -> io::Result<(std::fs::File, u64)> {
        let regular = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        // Opening a device can have side effects, so the type is checked first. It is checked again
        // after opening because the file can change in between.
        let before = self.stat(path).map_err(|e| self.fail("read", path, e))?;
        if !regular(&before) {
            return Err(self.refuse(path, io::ErrorKind::InvalidInput, "is not a regular file"));
        }

        let file = self
            .open_file(path)
            .map_err(|e| self.fail("read", path, e))?;
        let after = rustix::fs::fstat(&file).map_err(|e| self.fail("read", path, e))?;
        if !regular(&after) {
            return Err(self.refuse(path, io::ErrorKind::InvalidInput, "is not a regular file"));
        }
        Ok((file.into(), after.st_size.try_into().unwrap_or(0)))
    }

    /// Returns `true` if `path` is a readable regular file with exactly these bytes.
    pub fn has_bytes(&self, path: &Path, bytes: &[u8]) -> bool {
        let Ok((mut file, size)) = self.open_regular(path) else {
            return false;
        };
        // Block by block, so the file is not read into memory.
        let mut block = vec![0; COMPARED.min(bytes.len())];
        size == bytes.len() as u64
            && bytes.chunks(COMPARED).all(|expected| {
                let block = &mut block[..expected.len()];
                file.read_exact(block).is_ok() && block == expected
            })
    }

    /// Reads a regular file. Fails with `FileTooLarge` if it has more than `limit` bytes. Never
    /// blocks on a FIFO.
    pub fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let (file, size) = self.open_regular(path)?;
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0).min(1 << 24));
        // `take` enforces the limit even if the file grows while it is read.
        let read = file.take(limit.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|e| failure("read", path, e))?;

        if bytes.len() as u64 > limit {
            return Err(self.refuse(
                path,
                io::ErrorKind::FileTooLarge,
                &format!("is larger than {limit} bytes"),
            ));
        }

        Ok(bytes)
    }

    fn open_file(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        let (dir, name) = self.parent(path)?;
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        openat(&dir, name, flags, Bits::empty())
    }

    fn stat(&self, path: &Path) -> rustix::io::Result<Stat> {
        let (dir, name) = self.parent(path)?;
        rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Returns the open parent directory and the last component.
    fn parent<'p>(&self, path: &'p Path) -> rustix::io::Result<(OwnedFd, &'p OsStr)> {
        let (parent, name) = split(path)?;
        Ok((beneath::open_dir(&self.dir, parent)?, name))
    }

    fn fail(&self, verb: &'static str, path: &Path, errno: Errno) -> io::Error {
        // `ELOOP` does not say which component is the link, so it is looked up for the message.
        if errno == Errno::LOOP
            && let Some(link) = path
                .ancestors()
                .skip(1)
                .find(|above| matches!(self.kind_of_link(above), Some(FileType::Symlink)))
        {
            let message = format!("`{}` is a link", failure::show_path(link));
            return failure(
                verb,
                path,
                io::Error::new(io::ErrorKind::NotADirectory, message),
            );
        }
        failure(verb, path, errno.into())
    }

    /// For error messages only: the answer can be outdated.
    fn kind_of_link(&self, path: &Path) -> Option<FileType> {
        self.stat(path)
            .ok()
            .map(|stat| FileType::from_raw_mode(stat.st_mode))
    }

    fn refuse(&self, path: &Path, kind: io::ErrorKind, problem: &str) -> io::Error {
        failure("read", path, io::Error::new(kind, format!("it {problem}")))
    }
}

impl From<&Stat> for FileInfo {
    #[allow(
        clippy::unnecessary_cast,
        reason = "the fields differ from system to system"
    )]
    fn from(stat: &Stat) -> FileInfo {
        let permissions = stat.st_mode as u32 & 0o777;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if permissions & 0o100 != 0 => {
                FileKind::File(FileMode::Executable)
            }
            FileType::RegularFile => FileKind::File(FileMode::Plain),
            FileType::Symlink => FileKind::Link,
            FileType::Directory => FileKind::Dir,
            _ => FileKind::Other,
        };
        FileInfo {
            kind,
            size: stat.st_size as u64,
            links: stat.st_nlink as u64,
            permissions,
        }
    }
}

/// Splits off the last component. Fails unless all components are plain names (no `..`, no `/`).
fn split(path: &Path) -> rustix::io::Result<(&Path, &OsStr)> {
    if path
        .components()
        .any(|c| !matches!(c, Component::Normal(_)))
    {
        return Err(Errno::INVAL);
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((parent, name)),
        _ => Err(Errno::INVAL),
    }
}

#[cfg(test)]
mod tests;
