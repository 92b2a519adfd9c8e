//! Manual mode: the user carries the input to a chat window and the answer back.
//!
//! TeDDy writes the input to a file and the clipboard, and reads the answer from the clipboard or
//! the editor.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::ask;
use super::editor::Choices;
use super::prompts::edit_text;
use super::style::{Paint, StyledLine, Tone};
use crate::host::file::write_atomic;
use crate::host::{clipboard, screen};
use crate::workflow::project::ManualIo;

const MANUAL_QUESTION: &str = "When the chat has answered: take it from the (c)lipboard / write it in the (e)ditor / (q)uit › ";

/// Returns the I/O functions for manual mode. The input becomes `input.md` in the directory.
pub fn manual_io(dir: PathBuf, choices: Choices, paint: Paint) -> ManualIo {
    let input = dir.join("input.md");
    let input_path = input.clone();
    ManualIo {
        give: Rc::new(move |text| give_input(&input_path, text, paint)),
        take: Rc::new(move || take_answer(&input, &choices, paint)),
    }
}

const MANUAL_KEYS: [(char, &str); 3] = [
    ('c', "take the answer from the clipboard"),
    ('e', "write or paste it in your editor"),
    ('q', "leave; the input stays where it is"),
];

/// Copies to the clipboard only if a user is at the terminal.
fn give_input(path: &Path, text: &str, paint: Paint) -> io::Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    write_atomic(path, text.as_bytes())?;
    let copied = screen::can_prompt() && clipboard::copy(text).is_ok();
    let suffix = if copied { " and in the clipboard" } else { "" };
    ask::show(
        &[StyledLine::plain(&format!(
            "The input is in `{}`{suffix}.",
            path.display()
        ))],
        paint,
    );

    Ok(())
}

/// Without a terminal, fails with a message that names the input file.
fn take_answer(input: &Path, choices: &Choices, paint: Paint) -> io::Result<Option<String>> {
    if !screen::can_prompt() {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("the input is in `{}`", input.display()),
        ));
    }

    loop {
        let answer = match ask::key_or_end(MANUAL_QUESTION, &MANUAL_KEYS)? {
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
