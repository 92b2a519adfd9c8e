//! Prompts and editors for a user at a terminal.

use std::io::{self, Write};
use std::path::Path;

use super::ask::{self, Reply};
use super::editing::EditingPrompts;
use super::editor::{self, Choices, EditorUse};
use super::style::{Paint, StyledLine, Tone};
use crate::host::editor::Editor;
use crate::host::editor::MAX_EDITED;
use crate::host::file::read_regular_text;
use crate::host::screen;
use crate::workflow::user::NobodyToAsk;

/// The terminal in its normal mode.
#[derive(Debug, Clone)]
pub struct TerminalPrompts {
    /// Configured editors.
    pub choices: Choices,
    /// Whether to use colors.
    pub paint: Paint,
}

impl TerminalPrompts {
    /// Edits a text in the user's editor. Shows an error and returns the text unchanged if that
    /// fails.
    pub fn in_editor(&mut self, text: &str) -> String {
        match self
            .choices
            .message()
            .and_then(|editor| edit_text(&editor, text))
        {
            Ok(text) => text,
            Err(error) => {
                self.show(&[StyledLine::of(Tone::Warning, &error.to_string())]);
                text.to_owned()
            }
        }
    }
}

impl EditingPrompts for TerminalPrompts {
    fn show(&mut self, lines: &[StyledLine]) {
        ask::show(lines, self.paint);
    }

    fn key(&mut self, question: &str, keys: &[(char, &str)]) -> io::Result<char> {
        ask::key(question, keys)
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        let mut text = String::new();
        loop {
            match ask::text(&text, self.paint)? {
                Reply::Quit(_) => return Ok(None),
                Reply::Text(text) => return Ok(Some(text)),
                // A single line needs no editor. Continue with the text.
                Reply::Editor(written) => text = written,
            }
        }
    }

    fn text(&mut self, start: &str) -> io::Result<Option<String>> {
        let mut text = if start.contains('\n') {
            self.in_editor(start)
        } else {
            start.to_owned()
        };

        self.show(&[ask::hint()]);
        loop {
            match ask::text(&text, self.paint)? {
                Reply::Quit(_) => return Ok(None),
                Reply::Text(text) => return Ok(Some(text)),
                Reply::Editor(written) => text = self.in_editor(&written),
            }
        }
    }

    fn open(&mut self, path: &Path) -> io::Result<Option<EditorUse>> {
        self.choices
            .preview()?
            .map(|editor| editor::open_to_change(&editor, path))
            .transpose()
    }
}

/// Edits a text in the user's editor, through a temporary file. Fails without a terminal.
pub fn edit_at_terminal(text: &str, core_editor: Option<&str>) -> anyhow::Result<String> {
    if !screen::can_prompt() {
        let message = "there is no terminal for an editor";
        let hint =
            "`teddy context add <resource>` and `teddy context rm <resource>` change the list";
        return Err(NobodyToAsk::new(message, hint).into());
    }

    Ok(edit_text(
        &crate::host::editor::editor(None, core_editor)?,
        text,
    )?)
}

/// Edits a text in this editor, through a temporary file.
pub fn edit_text(editor: &Editor, text: &str) -> io::Result<String> {
    let mut file = tempfile::Builder::new()
        .prefix("teddy-")
        .suffix(".md")
        .tempfile()?;
    writeln!(file, "{text}")?;
    if editor::open_to_change(editor, file.path())? == EditorUse::Window
        // The editor runs in the background, so only the user knows when it is done.
        && !ask::yes("Have you finished writing and saved the file?")?
    {
        return Ok(text.to_owned());
    }

    let text = read_regular_text(file.path(), MAX_EDITED)?;
    Ok(text.trim_end().to_owned())
}
