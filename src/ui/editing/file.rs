//! Edits a text in a temporary file with the user's editor.

use std::path::PathBuf;

use anyhow::Context as _;

use super::EditingPrompts;
use crate::host::editor::MAX_EDITED;
use crate::host::file::read_regular_text;
use crate::host::temporary::temporary_dir;
use crate::ui::editor::EditorUse;
use crate::ui::style::{StyledLine, Tone};

const NO_EDITOR: &str = "No editor is known: set `preview_command` or `EDITOR` to change it.";
/// For the question that waits for an editor in the background.
const FINISHED_KEYS: [(char, &str); 3] = [
    ('y', "it is saved: continue with it"),
    ('n', "not yet"),
    ('d', "drop your changes"),
];

/// A temporary file under its final name, in its own directory.
pub(super) struct ProposedFile {
    /// Removed when it is dropped.
    _dir: tempfile::TempDir,
    path: PathBuf,
}

/// Edits a text in the user's editor. Returns `None` if that fails or the user drops the changes.
pub fn edit_file(
    prompts: &mut dyn EditingPrompts,
    name: &str,
    text: &str,
) -> anyhow::Result<Option<String>> {
    let file = ProposedFile::write(name, text.as_bytes())?;
    match file.open(prompts, &[])? {
        Some(opened) => file.finished(prompts, opened, "Have you finished editing and saved it?"),
        None => Ok(None),
    }
}

impl ProposedFile {
    pub(super) fn write(name: &str, bytes: &[u8]) -> anyhow::Result<ProposedFile> {
        let dir = temporary_dir()?;
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).context("writing the preview")?;

        Ok(ProposedFile { _dir: dir, path })
    }

    /// Opens the file. If that fails, shows `instead` in the terminal and returns `None`.
    pub(super) fn open(
        &self,
        prompts: &mut dyn EditingPrompts,
        instead: &[StyledLine],
    ) -> anyhow::Result<Option<EditorUse>> {
        let problem = match prompts.open(&self.path) {
            Ok(Some(opened)) => return Ok(Some(opened)),
            Ok(None) => NO_EDITOR.to_owned(),
            Err(error) => error.to_string(),
        };
        prompts.show(instead);
        prompts.show(&[StyledLine::of(Tone::Warning, &problem)]);

        Ok(None)
    }

    /// Returns the edited contents, or `None` if the user drops the changes. Asks only if the
    /// editor runs in the background.
    pub(super) fn finished(
        &self,
        prompts: &mut dyn EditingPrompts,
        opened: EditorUse,
        question: &str,
    ) -> anyhow::Result<Option<String>> {
        let mut is_closed = opened == EditorUse::Ended;
        loop {
            let key = match is_closed {
                true => 'y',
                false => prompts.key(&format!("{question} (y/n) › "), &FINISHED_KEYS)?,
            };
            match key {
                'y' => {}
                'd' => return Ok(None),
                _ => {
                    prompts.show(&[StyledLine::of(
                        Tone::Faint,
                        "Take your time: y when it is saved, d to drop your changes.",
                    )]);
                    continue;
                }
            }

            match read_regular_text(&self.path, MAX_EDITED) {
                Ok(text) => return Ok(Some(text)),
                Err(error) => prompts.show(&[StyledLine::of(
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
