//! Where a person reads what is asked: standard error where that is a terminal; else, as git and
//! less do it, the terminal from which the keys come. So `teddy execute 2> log` and `teddy execute
//! 2>&1 | tee log` still ask. What was read from standard input leaves it to the keys again
//! ([`take_keys_from_terminal`]).

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::sync::OnceLock;

use rustix::process::getpgrp;
use rustix::stdio::dup2_stdin;
use rustix::termios::tcgetpgrp;

use super::env;

/// The terminal of the keys, where standard error is none.
static TERMINAL: OnceLock<Option<File>> = OnceLock::new();

/// The screen; without any, standard error.
#[derive(Debug, Clone, Copy)]
pub struct Screen;

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match terminal() {
            Some(mut file) => file.write(bytes),
            None => io::stderr().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match terminal() {
            Some(mut file) => file.flush(),
            None => io::stderr().flush(),
        }
    }
}

/// Returns whether a person is there: keys from stdin, a screen, a terminal that can do more than
/// print.
pub fn is_there() -> bool {
    !is_dumb() && io::stdin().is_terminal() && is_screen()
}

/// Says why nobody can be asked, as the first half of a sentence.
pub fn why_nobody() -> &'static str {
    if !io::stdin().is_terminal() {
        "stdin is not a terminal"
    } else if is_dumb() {
        "the terminal can only print (`TERM=dumb`)"
    } else if !is_screen() {
        "there is no terminal to show it on"
    } else {
        "the answer has to be on the command line"
    }
}

/// Returns whether the terminal can do no more than print.
fn is_dumb() -> bool {
    env::var("TERM").is_some_and(|term| term == "dumb")
}

/// Returns whether the terminal takes colours; as git has it, not one that says nothing of itself.
pub fn takes_colors() -> bool {
    env::var("TERM").is_some() && !is_dumb()
}

/// Lets the keys come from the terminal, where standard input was something to read and has been
/// read. Nothing changes where there is no terminal, nobody looks at it, or another program has it.
pub fn take_keys_from_terminal() {
    if io::stdin().is_terminal() || !(is_stderr() || is_stdout()) {
        return;
    }
    let Ok(terminal) = File::options().read(true).write(true).open("/dev/tty") else {
        return;
    };

    // Whoever reads a terminal from behind is stopped, and the shell does not say why.
    let is_ours = tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp());
    if is_ours {
        let _ = dup2_stdin(&terminal);
    }
}

/// Returns whether what is asked is read on a screen.
pub fn is_screen() -> bool {
    is_stderr() || terminal().is_some()
}

/// Returns whether words are read on a screen.
pub fn is_stderr() -> bool {
    io::stderr().is_terminal()
}

/// Returns whether results are read on a screen.
pub fn is_stdout() -> bool {
    io::stdout().is_terminal()
}

/// Returns the terminal of the keys, where standard error is none.
pub fn terminal() -> Option<&'static File> {
    TERMINAL.get_or_init(open).as_ref()
}

/// Opens the terminal of the keys.
fn open() -> Option<File> {
    if is_stderr() || !io::stdin().is_terminal() {
        return None;
    }
    File::options().read(true).write(true).open("/dev/tty").ok()
}
