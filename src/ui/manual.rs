//! Manual mode: the user carries the input to a chat window and the answer back.
//!
//! TeDDy writes the input to a file and the clipboard, and reads the answer from the clipboard or
//! the editor.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::ask;
use super::desk::edit_text;
use super::editor::Choices;
use super::style::{Paint, StyledLine, Tone};
use crate::host::file::write_atomic;
use crate::host::{clipboard, screen};
use crate::workflow::project::Hands;

const QUESTION: &str = "When the chat has answered: take it from the (c)lipboard / write it in the (e)ditor / (q)uit › ";

/// Returns the I/O functions for manual mode. The input becomes `input.md` in the directory.
pub fn hands(folder: PathBuf, choices: Choices, paint: Paint) -> Hands {
    let input = folder.join("input.md");
    let given = input.clone();
    Hands {
        give: Rc::new(move |text| give(&given, text, paint)),
        take: Rc::new(move || take(&input, &choices, paint)),
    }
}

const KEYS: [(char, &str); 3] = [
    ('c', "take the answer from the clipboard"),
    ('e', "write or paste it in your editor"),
    ('q', "leave; the input stays where it is"),
];

/// Copies to the clipboard only if a user is at the terminal.
fn give(path: &Path, text: &str, paint: Paint) -> io::Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    write_atomic(path, text.as_bytes())?;
    let copied = screen::is_there() && clipboard::copy(text).is_ok();
    let place = if copied { " and in the clipboard" } else { "" };
    ask::show(
        &[StyledLine::plain(&format!(
            "The input is in `{}`{place}.",
            path.display()
        ))],
        paint,
    );

    Ok(())
}

/// Without a terminal, fails with a message that names the input file.
fn take(input: &Path, choices: &Choices, paint: Paint) -> io::Result<Option<String>> {
    if !screen::is_there() {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("the input is in `{}`", input.display()),
        ));
    }

    loop {
        let answer = match ask::key_or_end(QUESTION, &KEYS)? {
            'q' => return Ok(None),
            'c' => clipboard::paste(),
            _ => choices.message().and_then(|editor| edit_text(&editor, "")),
        };
        match answer {
            Ok(text) if text.trim().is_empty() => ask::show(
                &[StyledLine::of(Tone::Warning, "There is no answer in it.")],
                paint,
            ),
            Ok(text) => return Ok(Some(format!("{}\n", text.trim_end()))),
            Err(error) => ask::show(&[StyledLine::of(Tone::Warning, &error.to_string())], paint),
        }
    }
}
