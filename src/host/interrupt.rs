//! Ctrl-C, a closed terminal, an ended service: a flag that long work looks at.
//!
//! The first signal sets the flag, so that what is under way can end cleanly; the second ends the
//! program at once with 130. A signal that the parent set to "ignore" (`nohup`) stays ignored.
//! Beside it a flag for a program that was stopped and goes on: its screen is to be drawn anew.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use signal_hook::SigId;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM};

/// The exit code of a program that was interrupted.
pub const EXIT_INTERRUPTED: i32 = 130;

/// The flag; one for the process.
static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// Whether the program was stopped and goes on.
static CONTINUED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// What listens for INT.
static EARS: Mutex<Vec<SigId>> = Mutex::new(Vec::new());
/// Whether the handlers are set.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Begins to listen for INT, TERM, HUP and CONT. Calling it again does nothing.
///
/// # Errors
/// The system refuses a signal handler.
pub fn install() -> io::Result<()> {
    if INSTALLED.swap(true, Ordering::SeqCst) {
        return Ok(());
    }

    let flag = flag();
    let ignored = ignored();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if ignored >> (signal - 1) & 1 == 0 {
            listen(signal, &flag)?;
        }
    }

    signal_hook::flag::register(SIGCONT, Arc::clone(CONTINUED.get_or_init(Arc::default)))?;
    Ok(())
}

/// Returns whether the program was stopped and goes on, once for each time.
pub fn take_continued() -> bool {
    CONTINUED
        .get()
        .is_some_and(|flag| flag.swap(false, Ordering::SeqCst))
}

/// Does work during which ctrl-c is for someone else: an editor that has the terminal.
pub fn deaf<T>(work: impl FnOnce() -> T) -> T {
    let ears = std::mem::take(&mut *EARS.lock().expect("nothing panics with the lock"));
    // The handler itself stays, so that the signal ends nobody here; what is executed starts
    // without it.
    let listened = ears
        .into_iter()
        .filter(|&ear| signal_hook::low_level::unregister(ear))
        .count()
        > 0;
    let result = work();

    if listened {
        // It has been possible before; if it is no longer, ctrl-c does nothing, which is better
        // than to stop here.
        let _ = listen(SIGINT, &flag());
    }

    result
}

/// Begins to listen for one signal.
fn listen(signal: i32, flag: &Arc<AtomicBool>) -> io::Result<()> {
    // In this order: the handlers run as registered, so the first signal finds the flag down.
    let ears = [
        signal_hook::flag::register_conditional_shutdown(
            signal,
            EXIT_INTERRUPTED,
            Arc::clone(flag),
        )?,
        signal_hook::flag::register(signal, Arc::clone(flag))?,
    ];
    if signal == SIGINT {
        EARS.lock()
            .expect("nothing panics with the lock")
            .extend(ears);
    }

    Ok(())
}

/// Returns whether the user or the system asked the program to end.
pub fn requested() -> bool {
    FLAG.get().is_some_and(|flag| flag.load(Ordering::SeqCst))
}

/// Asks the program to end, as the signal does: ctrl-c is a key like others while a prompt reads
/// the keyboard.
pub fn raise() {
    flag().store(true, Ordering::SeqCst);
}

/// Returns the flag itself, for work that takes one.
pub fn flag() -> Arc<AtomicBool> {
    Arc::clone(FLAG.get_or_init(Arc::default))
}

/// Returns the signals that the process came to life ignoring: one bit for each, from the lowest.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a signal to the own process and says whether the flag goes up.
    fn is_heard(signal: rustix::process::Signal) -> bool {
        rustix::process::kill_process(rustix::process::getpid(), signal)
            .expect("a process may signal itself");
        let patience = std::time::Instant::now();
        while !requested() && patience.elapsed().as_millis() < 500 {
            std::thread::yield_now();
        }
        flag().swap(false, Ordering::SeqCst)
    }

    #[test]
    fn a_signal_sets_the_flag_unless_ctrl_c_is_for_someone_else() {
        use rustix::process::Signal;
        // Whoever starts the tests in the background of a script has them ignored.
        for signal in [SIGINT, SIGHUP] {
            signal_hook::flag::register(signal, Arc::default()).expect("handlers can be set");
        }
        install().expect("handlers can be set");
        assert!(is_heard(Signal::HUP) && is_heard(Signal::INT));
        deaf(|| assert!(!is_heard(Signal::INT) && is_heard(Signal::HUP)));
        assert!(is_heard(Signal::INT));
    }
}
