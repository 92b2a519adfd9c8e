//! Manual mode: the user carries the input to a chat window and the answer back.
//!
//! TeDDy writes the input to a file and the clipboard, and reads the answer from the clipboard or
//! the editor.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::ask;
use super::editing::edit_text;
use super::editor::Choices;
use super::style::{Paint, StyledLine, Tone};
use crate::host::file::write_atomic;
use crate::host::{clipboard, screen};
use crate::project::ManualIo;

const MANUAL_QUESTION: &str = "When the chat has answered: take it from the (c)lipboard / write it in the (e)ditor / (q)uit › ";

/// Returns the I/O functions for manual mode. The input becomes `input.md` in the directory.
pub fn manual_io(dir: PathBuf, choices: Choices, paint: Paint) -> ManualIo {
    let input = dir.join("input.md");
    let input_path = input.clone();
    let given = Rc::new(RefCell::new(String::new()));
    let last_given = Rc::clone(&given);
    ManualIo {
        give: Rc::new(move |text| {
            text.clone_into(&mut given.borrow_mut());
            give_input(&input_path, text, paint)
        }),
        take: Rc::new(move || take_answer(&input, &last_given.borrow(), &choices, paint)),
    }
}

const MANUAL_KEYS: [(char, &str); 3] = [
    ('c', "take the answer from the clipboard"),
    ('e', "write or paste it in your editor"),
    ('q', "leave; the input stays where it is"),
];

const NO_CLIPBOARD: &str =
    "No clipboard can be read from here: press e, and paste the answer in your editor.";

const IS_INPUT: &str = "That is the input itself: copy the answer of the chat first.";

/// Copies to the clipboard only if a user is at the terminal.
fn give_input(path: &Path, text: &str, paint: Paint) -> io::Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    write_atomic(path, text.as_bytes())?;
    let copied = screen::can_prompt().then(|| clipboard::copy(text));
    let suffix = match copied {
        Some(Ok(copied)) => format!(", and {}", copied.predicate()),
        _ => String::new(),
    };
    let line = format!("The input is in `{}`{suffix}.", path.display());
    ask::show(&[StyledLine::plain(&line)], paint);

    Ok(())
}

/// Without a terminal, fails with a message that names the input file.
fn take_answer(
    input: &Path,
    given: &str,
    choices: &Choices,
    paint: Paint,
) -> io::Result<Option<String>> {
    if !screen::can_prompt() {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("the input is in `{}`", input.display()),
        ));
    }

    let warn = |text: &str| ask::show(&[StyledLine::of(Tone::Warning, text)], paint);
    loop {
        let answer = match ask::key_or_end(MANUAL_QUESTION, &MANUAL_KEYS)? {
            'q' => return Ok(None),
            'c' => clipboard::paste().map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => io::Error::other(NO_CLIPBOARD),
                _ => error,
            }),
            _ => choices.message().and_then(|editor| edit_text(&editor, "")),
        };
        match answer {
            Ok(text) if text.trim().is_empty() => warn("There is no answer in it."),
            Ok(text) if is_same(&text, given) => warn(IS_INPUT),
            Ok(text) => return Ok(Some(format!("{}\n", text.trim_end()))),
            Err(error) => warn(&error.to_string()),
        }
    }
}

/// A clipboard can change the line ends, and what follows the text.
fn is_same(text: &str, given: &str) -> bool {
    text.trim().lines().eq(given.trim().lines())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_is_known_after_a_clipboard_had_it() {
        let check = |text: &str, expected: bool| {
            assert_eq!(is_same(text, "# System\n\nGo.\n"), expected, "{text:?}");
        };
        check("# System\n\nGo.\n", true);
        check("# System\r\n\r\nGo.", true);
        check("# System\n\nGo.\n\n# Answer\n", false);
    }
}
