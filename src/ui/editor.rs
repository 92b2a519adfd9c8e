//! Selects and runs the program that opens a file: the configured previewer, or an editor.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use super::terminal;
use crate::host::editor::{self, Editor};
use crate::host::env;

/// An editor that exits earlier and wrote nothing has passed the file to a running instance. No
/// user reads and closes a file that fast.
const AT_ONCE: Duration = Duration::from_millis(300);

/// Exit code of a shell that did not find its program.
const NOT_FOUND: i32 = 127;

/// Configuration that determines the editor, besides the environment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choices {
    pub preview_command: Option<String>,
    /// Git's `core.editor`.
    pub core_editor: Option<String>,
}

/// How a program opened a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditorUse {
    /// It ran in the terminal and has ended.
    Ended,
    /// It runs in the background.
    Window,
}

impl Choices {
    /// Returns the program for reading: the configured one, or Visual Studio Code. A command that
    /// cannot be split is an error.
    pub fn reader(&self) -> io::Result<Option<Editor>> {
        editor::previewer(self.preview_command.as_deref())
    }

    /// Returns the program for an editable preview: the one for reading, or else a configured or
    /// installed editor.
    pub fn preview(&self) -> io::Result<Option<Editor>> {
        let fallback = || editor::configured_or_installed(self.core_editor.as_deref());
        Ok(self.reader()?.or_else(fallback))
    }

    /// Like [`Choices::preview`], or else git's default.
    pub fn any(&self) -> io::Result<Editor> {
        let last = || Editor::Shell(editor::git_editor(self.core_editor.as_deref()));
        Ok(self.preview()?.unwrap_or_else(last))
    }

    /// Returns the program for writing a message. In order: git's editor if the user configured
    /// one, the previewer, an installed editor, git's default.
    pub fn message(&self) -> io::Result<Editor> {
        let other = self.any()?;
        Ok(self.configured_editor().unwrap_or(other))
    }

    /// Returns git's editor, if the user configured one.
    fn configured_editor(&self) -> Option<Editor> {
        let core = self.core_editor.as_deref();
        let is_configured = core.is_some()
            || ["GIT_EDITOR", "VISUAL", "EDITOR"]
                .iter()
                .any(|name| env::var(name).is_some());
        is_configured.then(|| Editor::Shell(editor::git_editor(core)))
    }
}

/// Opens a file. A program that runs in the terminal gets it in its normal mode.
pub fn open(editor: &Editor, path: &Path) -> io::Result<EditorUse> {
    match terminal::lend(|| editor.open(path))?? {
        editor::EditorOutcome::Exited(status) if status.success() => Ok(EditorUse::Ended),
        // The shell that starts it found no program.
        editor::EditorOutcome::Exited(status) if status.code() == Some(NOT_FOUND) => {
            Err(io::Error::other(format!(
                "`{editor}` was not found; `VISUAL` and `EDITOR` name an editor"
            )))
        }
        editor::EditorOutcome::Exited(status) => {
            Err(io::Error::other(format!("`{editor}` ended with {status}")))
        }
        editor::EditorOutcome::Window(mut child) => {
            // Reap the child. Launchers exit immediately, other windows stay open.
            std::thread::spawn(move || child.wait());
            Ok(EditorUse::Window)
        }
    }
}

/// Opens a file for editing. A program that exits immediately without a change counts as running in
/// the background: it passed the file to another process.
pub fn open_to_change(editor: &Editor, path: &Path) -> io::Result<EditorUse> {
    let (before, start) = (state(path), Instant::now());
    let opened = open(editor, path)?;
    let is_handed_on = start.elapsed() < AT_ONCE && state(path) == before;
    Ok(match is_handed_on {
        true => EditorUse::Window,
        false => opened,
    })
}

/// Length and modification time, to detect a write.
fn state(path: &Path) -> Option<(u64, SystemTime)> {
    let file = path.metadata().ok()?;
    Some((file.len(), file.modified().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configured_program_reads_and_previews() {
        let choices = Choices {
            preview_command: Some("nvim -R".to_owned()),
            core_editor: Some("ed".to_owned()),
        };
        for editor in [choices.reader(), choices.preview()] {
            assert_eq!(editor.unwrap().unwrap().to_string(), "nvim -R");
        }
    }

    #[test]
    fn an_empty_command_is_none() {
        let reader = |command: Option<&str>| {
            let choices = Choices {
                preview_command: command.map(str::to_owned),
                core_editor: None,
            };
            choices.reader().unwrap()
        };
        assert_eq!(reader(Some(" ")), reader(None));
    }

    #[test]
    fn a_command_that_cannot_be_split_is_an_error() {
        assert!(
            Choices {
                preview_command: Some("'open".to_owned()),
                core_editor: None
            }
            .preview()
            .is_err()
        );
    }

    #[test]
    fn a_program_that_returns_at_once_and_writes_nothing_runs_on_elsewhere() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let hands_on = Editor::Argv(vec!["true".to_owned()]);
        let opened = open_to_change(&hands_on, file.path()).unwrap();
        assert_eq!(opened, EditorUse::Window);
    }

    #[test]
    fn an_editor_that_fails_is_an_error_and_one_that_ends_is_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let writes = Editor::Shell("printf mine >".to_owned());
        let opened = open_to_change(&writes, file.path()).unwrap();
        assert_eq!(opened, EditorUse::Ended);
        let error = open(&Editor::Argv(vec!["false".to_owned()]), file.path())
            .unwrap_err()
            .to_string();
        assert_eq!(error, "`false` ended with exit status: 1");
    }
}
