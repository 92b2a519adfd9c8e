//! A panic: a mistake in the program itself.
//!
//! It ends the process at once, as a kill does, which every command is prepared for: the next one
//! puts right what was under way. Nothing is unwound, since what lets go of its lock on the way out
//! would be taken for done. The terminal's own hook has left its modes by then.

use std::io::Write as _;
use std::panic::{set_hook, take_hook};
use std::sync::Mutex;

/// How a process ends that panicked, as Rust's programs do.
const STATUS: i32 = 101;

/// Held by the thread that ends the process.
static ENDING: Mutex<()> = Mutex::new(());

/// Has a panic end the process once it was printed.
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
