//! Edits a text in a temporary file with the user's editor.

use std::path::PathBuf;

use anyhow::Context as _;

use super::EditingPrompts;
use crate::host::editor::MAX_EDITED;
use crate::host::file::read_regular_text;
use crate::host::temporary::temporary_folder;
use crate::ui::editor::EditorUse;
use crate::ui::style::{StyledLine, Tone};

const NO_EDITOR: &str = "No editor is known: set `preview_command` or `EDITOR` to change it.";
/// For the question that waits for an editor in the background.
const FINISHED: [(char, &str); 3] = [
    ('y', "it is saved: continue with it"),
    ('n', "not yet"),
    ('d', "drop your changes"),
];

/// A temporary file under its final name, in its own directory.
pub(super) struct Proposed {
    /// Removed when it is dropped.
    _folder: tempfile::TempDir,
    path: PathBuf,
}

/// Edits a text in the user's editor. Returns `None` if that fails or the user drops the changes.
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
    pub(super) fn write(name: &str, content: &[u8]) -> anyhow::Result<Proposed> {
        let folder = temporary_folder()?;
        let path = folder.path().join(name);
        std::fs::write(&path, content).context("writing the preview")?;

        Ok(Proposed {
            _folder: folder,
            path,
        })
    }

    /// Opens the file. If that fails, shows `instead` in the terminal and returns `None`.
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

    /// Returns the edited contents, or `None` if the user drops the changes. Asks only if the
    /// editor runs in the background.
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
            // The file can't be read although the editor has ended: ask now, so the user can fix
            // it.
            is_closed = false;
        }
    }
}
