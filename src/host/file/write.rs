//! Writing below a root: a file gets its name only when its bytes are complete.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode as Bits, OFlags};
use rustix::io::Errno;

use super::swap::{End, over, to_free_name};
use super::{Entry, Kind, Mode, Root, TEMPORARY, beneath, failure, split};

/// Counts this process's temporary names.
static COUNT: AtomicU64 = AtomicU64::new(0);

impl Root {
    /// Creates a file and the folders above it.
    ///
    /// # Errors
    /// `AlreadyExists` if there is anything at the path, be it a link that leads nowhere.
    pub fn create_new(&self, path: &Path, bytes: &[u8], mode: Mode) -> io::Result<()> {
        let (folder, name) = self.make_parent(path).map_err(|e| self.fail("create", path, e))?;
        let temporary = self.temporary_name();
        write_file(&folder, &temporary, New { bytes, permissions: Permissions::New(mode), durable: self.durable })
            .map_err(|e| failure("create", path, e))?;
        finish(&folder, &temporary, name, to_free_name).map_err(|e| self.fail("create", path, e))
    }

    /// Gives a regular file new bytes and keeps its permissions. It becomes a new file under the
    /// same name, so that other names of the old one (hard links) keep the old bytes.
    ///
    /// # Errors
    /// There is no regular file at the path.
    pub fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let (folder, name) = self.parent(path).map_err(|e| self.fail("write", path, e))?;
        let Some(Entry { kind: Kind::File(_), permissions, .. }) = self.entry(path)? else {
            return Err(failure("write", path, io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")));
        };
        let temporary = self.temporary_name();
        write_file(&folder, &temporary, New { bytes, permissions: Permissions::Exactly(permissions), durable: self.durable })
            .map_err(|e| failure("write", path, e))?;
        finish(&folder, &temporary, name, over).map_err(|e| self.fail("write", path, e))
    }

    /// Creates a symbolic link and the folders above it.
    ///
    /// # Errors
    /// `AlreadyExists` if there is anything at the path.
    pub fn symlink(&self, path: &Path, target: &Path) -> io::Result<()> {
        let (folder, name) = self.make_parent(path).map_err(|e| self.fail("create", path, e))?;
        rustix::fs::symlinkat(target, &folder, name).map_err(|e| self.fail("create", path, e))
    }

    /// Removes a file or link and the folders above it that are empty then.
    ///
    /// # Errors
    /// There is no such file, or it is a folder.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        self.unlink(path)?;
        self.prune(path);
        Ok(())
    }

    /// Removes a file or link and leaves the folders as they are.
    ///
    /// # Errors
    /// As [`Root::remove`].
    pub fn unlink(&self, path: &Path) -> io::Result<()> {
        let removed = self.parent(path).and_then(|(folder, name)| rustix::fs::unlinkat(&folder, name, AtFlags::empty()));
        removed.map_err(|e| self.fail("remove", path, e))
    }

    /// Removes the folders above a path from below, as long as they are empty; never the root.
    pub fn prune(&self, path: &Path) {
        for folder in path.ancestors().skip(1).take_while(|above| !above.as_os_str().is_empty()) {
            if self.remove_folder(folder).is_err() {
                return;
            }
        }
    }

    /// Makes a folder and those above it; one that is there already is fine.
    ///
    /// # Errors
    /// Something else is at the path.
    pub fn make_folder(&self, path: &Path) -> io::Result<()> {
        split(path).and_then(|_| beneath::make_folder(&self.folder, path)).map(drop).map_err(|e| self.fail("create", path, e))
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// It is not empty, or no folder.
    pub fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let removed = self.parent(path).and_then(|(folder, name)| rustix::fs::unlinkat(&folder, name, AtFlags::REMOVEDIR));
        removed.map_err(|e| self.fail("remove", path, e))
    }

