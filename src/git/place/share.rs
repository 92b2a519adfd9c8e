//! A file made of the blocks of another: no second copy, where the file system can share them.

use std::fs::File;
use std::io;

use rustix::fs::{FileType, Mode, OFlags};

use super::{Place, Top};

impl Top {
    /// Returns whether files below could share their blocks with others. Two file systems that most
    /// people have cannot; of any other the attempt tells.
    #[cfg(target_os = "linux")]
    pub(in crate::git) fn may_share_blocks(&self) -> bool {
        let cannot = [libc::EXT4_SUPER_MAGIC, libc::TMPFS_MAGIC];
        rustix::fs::fstatfs(&self.folder).is_ok_and(|told| !cannot.contains(&told.f_type))
    }

    /// Returns false: no such call is known.
    #[cfg(not(target_os = "linux"))]
    pub(in crate::git) fn may_share_blocks(&self) -> bool {
        false
    }
}

/// Opens the regular file here, if it can be read and has so many bytes.
pub(in crate::git) fn open_sized(place: &Place, size: u64) -> Option<File> {
    let file = place.open().ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    (is_regular && u64::try_from(stat.st_size) == Ok(size)).then_some(file)
}

/// Makes a file here, where nothing must be, that shares the blocks of another: a write to either
/// is not seen in the other.
///
/// # Errors
/// Where the file system cannot do that with these two, or something is here; nothing is made.
pub(in crate::git) fn share_from(place: &Place, source: &File, executable: bool) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(if executable { 0o777 } else { 0o666 });
    let file = rustix::fs::openat(&place.folder, place.name.as_slice(), flags, mode)?;
    let shared = share(&File::from(file), source);
    if shared.is_err() {
        place.remove()?;
    }

    shared
}

/// Gives an empty file the blocks of another.
#[cfg(target_os = "linux")]
fn share(file: &File, source: &File) -> io::Result<()> {
    Ok(rustix::fs::ioctl_ficlone(file, source)?)
}

/// Fails: no such call is known.
#[cfg(not(target_os = "linux"))]
fn share(_file: &File, _source: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
