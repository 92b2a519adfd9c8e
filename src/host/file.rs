//! Files below one folder, never through a link.
//!
//! A [`Root`] is a folder that is opened once. Every path given to it is relative, and each of
//! its folders is opened without following a link at the moment of use: what was checked cannot
//! be exchanged for a link that leads out of the project. Paths are bytes; repositories have
//! names that are not UTF-8. Errors say which file and keep the system's kind.

mod beneath;
mod bounded;
mod end;
mod failure;
mod folder;
mod make;
mod place;
mod remove;
mod state;
mod swap;
mod unnamed;
mod whole;
mod write;

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode as Bits, OFlags, Stat};
use rustix::io::Errno;

pub use beneath::{Mounts, open_beneath};
pub use bounded::{append_regular, is_null_device, open_own, open_regular};
pub use bounded::{read_named, read_regular, read_regular_text, read_sized};
pub use end::{FileEnd, read_end};
pub use failure::{failure, is_out_of_reach, reason};
pub use make::make_folders;
pub use place::{exchange, put_link, read_link, remove_empty_above, remove_file};
pub use remove::{open_up, remove_at, remove_below};
pub use state::{write_atomic, write_cache};
pub use unnamed::UnnamedFile;
pub use whole::WholeFolder;

/// A folder that is opened once, and everything below it.
#[derive(Debug)]
pub struct Root {
    /// The folder.
    folder: OwnedFd,
}

/// So many bytes of a file are compared at once.
const COMPARED: usize = 128 << 10;

/// How the names of our temporary files begin.
pub const TEMPORARY: &str = ".teddy-tmp-";

/// What git knows about a file besides its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileMode {
    /// Not executable.
    Plain,
    /// Executable by its owner.
    Executable,
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File(FileMode),
    /// A symbolic link.
    Link,
    /// A folder.
    Folder,
    /// A FIFO, a socket, a device.
    Other,
}

/// A path's kind and measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileInfo {
    /// What it is.
    pub kind: FileKind,
    /// The size in bytes.
    pub size: u64,
    /// The number of names (hard links).
    pub links: u64,
    /// The permission bits.
    pub permissions: u32,
}

impl Root {
    /// Opens a folder. Links in the path itself are followed.
    ///
    /// # Errors
    /// There is no such folder, or it may not be entered.
    pub fn open(path: &Path) -> io::Result<Root> {
        let folder = beneath::open_root(path).map_err(|e| failure("open", path, e.into()))?;
        Ok(Root { folder })
    }

    /// Returns what a path leads to; nothing if there is nothing.
    ///
    /// # Errors
    /// The path goes through a link, or a folder on it may not be entered.
    pub fn kind(&self, path: &Path) -> io::Result<Option<FileKind>> {
        Ok(self.entry(path)?.map(|entry| entry.kind))
    }

    /// Returns what a path leads to, with its measures; nothing if there is nothing.
    ///
    /// # Errors
    /// As [`Root::kind`].
    pub fn entry(&self, path: &Path) -> io::Result<Option<FileInfo>> {
        match self.stat(path) {
            Ok(stat) => Ok(Some(FileInfo::from(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(e) => Err(self.fail("look at", path, e)),
        }
    }

    /// Opens a regular file to read it, and returns how many bytes it has.
    fn open_regular(&self, path: &Path) -> io::Result<(std::fs::File, u64)> {
        let regular = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        // Opening a device can have an effect, so the kind is asked before and, against a race,
        // after.
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

    /// Returns whether there is a regular file that has these bytes, and can be read. It takes no
    /// memory for them.
    pub fn has_bytes(&self, path: &Path, bytes: &[u8]) -> bool {
        let Ok((mut file, size)) = self.open_regular(path) else {
            return false;
        };
        let mut block = vec![0; COMPARED.min(bytes.len())];
        size == bytes.len() as u64
            && bytes.chunks(COMPARED).all(|expected| {
                let block = &mut block[..expected.len()];
                file.read_exact(block).is_ok() && block == expected
            })
    }

    /// Returns the bytes of a regular file that has at most `limit` of them.
    ///
    /// # Errors
    /// There is no such file, it is no regular file, it is larger (`FileTooLarge`), or it cannot
    /// be read. Never waits on a FIFO.
    pub fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let (file, size) = self.open_regular(path)?;
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0).min(1 << 24));
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

    /// Opens a file for reading, without waiting and without following a link.
    fn open_file(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        let (folder, name) = self.parent(path)?;
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::fs::openat(&folder, name, flags, Bits::empty())
    }

    /// Returns the system's record of a path, of a link itself.
    fn stat(&self, path: &Path) -> rustix::io::Result<Stat> {
        let (folder, name) = self.parent(path)?;
        rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Opens the folder that holds a path and returns it with the last component.
    fn parent<'p>(&self, path: &'p Path) -> rustix::io::Result<(OwnedFd, &'p OsStr)> {
        let (parent, name) = split(path)?;
        Ok((beneath::open_folder(&self.folder, parent)?, name))
    }

    /// Returns the error of one call, worded for a person.
    fn fail(&self, verb: &'static str, path: &Path, errno: Errno) -> io::Error {
        if errno == Errno::LOOP
            && let Some(link) = path
                .ancestors()
                .skip(1)
                .find(|above| matches!(self.kind_of_link(above), Some(FileType::Symlink)))
        {
            let words = format!("`{}` is a link", failure::show(link));
            return failure(
                verb,
                path,
                io::Error::new(io::ErrorKind::NotADirectory, words),
            );
        }
        failure(verb, path, errno.into())
    }

    /// Returns the type of a folder on a path, for the wording of an error only.
    fn kind_of_link(&self, path: &Path) -> Option<FileType> {
        self.stat(path)
            .ok()
            .map(|stat| FileType::from_raw_mode(stat.st_mode))
    }

    /// Returns an error that does not come from the system.
    fn refuse(&self, path: &Path, kind: io::ErrorKind, words: &str) -> io::Error {
        failure("read", path, io::Error::new(kind, format!("it {words}")))
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
            FileType::Directory => FileKind::Folder,
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

/// Splits a path into folder and last component. Only plain components are allowed.
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
