//! Starts the user's editor or previewer.
//!
//! A command from TeDDy's configuration is split into words and never given to a shell. The
//! commands that git uses (`GIT_EDITOR`, `core.editor`, `VISUAL`, `EDITOR`) are shell text and are
//! run as git runs them. TeDDy waits for a terminal editor, but not for one that opens a window.

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use super::file::reason;
use super::{env, interrupt, process, screen};

/// Upper bound for an edited file, in bytes.
pub const MAX_EDITED: u64 = 64 << 20;

/// Fallbacks if no editor is configured.
const EDITORS: [&str; 3] = ["vim", "vi", "nano"];

/// Programs that open their own window.
const WINDOWS: [&str; 30] = [
    "atom",
    "bbedit",
    "clion",
    "code",
    "code-insiders",
    "codium",
    "cursor",
    "fleet",
    "gedit",
    "geany",
    "gnome-text-editor",
    "goland",
    "gvim",
    "idea",
    "kate",
    "kwrite",
    "mate",
    "mousepad",
    "notepad",
    "notepadqq",
    "open",
    "pluma",
    "pycharm",
    "rustrover",
    "subl",
    "windsurf",
    "xdg-open",
    "xed",
    "webstorm",
    "zed",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Editor {
    /// A program and its arguments. The file is appended.
    Argv(Vec<String>),
    /// Shell text, as in `core.editor`. The file is its argument.
    Shell(String),
}

#[derive(Debug)]
pub enum EditorOutcome {
    /// The terminal editor exited.
    Exited(ExitStatus),
    /// A window is open. Only the user knows when they are done.
    Window(Child),
}

/// Returns the configured previewer, else Visual Studio Code. `None` means to use the terminal. An
/// empty command counts as none.
pub fn previewer(configured: Option<&str>) -> io::Result<Option<Editor>> {
    match configured.filter(|command| !command.trim().is_empty()) {
        Some(command) => split(command).map(Some),
        None => Ok(process::find("code").map(|_| Editor::Argv(vec!["code".to_owned()]))),
    }
}

/// Returns the first of `VISUAL`, `EDITOR`, git's editor, `vim`, `vi`, `nano` that is available.
pub fn configured_or_installed(core_editor: Option<&str>) -> Option<Editor> {
    let configured = configured_editor(core_editor).map(Editor::Shell);
    let mut candidates = EDITORS.iter();
    configured.or_else(|| {
        candidates
            .find(|name| process::find(name).is_some())
            .map(|&name| Editor::Argv(vec![name.to_owned()]))
    })
}

/// Unlike [`git_editor`], prefers the user's general variables to git's.
fn configured_editor(core_editor: Option<&str>) -> Option<String> {
    let visual = env::var("VISUAL").filter(|_| !is_dumb());
    visual
        .or_else(|| env::var("EDITOR"))
        .or_else(|| env::var("GIT_EDITOR"))
        .or_else(|| core_editor.map(str::to_owned))
}

fn is_dumb() -> bool {
    // As in git, a missing `TERM` counts as dumb here, but not in `screen`.
    env::var("TERM").is_none_or(|term| term == "dumb")
}

/// Returns what `git var GIT_EDITOR` prints, given the value of `core.editor`.
pub fn git_editor(core_editor: Option<&str>) -> String {
    let visual = || env::var("VISUAL").filter(|_| !is_dumb());
    let core = || core_editor.map(str::to_owned);
    env::var("GIT_EDITOR")
        .or_else(core)
        .or_else(visual)
        .or_else(|| env::var("EDITOR"))
        .unwrap_or_else(|| "vi".to_owned())
}

fn split(command: &str) -> io::Result<Editor> {
    let bad = || {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`{command}` is not a valid command: an opening quote is not closed"),
        )
    };
    let argv = shlex::split(command)
        .filter(|argv| !argv.is_empty())
        .ok_or_else(bad)?;
    Ok(Editor::Argv(argv))
}

