//! Keeps files with unexpected content in `undo/rescued`, where the user finds them.

use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::git::object::large::FileReader;
use crate::git::path_handle::{FileBody, OnDisk, PathHandle};
use crate::git::repository::Repository;
use crate::host::file::make_dirs;

pub(super) fn salvage_file(
    repository: &Repository,
    file: &PathHandle,
    path: &[u8],
) -> anyhow::Result<PathBuf> {
    let dir = repository.teddy_dir().join("undo").join("rescued");
    make_dirs(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
    move_to_free_name(&dir, file, path)
}

/// Moves a file to a free name.
///
/// A rename keeps the inode, so what a process still writes to it is kept too. Across file systems
/// it is a copy, which misses later writes.
fn move_to_free_name(dir: &Path, temporary: &PathHandle, path: &[u8]) -> anyhow::Result<PathBuf> {
    let name = OsStr::from_bytes(path.rsplit(|&byte| byte == b'/').next().unwrap_or(path));
    for number in 1.. {
        let mut free = OsString::from(format!("{number}-"));
        free.push(name);
        let destination = dir.join(free);
        match move_or_copy(temporary, &destination) {
            Ok(()) => return Ok(destination),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("cannot keep bytes in `{}`", dir.display()));
            }
        }
    }

    anyhow::bail!("no free name in `{}`", dir.display())
}

/// Moves a file to a name that is free, or copies it to another file system: makes the copy durable,
/// and only then removes the original.
pub(super) fn move_or_copy(file: &PathHandle, destination: &Path) -> std::io::Result<()> {
    if file.move_out(destination)? {
        return Ok(());
    }
    copy_durably(file, destination)?;
    file.remove()
}

/// Copies a file to a name that is free, durably.
pub(super) fn copy_durably(file: &PathHandle, destination: &Path) -> std::io::Result<()> {
    match file.read()? {
        OnDisk::Link(target) => {
            std::os::unix::fs::symlink(OsStr::from_bytes(&target), destination)?
        }
        OnDisk::File { body, .. } => match body {
            FileBody::Bytes(bytes) => write_private(destination, &mut bytes.as_slice())?,
            FileBody::Large { file, .. } => {
                write_private(destination, &mut FileReader::start(&file))?
            }
        },
        OnDisk::Absent | OnDisk::Dir | OnDisk::Other => {
            return Err(ErrorKind::Unsupported.into());
        }
    }
    Ok(())
}

/// Writes a new file that only the user can read.
pub(super) fn write_private(path: &Path, bytes: &mut dyn Read) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    std::io::copy(bytes, &mut file)?;
    file.sync_all()
}
