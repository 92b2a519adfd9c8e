//! Detects stale lock files.

use std::path::Path;
use std::time::{Duration, Instant};

/// A lock file that is unchanged for this long is stale.
const STALE_AGE: Duration = Duration::from_secs(1);
const STALE_POLL: Duration = Duration::from_millis(20);

/// Waits until a lock file is one second old. Returns whether it is still the same one.
pub(super) fn is_stale_lock(path: &Path) -> bool {
    let read_stat = || {
        std::fs::symlink_metadata(path)
            .ok()
            .and_then(|metadata| Some((metadata.modified().ok()?, metadata.len())))
    };
    let Some(first) = read_stat() else {
        return false;
    };
    let (started, age) = (Instant::now(), first.0.elapsed().unwrap_or_default());

    while started.elapsed() + age < STALE_AGE {
        std::thread::sleep(STALE_POLL);
        if read_stat() != Some(first) {
            return false;
        }
    }

    read_stat() == Some(first)
}