impl Editor {
    /// Opens `file`. Returns when a terminal editor exits, or as soon as a window is open.
    pub fn open(&self, file: &Path) -> io::Result<EditorOutcome> {
        let mut command = self.command(file);
        let opened = if self.has_window() {
            // A separate process group: ctrl-c at TeDDy's prompt must not close the user's window.
            process::spawn_detached(&mut command).map(EditorOutcome::Window)
        } else {
            attach(&mut command);
            interrupt::without_handling(|| command.status()).map(EditorOutcome::Exited)
        };
        opened
            .map_err(|e| io::Error::new(e.kind(), format!("cannot start `{self}`: {}", reason(&e))))
    }

    /// Returns `true` if the editor opens its own window and does not wait for it.
    pub fn has_window(&self) -> bool {
        let argv = match self {
            Editor::Argv(argv) => argv.clone(),
            Editor::Shell(text) => shlex::split(text).unwrap_or_default(),
        };
        let program = argv
            .first()
            .map(Path::new)
            .and_then(Path::file_name)
            .unwrap_or_default();
        program
            .to_str()
            .is_some_and(|name| WINDOWS.contains(&name) && !waits(&argv))
    }

    fn command(&self, file: &Path) -> Command {
        match self {
            Editor::Argv(argv) => {
                let mut command = process::command_by_hand(argv.first().map_or("", String::as_str));
                command.args(argv.iter().skip(1)).arg(file);
                command
            }
            Editor::Shell(text) => {
                let mut command = process::command_by_hand("sh");
                command
                    .arg("-c")
                    // As git does. The next argument becomes `$0`.
                    .arg(format!("{text} \"$@\""))
                    .arg(text)
                    .arg(file);
                command
            }
        }
    }
}

impl fmt::Display for Editor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Editor::Argv(argv) => f.write_str(&argv.join(" ")),
            Editor::Shell(text) => f.write_str(text),
        }
    }
}

/// Connects a terminal editor to the terminal even if TeDDy's stdin or stdout is redirected (`teddy
/// execute - > result`).
fn attach(command: &mut Command) {
    if !screen::is_stdout() {
        match screen::terminal().map(File::try_clone) {
            Some(Ok(terminal)) => command.stdout(terminal),
            _ if screen::is_stderr() => command.stdout(io::stderr()),
            _ => return,
        };
    }

    if !io::stdin().is_terminal()
        && let Ok(keyboard) = File::open("/dev/tty")
    {
        command.stdin(keyboard);
    }
}

/// Options that make a windowed editor block until the file is closed.
fn waits(argv: &[String]) -> bool {
    argv.iter().any(|word| {
        matches!(
            word.as_str(),
            "--wait" | "-w" | "--block" | "-W" | "--nofork" | "-f"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, expected: &[&str], window: bool) {
        let editor = split(command).unwrap();
        assert_eq!(
            editor,
            Editor::Argv(expected.iter().map(|&w| w.to_owned()).collect())
        );
        assert_eq!(editor.has_window(), window, "for {command}");
    }

    #[test]
    fn a_configured_command_is_split_and_not_interpreted() {
        check("nvim -R", &["nvim", "-R"], false);
        check("code", &["code"], true);
        check("/usr/bin/code --wait", &["/usr/bin/code", "--wait"], false);
        check(
            "'my editor' a;b $HOME",
            &["my editor", "a;b", "$HOME"],
            false,
        );
    }

    #[test]
    fn an_open_quote_is_an_error() {
        assert_eq!(
            split("a 'b").unwrap_err().to_string(),
            "`a 'b` is not a valid command: an opening quote is not closed"
        );
        assert!(split("").is_err());
    }

    #[test]
    fn a_missing_editor_is_named() {
        let error = split("no-such-editor -x")
            .unwrap()
            .open(Path::new("f"))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot start `no-such-editor -x`: no such file or directory"
        );
    }

    #[test]
    fn a_terminal_editor_is_waited_for() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let editor = Editor::Shell("printf edited >".to_owned());
        assert!(
            matches!(editor.open(file.path()).unwrap(), EditorOutcome::Exited(status) if status.success())
        );
        assert_eq!(std::fs::read(file.path()).unwrap(), b"edited");
        let editor = Editor::Argv(vec!["rm".to_owned()]);
        assert!(
            matches!(editor.open(file.path()).unwrap(), EditorOutcome::Exited(status) if status.success())
        );
        assert!(!file.path().exists());
    }
}
