//! Ends the process on a panic, without unwinding.
//!
//! Every command is prepared for a killed process: the next one recovers. Unwinding would release
//! locks as an orderly exit does, and the next command would see no reason to recover
//! (docs/decisions/0010-locks-and-crashes.md). The terminal's panic hook runs before and restores
//! its modes.

use std::cell::RefCell;
use std::io::Write as _;
use std::panic::{set_hook, take_hook};
use std::sync::{Mutex, OnceLock};

// The exit code of a panic in Rust.
const STATUS: i32 = 101;

/// Held by the thread that ends the process. Other panicking threads wait for it.
static ENDING: Mutex<()> = Mutex::new(());

static CLEANUP: OnceLock<fn()> = OnceLock::new();

thread_local! {
    static REPORT: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Installs the panic hook. Any other place that set a hook would wait for a contained panic without end.
pub fn install() {
    let print = take_hook();
    set_hook(Box::new(move |panic| {
        if let Ok(Some(report)) = REPORT.try_with(RefCell::take) {
            report();
            loop {
                // A release aborts after its hook.
                std::thread::park();
            }
        }

        let _first = ENDING.lock();
        if let Some(cleanup) = CLEANUP.get() {
            cleanup();
        }
        print(panic);
        let _ = std::io::stderr().write_all(
            b"error: this is a bug in teddy\n\
              hint: the next command puts right what was under way; please report the lines above\n",
        );
        std::process::exit(STATUS)
    }));
}

/// Sets what runs before a panic ends the process.
pub fn clean_up_with(cleanup: fn()) {
    let _ = CLEANUP.set(cleanup);
}

/// Lets a later panic stop this thread instead of the process. Only for a library that converts
/// untrusted data: a lock that the thread has stays locked.
pub fn contain(report: impl FnOnce() + 'static) {
    REPORT.set(Some(Box::new(report)));
}
