//! Handles SIGINT, SIGTERM and SIGHUP with a flag that long work polls.
//!
//! The first signal sets the flag, so that the current step can end cleanly. The second ends the
//! program immediately with exit code 130. A signal that was ignored at start (`nohup`) stays
//! ignored. A second flag records SIGCONT: after a stop, the screen must be redrawn. A file that grows
//! beyond `ulimit -f` is an error of the write, not the end of the program.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use signal_hook::SigId;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

/// Exit code after an interrupt.
pub const EXIT_INTERRUPTED: i32 = 130;

static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
static CONTINUED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// Registered actions for SIGINT.
static SIGINT_ACTIONS: Mutex<Vec<SigId>> = Mutex::new(Vec::new());
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Installs the signal handlers. Later calls do nothing.
pub fn install() -> io::Result<()> {
    if INSTALLED.swap(true, Ordering::SeqCst) {
        return Ok(());
    }

    let flag = flag();
    let ignored = ignored();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if ignored >> (signal - 1) & 1 == 0 {
            register(signal, &flag)?;
        }
    }

    if ignored >> (SIGXFSZ - 1) & 1 == 0 {
        // A handler and not `SIG_IGN`, which children would inherit.
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    }
    signal_hook::flag::register(SIGCONT, Arc::clone(CONTINUED.get_or_init(Arc::default)))?;
    Ok(())
}

/// Returns `true` once after each SIGCONT.
pub fn take_continued() -> bool {
    CONTINUED
        .get()
        .is_some_and(|flag| flag.swap(false, Ordering::SeqCst))
}

/// Runs `work` while ctrl-c is handled by another program, such as an editor that has the terminal.
pub fn without_handling<T>(work: impl FnOnce() -> T) -> T {
    let actions =
        std::mem::take(&mut *SIGINT_ACTIONS.lock().expect("nothing panics with the lock"));
    // signal-hook keeps its handler installed, so SIGINT does not kill TeDDy. Children start with
    // the default action.
    let was_registered = actions
        .into_iter()
        .filter(|&action| signal_hook::low_level::unregister(action))
        .count()
        > 0;
    let result = work();

    if was_registered {
        // Registering worked before. If it fails now, ctrl-c has no effect, which is better than
        // failing here.
        let _ = register(SIGINT, &flag());
    }

    result
}

fn register(signal: i32, flag: &Arc<AtomicBool>) -> io::Result<()> {
    // Actions run in this order. The first signal still finds the flag unset, so only the second
    // one ends the program.
    let actions = [
        signal_hook::flag::register_conditional_shutdown(
            signal,
            EXIT_INTERRUPTED,
            Arc::clone(flag),
        )?,
        signal_hook::flag::register(signal, Arc::clone(flag))?,
    ];
    if signal == SIGINT {
        SIGINT_ACTIONS
            .lock()
            .expect("nothing panics with the lock")
            .extend(actions);
    }

    Ok(())
}

/// Returns whether the user or the system asked the program to end.
pub fn requested() -> bool {
    FLAG.get().is_some_and(|flag| flag.load(Ordering::SeqCst))
}

/// Sets the flag as a signal does. In raw mode the terminal delivers ctrl-c as a key.
pub fn raise() {
    flag().store(true, Ordering::SeqCst);
}

/// Returns the flag, for functions that take one.
pub fn flag() -> Arc<AtomicBool> {
    Arc::clone(FLAG.get_or_init(Arc::default))
}

/// Signals that were ignored at start, as a bit mask from `/proc`.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // Signals are ignored if a script runs the tests in the background.
        for signal in [SIGINT, SIGHUP] {
            signal_hook::flag::register(signal, Arc::default()).expect("handlers can be set");
        }
        install().expect("handlers can be set");
        assert!(is_heard(Signal::HUP) && is_heard(Signal::INT));
        without_handling(|| assert!(!is_heard(Signal::INT) && is_heard(Signal::HUP)));
        assert!(is_heard(Signal::INT));
    }
}
