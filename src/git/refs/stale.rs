//! Detects stale lock files.

use std::path::Path;
use std::time::{Duration, Instant};

/// A lock file that is unchanged for this long is stale.
const STALE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until a lock file is one second old. Returns whether it is still the same one.
pub(super) fn outlives(path: &Path) -> bool {
    let look = || {
        std::fs::symlink_metadata(path)
            .ok()
            .and_then(|metadata| Some((metadata.modified().ok()?, metadata.len())))
    };
    let Some(first) = look() else { return false };
    let (started, age) = (Instant::now(), first.0.elapsed().unwrap_or_default());

    while started.elapsed() + age < STALE {
        std::thread::sleep(PAUSE);
        if look() != Some(first) {
            return false;
        }
    }

    look() == Some(first)
}
