//! Locks whose holder is gone.

use std::path::Path;
use std::time::{Duration, Instant};

/// How long a lock must stand unchanged before nobody can be about to use it.
const STALE: Duration = Duration::from_secs(1);
/// How often a lock that is waited for is looked at.
const PAUSE: Duration = Duration::from_millis(20);

/// Waits a moment for a lock to go or to be taken anew; returns whether it is still the same one.
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
