//! Which start of the system this is: what was written before another one may be lost.

/// Returns an id that every start of the system gives anew; nothing if the system has none.
#[cfg(target_os = "linux")]
pub fn id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty())
}

/// Returns nothing: damage shows when something is read.
#[cfg(not(target_os = "linux"))]
pub fn id() -> Option<String> {
    None
}
