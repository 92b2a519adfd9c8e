//! Ends the process on a panic, without unwinding.
//!
//! Every command is prepared for a killed process: the next one recovers. Unwinding would release
//! locks as an orderly exit does, and the next command would see no reason to recover
//! (docs/decisions/0010-locks-and-crashes.md). The terminal's panic hook runs before and restores
//! its modes.

use std::io::Write as _;
use std::panic::{set_hook, take_hook};
use std::sync::Mutex;

// The exit code of a panic in Rust.
const STATUS: i32 = 101;

/// Held by the thread that ends the process. Other panicking threads wait for it.
static ENDING: Mutex<()> = Mutex::new(());

/// Installs the panic hook.
pub fn install() {
    let print = take_hook();
    set_hook(Box::new(move |panic| {
        let _first = ENDING.lock();
        print(panic);
        let _ = std::io::stderr().write_all(
            b"error: this is a bug in teddy\n\
              hint: the next command puts right what was under way; please report the lines above\n",
        );
        std::process::exit(STATUS)
    }));
}
