//! Which start of the system this is: what was written before another one may be lost.

use std::sync::OnceLock;
use std::time::Duration;

/// Returns an id that every start of the system gives anew; nothing if the system has none.
#[cfg(target_os = "linux")]
pub fn id() -> Option<String> {
    static ID: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(id.trim().to_owned()).filter(|id| !id.is_empty())
    };
    ID.get_or_init(read).clone()
}

/// Returns nothing: damage shows when something is read.
#[cfg(not(target_os = "linux"))]
pub fn id() -> Option<String> {
    None
}

/// Returns how long ago the system started; nothing if it does not tell.
#[cfg(target_os = "linux")]
pub fn uptime() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds = text.split(' ').next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Returns nothing: a lock of an earlier start is not told apart.
#[cfg(not(target_os = "linux"))]
pub fn uptime() -> Option<Duration> {
    None
}
