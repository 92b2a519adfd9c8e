//! How much room a file system has.

use std::path::Path;

use rustix::fs::StatVfsMountFlags;

use super::fault;

/// The room on a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// The bytes that a user can still write.
    pub free: u64,
    /// The files that a user can still make; nothing where the file system does not count them.
    pub files: Option<u64>,
    /// Whether nothing can be written at all.
    pub read_only: bool,
    /// Which file system it is.
    pub device: u64,
}

/// Returns the room where a path is, or where its nearest folder is that exists.
pub fn space(path: &Path) -> Option<DiskSpace> {
    use std::os::unix::fs::MetadataExt as _;

    let there = path.ancestors().find(|path| path.exists())?;
    let found = rustix::fs::statvfs(there).ok()?;
    let emulated = fault::emulated("disk-space").and_then(|bytes| bytes.parse().ok());

    Some(DiskSpace {
        free: emulated.unwrap_or_else(|| found.f_bavail.saturating_mul(found.f_frsize)),
        files: (found.f_files > 0).then_some(found.f_favail),
        read_only: found.f_flag.contains(StatVfsMountFlags::RDONLY),
        device: there.metadata().ok()?.dev(),
    })
}
