//! Identifies the current boot of the machine.
//!
//! Callers compare boot ids to find out whether a power cut could have lost unsynced writes, and
//! compare file times with the uptime to recognize lock files of processes from an earlier boot.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::fs::StatVfsMountFlags;

use super::fault;

/// Returns the kernel's boot id, or `None` if it has none.
#[cfg(target_os = "linux")]
pub fn boot_id() -> Option<String> {
    static ID: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(id.trim().to_owned()).filter(|id| !id.is_empty())
    };
    ID.get_or_init(read).clone()
}

/// Returns `None`: only Linux has a boot id.
#[cfg(not(target_os = "linux"))]
pub fn boot_id() -> Option<String> {
    None
}

/// Returns the time since the system started, if the system reports it.
#[cfg(target_os = "linux")]
pub fn uptime() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds = text.split(' ').next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Returns `None`: lock files from an earlier boot are not recognized.
#[cfg(not(target_os = "linux"))]
pub fn uptime() -> Option<Duration> {
    None
}

/// Returns the bytes that can be allocated without swapping, or `None` if `/proc/meminfo` does not
/// say.
pub fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    parse_available(&text)
}

fn parse_available(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes available to the user.
    pub free: u64,
    /// Inodes available to the user. `None` if the file system does not count them.
    pub files: Option<u64>,
    /// The file system is mounted read-only.
    pub read_only: bool,
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

#[cfg(test)]
mod tests {
    use super::parse_available;

    fn check(text: &str, expected: Option<u64>) {
        assert_eq!(parse_available(text), expected);
    }

    #[test]
    fn the_available_memory_is_read() {
        check(
            "MemTotal:  8 kB\nMemAvailable:    2048 kB\n",
            Some(2_097_152),
        );
        check("MemTotal: 8 kB\n", None);
        check("MemAvailable: many kB\n", None);
    }
}
