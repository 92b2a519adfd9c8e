//! Clones files by sharing blocks (`FICLONE`).

use std::fs::File;
use std::io;

use rustix::fs::{FileType, Mode, OFlags};

use super::{PathHandle, Top};

impl Top {
    /// Returns whether the file system might support cloning. Ext4 and tmpfs are known not to;
    /// others are tried.
    #[cfg(target_os = "linux")]
    pub(in crate::git) fn may_share_blocks(&self) -> bool {
        let cannot = [libc::EXT4_SUPER_MAGIC, libc::TMPFS_MAGIC];
        rustix::fs::fstatfs(&self.dir).is_ok_and(|stat| !cannot.contains(&stat.f_type))
    }

    #[cfg(not(target_os = "linux"))]
    pub(in crate::git) fn may_share_blocks(&self) -> bool {
        false
    }
}

/// Opens a regular file if it is readable and has this size.
pub(in crate::git) fn open_file_of_size(handle: &PathHandle, size: u64) -> Option<File> {
    let file = handle.open().ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    (is_regular && u64::try_from(stat.st_size) == Ok(size)).then_some(file)
}

/// Creates a clone of `source`. Fails without a trace if the file system cannot clone or the name
/// exists.
pub(in crate::git) fn clone_blocks(
    handle: &PathHandle,
    source: &File,
    executable: bool,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(if executable { 0o777 } else { 0o666 });
    let file = crate::host::file::openat(&handle.dir, handle.name.as_slice(), flags, mode)?;
    let shared = ficlone(&File::from(file), source);
    if shared.is_err() {
        handle.remove()?;
    }

    shared
}

#[cfg(target_os = "linux")]
fn ficlone(file: &File, source: &File) -> io::Result<()> {
    Ok(rustix::fs::ioctl_ficlone(file, source)?)
}

#[cfg(not(target_os = "linux"))]
fn share(_file: &File, _source: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
