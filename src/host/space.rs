//! Free space of a file system.

use std::path::Path;

use rustix::fs::StatVfsMountFlags;

use super::fault;

/// Free space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes available to the user.
    pub free: u64,
    /// Inodes available to the user. `None` if the file system does not count them.
    pub files: Option<u64>,
    /// The file system is mounted read-only.
    pub read_only: bool,
    /// Device id.
    pub device: u64,
}

/// Returns the free space at `path`, or at its nearest ancestor that exists.
pub fn disk_space(path: &Path) -> Option<DiskSpace> {
    use std::os::unix::fs::MetadataExt as _;

    let existing = path.ancestors().find(|path| path.exists())?;
    let stats = rustix::fs::statvfs(existing).ok()?;
    let emulated = fault::emulated("disk-space").and_then(|bytes| bytes.parse().ok());

    Some(DiskSpace {
        free: emulated.unwrap_or_else(|| stats.f_bavail.saturating_mul(stats.f_frsize)),
        files: (stats.f_files > 0).then_some(stats.f_favail),
        read_only: stats.f_flag.contains(StatVfsMountFlags::RDONLY),
        device: existing.metadata().ok()?.dev(),
    })
}
