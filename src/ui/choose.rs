//! A choice from a short list, at a terminal.

use std::io;

use dialoguer::Select;
use dialoguer::console::Term;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::style::StyledLine;
use super::terminal::room;
use crate::host::screen;

/// The columns of the cursor before a row, and one behind it.
const MARGIN: usize = 3;

/// Asks which of these rows is meant, the first one at the cursor; nothing where the person leaves
/// with escape or `q`.
///
/// # Errors
/// The terminal is gone, or ctrl-c.
pub fn choose(question: &str, rows: &[String]) -> io::Result<Option<usize>> {
    let screen = match screen::terminal() {
        Some(terminal) => Term::read_write_pair(terminal.try_clone()?, terminal.try_clone()?),
        None => Term::stderr(),
    };
    let _keys = Keys::take()?;

    // The library counts a row as one line of the screen.
    let width = room().width.saturating_sub(MARGIN);
    let rows = rows
        .iter()
        .map(|row| StyledLine::plain(row).cut(width).text());
    let chosen = Select::new()
        .with_prompt(question)
        .items(rows)
        .default(0)
        // What comes next says what was chosen.
        .report(false)
        .interact_on_opt(&screen);

    // Where it is interrupted, the library leaves the cursor hidden.
    screen.show_cursor()?;
    chosen.map_err(|dialoguer::Error::IO(error)| error)
}

/// Keys that reach the list from before it is drawn on: a ctrl-c in between would be a signal, and
/// the list would wait for a key for ever.
struct Keys {
    /// How the terminal was.
    before: Termios,
}

impl Keys {
    /// Takes the keys.
    fn take() -> io::Result<Keys> {
        let before = tcgetattr(io::stdin())?;
        let mut now = before.clone();
        now.local_modes -= LocalModes::ISIG | LocalModes::ICANON | LocalModes::ECHO;
        tcsetattr(io::stdin(), OptionalActions::Now, &now)?;
        Ok(Keys { before })
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // A terminal that is gone has no modes.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
