//! Writing below a root: a file gets its name only when its bytes are complete.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode as Bits, OFlags};
use rustix::io::Errno;

use super::swap::{RenameEnd, over, to_free_name};
use super::{FileInfo, FileKind, FileMode, Root, TEMPORARY, beneath, failure, split};

/// Counts this process's temporary names.
static COUNT: AtomicU64 = AtomicU64::new(0);

impl Root {
    /// Creates a file and the folders above it.
    ///
    /// # Errors
    /// `AlreadyExists` if there is anything at the path, be it a link that leads nowhere.
    pub fn create_new(&self, path: &Path, bytes: &[u8], mode: FileMode) -> io::Result<()> {
        let (folder, name) = self
            .make_parent(path)
            .map_err(|e| self.fail("create", path, e))?;
        let temporary = Root::temporary_name();
        write_file(
            &folder,
            &temporary,
            New {
                bytes,
                permissions: Permissions::New(mode),
                durable: false,
            },
        )
        .map_err(|e| failure("create", path, e))?;

        finish(&folder, &temporary, name, to_free_name).map_err(|e| self.fail("create", path, e))
    }

    /// Creates a file, and the folders above it, in a folder that nobody else uses yet: it has its
    /// name before its bytes are complete.
    ///
    /// # Errors
    /// As for [`Root::create_new`].
    pub fn create_aside(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let (folder, name) = self
            .make_parent(path)
            .map_err(|e| self.fail("create", path, e))?;
        let new = New {
            bytes,
            permissions: Permissions::New(FileMode::Plain),
            durable: false,
        };
        write_file(&folder, name, new).map_err(|e| failure("create", path, e))
    }

    /// Gives a regular file new bytes and keeps its permissions. It becomes a new file under the
    /// same name, so that other names of the old one (hard links) keep the old bytes.
    ///
    /// # Errors
    /// There is no regular file at the path.
    pub fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let (folder, name) = self.parent(path).map_err(|e| self.fail("write", path, e))?;
        let Some(FileInfo {
            kind: FileKind::File(_),
            permissions,
            ..
        }) = self.entry(path)?
        else {
            return Err(failure(
                "write",
                path,
                io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"),
            ));
        };

        let temporary = Root::temporary_name();
        write_file(
            &folder,
            &temporary,
            New {
                bytes,
                permissions: Permissions::Exactly(permissions),
                durable: false,
            },
        )
        .map_err(|e| failure("write", path, e))?;

        finish(&folder, &temporary, name, over).map_err(|e| self.fail("write", path, e))
    }

    /// Returns a file name that this process has not used.
    pub(super) fn temporary_name() -> OsString {
        format!(
            "{TEMPORARY}{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        )
        .into()
    }

    /// Opens the folder that holds a path, after making it where it is missing.
    pub(super) fn make_parent<'p>(
        &self,
        path: &'p Path,
    ) -> rustix::io::Result<(OwnedFd, &'p OsStr)> {
        let (parent, name) = split(path)?;
        Ok((beneath::make_folder(&self.folder, parent)?, name))
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
    New(FileMode),
    /// Another file.
    Exactly(u32),
}

/// Writes a file that must not exist; removes it again if that fails.
pub(super) fn write_file(folder: impl AsFd, name: &OsStr, new: New<'_>) -> io::Result<()> {
    let permissions = match new.permissions {
        Permissions::New(FileMode::Plain) => 0o666,
        Permissions::New(FileMode::Executable) => 0o777,
        Permissions::Exactly(_) => 0o600,
    };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(
        folder.as_fd(),
        name,
        flags,
        Bits::from_raw_mode(permissions),
    )?;
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
pub(super) fn finish(
    folder: &OwnedFd,
    temporary: &OsStr,
    name: &OsStr,
    rename: fn(&RenameEnd<'_>, &RenameEnd<'_>) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    let end = |name| {
        Ok::<_, Errno>(RenameEnd {
            folder: rustix::io::fcntl_dupfd_cloexec(folder, 0)?,
            name,
        })
    };
    let renamed = end(temporary).and_then(|from| rename(&from, &end(name)?));
    if renamed.is_err() {
        let _ = rustix::fs::unlinkat(folder, temporary, AtFlags::empty());
    }

    renamed
}
