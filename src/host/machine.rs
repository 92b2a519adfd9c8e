//! Identifies the current boot of the machine.
//!
//! Callers compare boot ids to find out whether a power cut could have lost unsynced writes, and
//! compare file times with the uptime to recognize lock files of processes from an earlier boot.

use std::sync::OnceLock;
use std::time::Duration;

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
pub fn id() -> Option<String> {
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
