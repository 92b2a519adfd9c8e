//! Selects an item from a short list.

use std::io;

use dialoguer::Select;
use dialoguer::console::Term;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::style::StyledLine;
use super::terminal::terminal_size;
use crate::host::screen;

/// Two columns for the cursor, and one left free at the end.
const CHOICE_MARGIN: usize = 3;

/// Asks the user to select a row. Returns `None` if they leave with escape or `q`. Ctrl-c is an
/// error.
pub fn choose(question: &str, rows: &[String]) -> io::Result<Option<usize>> {
    let screen = match screen::terminal() {
        Some(terminal) => Term::read_write_pair(terminal.try_clone()?, terminal.try_clone()?),
        None => Term::stderr(),
    };
    let _keys = ChoiceKeys::take()?;

    // dialoguer assumes that an item takes one row, and would redraw wrapped ones wrongly.
    let width = terminal_size().width.saturating_sub(CHOICE_MARGIN);
    let rows = rows
        .iter()
        .map(|row| StyledLine::plain(row).cut(width).text());
    let chosen = Select::new()
        .with_prompt(question)
        .items(rows)
        .default(0)
        // The caller reports the choice.
        .report(false)
        .interact_on_opt(&screen);

    // dialoguer leaves the cursor hidden if it is interrupted.
    screen.show_cursor()?;
    chosen.map_err(|dialoguer::Error::IO(error)| error)
}

/// Guard that puts the terminal into raw mode before dialoguer does. A ctrl-c in between would
/// arrive as a signal, and dialoguer would wait for a key forever.
struct ChoiceKeys {
    before: Termios,
}

impl ChoiceKeys {
    fn take() -> io::Result<ChoiceKeys> {
        let before = tcgetattr(io::stdin())?;
        let mut now = before.clone();
        now.local_modes -= LocalModes::ISIG | LocalModes::ICANON | LocalModes::ECHO;
        tcsetattr(io::stdin(), OptionalActions::Now, &now)?;
        Ok(ChoiceKeys { before })
    }
}

impl Drop for ChoiceKeys {
    fn drop(&mut self) {
        // Fails only if the terminal is gone.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
