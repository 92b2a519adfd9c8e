//! Creates and replaces files below a root. A file gets its name only when it is complete.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode as Bits, OFlags};
use rustix::io::Errno;

use super::swap::{RenameEnd, rename_over, rename_to_free_name};
use super::{FileInfo, FileKind, FileMode, Root, TEMPORARY, beneath, failure, split};

static TEMPORARY_COUNT: AtomicU64 = AtomicU64::new(0);

impl Root {
    /// Creates a file and its parent directories. Fails with `AlreadyExists` if the path exists,
    /// even as a dangling link.
    pub fn create_new(&self, path: &Path, bytes: &[u8], mode: FileMode) -> io::Result<()> {
        let (dir, name) = self
            .make_parent(path)
            .map_err(|e| self.fail("create", path, e))?;
        let temporary = Root::temporary_name();
        write_file(
            &dir,
            &temporary,
            NewContents {
                bytes,
                permissions: Permissions::New(mode),
                durable: false,
            },
        )
        .map_err(|e| failure("create", path, e))?;

        rename_temporary(&dir, &temporary, name, rename_to_free_name)
            .map_err(|e| self.fail("create", path, e))
    }

    /// Like [`Root::create_new`], but writes directly under the final name, which is cheaper. For a
    /// directory that no other process uses yet.
    pub fn create_aside(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let (dir, name) = self
            .make_parent(path)
            .map_err(|e| self.fail("create", path, e))?;
        let new = NewContents {
            bytes,
            permissions: Permissions::New(FileMode::Plain),
            durable: false,
        };
        write_file(&dir, name, new).map_err(|e| failure("create", path, e))
    }

    /// Replaces the content of a regular file, and keeps its permissions. Other hard links keep the
    /// old content.
    pub fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let (dir, name) = self.parent(path).map_err(|e| self.fail("write", path, e))?;
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
            &dir,
            &temporary,
            NewContents {
                bytes,
                permissions: Permissions::Exactly(permissions),
                durable: false,
            },
        )
        .map_err(|e| failure("write", path, e))?;

        rename_temporary(&dir, &temporary, name, rename_over)
            .map_err(|e| self.fail("write", path, e))
    }

    /// Unique among the names of this process.
    pub(super) fn temporary_name() -> OsString {
        format!(
            "{TEMPORARY}{}-{}",
            std::process::id(),
            TEMPORARY_COUNT.fetch_add(1, Ordering::Relaxed)
        )
        .into()
    }

    /// Like [`Root::parent`], but creates missing directories.
    pub(super) fn make_parent<'p>(
        &self,
        path: &'p Path,
    ) -> rustix::io::Result<(OwnedFd, &'p OsStr)> {
        let (parent, name) = split(path)?;
        Ok((beneath::make_dir(&self.dir, parent)?, name))
    }
}

pub(super) struct NewContents<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) permissions: Permissions,
    /// Flush the file before returning.
    pub(super) durable: bool,
}

pub(super) enum Permissions {
    /// Default permissions, reduced by the umask.
    New(FileMode),
    /// Permission bits copied from another file.
    Exactly(u32),
}

/// Creates a file. Removes it again on failure.
pub(super) fn write_file(dir: impl AsFd, name: &OsStr, new: NewContents<'_>) -> io::Result<()> {
    // With `Exactly`, no other user can read the file before `fchmod`.
    let permissions = match new.permissions {
        Permissions::New(FileMode::Plain) => 0o666,
        Permissions::New(FileMode::Executable) => 0o777,
        Permissions::Exactly(_) => 0o600,
    };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = super::openat(dir.as_fd(), name, flags, Bits::from_raw_mode(permissions))?;
    let mut file = std::fs::File::from(file);
    let written = file.write_all(new.bytes).and_then(|()| {
        if let Permissions::Exactly(bits) = new.permissions {
            rustix::fs::fchmod(&file, Bits::from_raw_mode(bits))?;
        }
        if new.durable { file.sync_all() } else { Ok(()) }
    });

    if written.is_err() {
        let _ = rustix::fs::unlinkat(dir, name, AtFlags::empty());
    }

    written
}

/// Renames a temporary file to its final name. Removes it on failure.
pub(super) fn rename_temporary(
    dir: &OwnedFd,
    temporary: &OsStr,
    name: &OsStr,
    rename: fn(&RenameEnd<'_>, &RenameEnd<'_>) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    let end = |name| {
        Ok::<_, Errno>(RenameEnd {
            dir: rustix::io::fcntl_dupfd_cloexec(dir, 0)?,
            name,
        })
    };
    let renamed = end(temporary).and_then(|from| rename(&from, &end(name)?));
    if renamed.is_err() {
        let _ = rustix::fs::unlinkat(dir, temporary, AtFlags::empty());
    }

    renamed
}
