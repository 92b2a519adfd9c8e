//! Keeps files with unexpected content in `undo/rescued`, where the user finds them.

use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::git::object::large::From;
use crate::git::place::{FileBody, OnDisk, Place};
use crate::git::repository::Repository;
use crate::host::file::make_folders;

pub(super) fn rescue(
    repository: &Repository,
    file: &Place,
    path: &[u8],
) -> anyhow::Result<PathBuf> {
    let folder = repository.teddy_dir().join("undo").join("rescued");
    make_folders(&folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    keep(&folder, file, path)
}

/// Moves a file to a free name.
///
/// A rename keeps the inode, so what a process still writes to it is kept too. Across file systems
/// it is a copy, which misses later writes.
fn keep(folder: &Path, temporary: &Place, path: &[u8]) -> anyhow::Result<PathBuf> {
    let name = OsStr::from_bytes(path.rsplit(|&byte| byte == b'/').next().unwrap_or(path));
    for number in 1.. {
        let mut free = OsString::from(format!("{number}-"));
        free.push(name);
        let kept = folder.join(free);
        match temporary.move_out(&kept).and_then(|moved| {
            if moved {
                Ok(())
            } else {
                copy_out(temporary, &kept)
            }
        }) {
            Ok(()) => return Ok(kept),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("cannot keep bytes in `{}`", folder.display()));
            }
        }
    }

    anyhow::bail!("no free name in `{}`", folder.display())
}

/// Copies a file to a free name, flushes it, and only then removes the original.
fn copy_out(temporary: &Place, kept: &Path) -> std::io::Result<()> {
    match temporary.look()? {
        OnDisk::Link(target) => std::os::unix::fs::symlink(OsStr::from_bytes(&target), kept)?,
        OnDisk::File { body, .. } => match body {
            FileBody::Bytes(bytes) => write_private(kept, &mut bytes.as_slice())?,
            FileBody::Large { file, .. } => write_private(kept, &mut From::start(&file))?,
        },
        OnDisk::Absent | OnDisk::Folder | OnDisk::Other => {
            return Err(ErrorKind::Unsupported.into());
        }
    }

    // Last, because until now it was the only durable copy.
    temporary.remove()
}

/// Creates a file with mode 0600 and flushes it.
fn write_private(path: &Path, bytes: &mut dyn Read) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    std::io::copy(bytes, &mut file)?;
    file.sync_all()
}
