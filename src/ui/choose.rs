//! A choice from a short list, at a terminal.

use std::io;

use dialoguer::Select;
use dialoguer::console::Term;

/// Asks which of these rows is meant, the first one at the cursor; nothing where the person leaves with escape or `q`.
///
/// # Errors
/// The terminal is gone, or ctrl-c.
pub fn choose(question: &str, rows: &[String]) -> io::Result<Option<usize>> {
    let screen = Term::stderr();
    let chosen = Select::new().with_prompt(question).items(rows).default(0).interact_on_opt(&screen);
    // Where it is interrupted, the library leaves the cursor hidden.
    screen.show_cursor()?;
    chosen.map_err(|dialoguer::Error::IO(error)| error)
}
