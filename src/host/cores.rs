//! How many threads can run at once.

use std::sync::OnceLock;

/// Returns how many cores this process may use; asked once, as the answer is put together from
/// several files.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}