    /// Writes a file under a temporary name beside `path` and returns that name's path. The
    /// permissions are those of the regular file at `path`, if there is one, with `mode`'s
    /// executable bits. For [`Root::exchange`], [`Root::rename_new`] and [`Root::rename`].
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn stage_file(&self, path: &Path, bytes: &[u8], mode: Mode) -> io::Result<PathBuf> {
        let permissions = match self.entry(path)? {
            Some(Entry { kind: Kind::File(_), permissions, .. }) => Permissions::Exactly(mode.applied(permissions)),
            _ => Permissions::New(mode),
        };
        let (folder, _) = self.make_parent(path).map_err(|e| self.fail("write", path, e))?;
        let name = self.temporary_name();
        write_file(&folder, &name, New { bytes, permissions, durable: self.durable }).map_err(|e| failure("write", path, e))?;
        Ok(path.with_file_name(name))
    }

    /// Makes a symbolic link under a temporary name beside `path` and returns that name's path.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn stage_link(&self, path: &Path, target: &Path) -> io::Result<PathBuf> {
        let staged = path.with_file_name(self.temporary_name());
        self.symlink(&staged, target)?;
        Ok(staged)
    }

    /// Returns a file name that this process has not used.
    pub(super) fn temporary_name(&self) -> OsString {
        format!("{TEMPORARY}{}-{}", self.tag, COUNT.fetch_add(1, Ordering::Relaxed)).into()
    }

    /// Opens the folder that holds a path, after making it where it is missing.
    fn make_parent<'p>(&self, path: &'p Path) -> rustix::io::Result<(OwnedFd, &'p OsStr)> {
        let (parent, name) = split(path)?;
        Ok((beneath::make_folder(&self.folder, parent)?, name))
    }
}

impl Mode {
    /// Returns permission bits with the executable bits set or cleared.
    fn applied(self, permissions: u32) -> u32 {
        match self {
            Mode::Plain => permissions & !0o111,
            Mode::Executable => permissions | (permissions & 0o444) >> 2,
        }
    }
}

/// A file to be written.
pub(super) struct New<'a> {
    /// Its bytes.
    pub(super) bytes: &'a [u8],
    /// Its permissions.
    pub(super) permissions: Permissions,
    /// Whether the bytes must be on the disk when the call returns.
    pub(super) durable: bool,
}

/// Where a file's permissions come from.
pub(super) enum Permissions {
    /// The user's umask.
    New(Mode),
    /// Another file.
    Exactly(u32),
}

/// Writes a file that must not exist; removes it again if that fails.
pub(super) fn write_file(folder: impl AsFd, name: &OsStr, new: New<'_>) -> io::Result<()> {
    let permissions = match new.permissions {
        Permissions::New(Mode::Plain) => 0o666,
        Permissions::New(Mode::Executable) => 0o777,
        Permissions::Exactly(_) => 0o600,
    };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder.as_fd(), name, flags, Bits::from_raw_mode(permissions))?;
    let mut file = std::fs::File::from(file);
    let written = file.write_all(new.bytes).and_then(|()| {
        if let Permissions::Exactly(bits) = new.permissions {
            rustix::fs::fchmod(&file, Bits::from_raw_mode(bits))?;
        }
        if new.durable { file.sync_all() } else { Ok(()) }
    });
    if written.is_err() {
        let _ = rustix::fs::unlinkat(folder, name, AtFlags::empty());
    }
    written
}

/// Gives a temporary file its name; removes it if that fails.
fn finish(
    folder: &OwnedFd,
    temporary: &OsStr,
    name: &OsStr,
    rename: fn(&End<'_>, &End<'_>) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    let end = |name| Ok::<_, Errno>(End { folder: rustix::io::fcntl_dupfd_cloexec(folder, 0)?, name });
    let renamed = end(temporary).and_then(|from| rename(&from, &end(name)?));
    if renamed.is_err() {
        let _ = rustix::fs::unlinkat(folder, temporary, AtFlags::empty());
    }
    renamed
}
