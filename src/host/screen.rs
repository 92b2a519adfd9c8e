//! Finds the terminal for prompts: stderr if it is a terminal, else `/dev/tty` if stdin is one, as
//! git and less do. Prompts still work for `teddy execute 2> log`, and if both outputs are piped
//! into `tee`.
//!
//! After input was read from a redirected stdin, [`take_keys_from_terminal`] connects stdin to the
//! terminal.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::sync::OnceLock;

use rustix::process::getpgrp;
use rustix::stdio::dup2_stdin;
use rustix::termios::tcgetpgrp;

use super::env;

/// `/dev/tty`, if stderr is not a terminal.
static TERMINAL: OnceLock<Option<File>> = OnceLock::new();

/// Writes to the terminal, or to stderr if there is none.
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

/// Returns `true` if the user can be prompted: stdin and the screen are terminals, and `TERM` is
/// not `dumb`.
pub fn can_prompt() -> bool {
    !is_dumb() && io::stdin().is_terminal() && is_screen()
}

/// Explains why the user cannot be prompted, as the first half of a sentence.
pub fn why_no_prompt() -> &'static str {
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

fn is_dumb() -> bool {
    env::var("TERM").is_some_and(|term| term == "dumb")
}

/// Returns whether the terminal can rewrite what it shows.
pub fn moves_cursor() -> bool {
    !is_dumb()
}

/// Returns whether the terminal supports colors. As in git, an unset `TERM` means no.
pub fn takes_colors() -> bool {
    env::var("TERM").is_some() && !is_dumb()
}

/// Connects stdin to the terminal after redirected input was read. Has no effect without a
/// terminal, if neither stdout nor stderr is one, or if TeDDy runs in the background.
pub fn take_keys_from_terminal() {
    if io::stdin().is_terminal() || !(is_stderr() || is_stdout()) {
        return;
    }
    let Ok(terminal) = File::options().read(true).write(true).open("/dev/tty") else {
        return;
    };

    // A background process that reads the terminal is stopped by SIGTTIN, without explanation.
    let is_ours = tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp());
    if is_ours {
        let _ = dup2_stdin(&terminal);
    }
}

/// Returns whether prompts appear on a terminal.
pub fn is_screen() -> bool {
    is_stderr() || terminal().is_some()
}

pub fn is_stderr() -> bool {
    io::stderr().is_terminal()
}

pub fn is_stdout() -> bool {
    io::stdout().is_terminal()
}

/// Returns `/dev/tty` if stdin is a terminal and stderr is not.
pub fn terminal() -> Option<&'static File> {
    TERMINAL.get_or_init(open).as_ref()
}

fn open() -> Option<File> {
    if is_stderr() || !io::stdin().is_terminal() {
        return None;
    }
    File::options().read(true).write(true).open("/dev/tty").ok()
}
