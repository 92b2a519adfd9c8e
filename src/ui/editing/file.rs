//! A text in a file of its own, in the person's editor.

use std::path::PathBuf;

use anyhow::Context as _;

use super::EditingPrompts;
use crate::host::editor::MAX_EDITED;
use crate::host::file::read_regular_text;
use crate::host::temporary::temporary_folder;
use crate::ui::editor::EditorUse;
use crate::ui::style::{StyledLine, Tone};

/// What is said where no editor is found.
const NO_EDITOR: &str = "No editor is known: set `preview_command` or `EDITOR` to change it.";
/// The keys of the question that waits for an editor.
const FINISHED: [(char, &str); 3] = [
    ('y', "it is saved: go on with it"),
    ('n', "not yet"),
    ('d', "drop your changes"),
];

/// A proposed file in a folder of its own, under its own name.
pub(super) struct Proposed {
    /// Removed when the flow ends.
    _folder: tempfile::TempDir,
    /// The file.
    path: PathBuf,
}

/// Lets a text be changed in the editor; nothing where that cannot be done, or the person dropped
/// the changes.
///
/// # Errors
/// The terminal is gone, or no temporary file can be made.
pub fn edit_file(
    desk: &mut dyn EditingPrompts,
    name: &str,
    text: &str,
) -> anyhow::Result<Option<String>> {
    let file = Proposed::write(name, text.as_bytes())?;
    match file.open(desk, &[])? {
        Some(opened) => file.finished(desk, opened, "Have you finished editing and saved it?"),
        None => Ok(None),
    }
}

impl Proposed {
    /// Writes the file.
    pub(super) fn write(name: &str, content: &[u8]) -> anyhow::Result<Proposed> {
        let folder = temporary_folder()?;
        let path = folder.path().join(name);
        std::fs::write(&path, content).context("writing the preview")?;

        Ok(Proposed {
            _folder: folder,
            path,
        })
    }

    /// Opens it; where nothing can, shows something else in the terminal.
    pub(super) fn open(
        &self,
        desk: &mut dyn EditingPrompts,
        instead: &[StyledLine],
    ) -> anyhow::Result<Option<EditorUse>> {
        let problem = match desk.open(&self.path) {
            Ok(Some(opened)) => return Ok(Some(opened)),
            Ok(None) => NO_EDITOR.to_owned(),
            Err(error) => error.to_string(),
        };
        desk.show(instead);
        desk.show(&[StyledLine::of(Tone::Warning, &problem)]);

        Ok(None)
    }

    /// Returns the content as the person left it; `None` where it is to stay as it was. Who has
    /// closed the editor has finished, and is not asked.
    pub(super) fn finished(
        &self,
        desk: &mut dyn EditingPrompts,
        opened: EditorUse,
        question: &str,
    ) -> anyhow::Result<Option<String>> {
        let mut is_closed = opened == EditorUse::Ended;
        loop {
            let key = match is_closed {
                true => 'y',
                false => desk.key(&format!("{question} (y/n) › "), &FINISHED)?,
            };
            match key {
                'y' => {}
                'd' => return Ok(None),
                _ => {
                    desk.show(&[StyledLine::of(
                        Tone::Faint,
                        "Take your time: y when it is saved, d to drop your changes.",
                    )]);
                    continue;
                }
            }

            match read_regular_text(&self.path, MAX_EDITED) {
                Ok(content) => return Ok(Some(content)),
                Err(error) => desk.show(&[StyledLine::of(
                    Tone::Warning,
                    &format!("the file cannot be read: {error}"),
                )]),
            }
            is_closed = false;
        }
    }
}
