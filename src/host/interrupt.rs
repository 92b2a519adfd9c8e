//! Ctrl-C, a closed terminal, an ended service: a flag that long work looks at.
//!
//! The first signal sets the flag, so that what is under way can end cleanly; the second ends the
//! program at once with 130. A signal that the parent set to "ignore" (`nohup`) stays ignored.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The exit code of a program that was interrupted.
pub const EXIT_INTERRUPTED: i32 = 130;

/// The flag; one for the process.
static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// Whether the handlers are set.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Begins to listen for INT, TERM and HUP. Calling it again does nothing.
///
/// # Errors
/// The system refuses a signal handler.
pub fn install() -> io::Result<()> {
    if INSTALLED.swap(true, Ordering::SeqCst) {
        return Ok(());
    }
    let flag = flag();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if !is_ignored(signal) {
            // In this order: the handlers run as registered, so the first signal finds the flag down.
            signal_hook::flag::register_conditional_shutdown(signal, EXIT_INTERRUPTED, Arc::clone(&flag))?;
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
    }
    Ok(())
}

/// Returns whether the user or the system asked the program to end.
pub fn requested() -> bool {
    FLAG.get().is_some_and(|flag| flag.load(Ordering::SeqCst))
}

/// Returns the flag itself, for work that takes one.
pub fn flag() -> Arc<AtomicBool> {
    Arc::clone(FLAG.get_or_init(Arc::default))
}

/// Returns whether the process came to life with the signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_sets_the_flag() {
        install().expect("handlers can be set");
        assert!(!requested());
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::HUP).expect("a process may signal itself");
        let patience = std::time::Instant::now();
        while !requested() && patience.elapsed().as_secs() < 5 {
            std::thread::yield_now();
        }
        assert!(requested());
        flag().store(false, Ordering::SeqCst);
    }
}
