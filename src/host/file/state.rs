//! Our own state files: old or new after a crash, never torn, never lost once written.

use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use super::write::{New, Permissions, write_file};
use super::{FileInfo, failure};
use crate::host::file::TEMPORARY;

/// Writes a file whole and durably: temporary file, sync, rename, sync of the folder. Makes the
/// folders above; keeps the permissions of a file that is there. Links in the path are followed;
/// for paths of our own, not for a project's.
///
/// # Errors
/// The system's, with the path; the old file is as it was.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, bytes, true).map_err(|e| failure("write", path, e))
}

/// Writes a file whole, as [`write_atomic`] does, but for a power cut: for what is made anew where
/// it is empty or damaged.
///
/// # Errors
/// The system's, with the path; the old file is as it was.
pub fn write_cache(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, bytes, false).map_err(|e| failure("write", path, e))
}

/// Does it, without words for errors.
fn write(path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    super::make_folders(parent)?;
    let folder = rustix::fs::openat(
        CWD,
        parent,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let temporary = format!(
        "{TEMPORARY}{}-{}",
        std::process::id(),
        name.to_string_lossy()
    );
    let temporary = temporary.as_ref();

    // A process of the same id that crashed here may have left its file.
    let _ = rustix::fs::unlinkat(&folder, temporary, AtFlags::empty());
    let permissions = match rustix::fs::statat(&folder, name, AtFlags::empty()) {
        Ok(old) => Permissions::Exactly(FileInfo::from(&old).permissions),
        Err(_) => Permissions::New(super::FileMode::Plain),
    };
    write_file(
        &folder,
        temporary,
        New {
            bytes,
            permissions,
            durable,
        },
    )?;
    rustix::fs::renameat(&folder, temporary, &folder, name)?;
    if durable {
        rustix::fs::fsync(&folder)?;
    }

    Ok(())
}
