//! Writes TeDDy's own state files. After a crash a file has its old or its new content.

use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use super::write::{NewContents, Permissions, write_file};
use super::{FileInfo, PRIVATE_FILE, failure};
use crate::host::file::TEMPORARY;

/// Writes a file atomically and durably: temporary file, fsync, rename, fsync of the directory.
/// Creates missing parents, and keeps the permissions of an existing file.
///
/// Follows links in `path`. For our own files only, not for files of a project.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_state(path, bytes, true).map_err(|e| failure("write", path, e))
}

/// Like [`write_atomic`] without the fsyncs. After a power cut the file can be empty or damaged, so
/// only use it for data that is rebuilt then.
pub fn write_cache(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_state(path, bytes, false).map_err(|e| failure("write", path, e))
}

/// Errors do not name the file.
fn write_state(path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    super::make_dirs(parent)?;
    let folder = super::openat(
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

    // Left by a crashed process with the same id.
    let _ = rustix::fs::unlinkat(&folder, temporary, AtFlags::empty());
    let permissions = match rustix::fs::statat(&folder, name, AtFlags::empty()) {
        Ok(old) => Permissions::Exactly(FileInfo::from(&old).permissions),
        Err(_) => Permissions::Exactly(PRIVATE_FILE),
    };
    write_file(
        &folder,
        temporary,
        NewContents {
            bytes,
            permissions,
            durable,
        },
    )?;
    rustix::fs::renameat(&folder, temporary, &folder, name)?;
    if durable {
        // Otherwise a power cut can undo the rename.
        rustix::fs::fsync(&folder)?;
    }

    Ok(())
}
