//! The user's editor and previewer.
//!
//! A configured command is split into words and never given to a shell; what git itself would
//! use (`GIT_EDITOR`, `core.editor`, `VISUAL`, `EDITOR`) is the user's own shell text and is run
//! as git runs it. An editor with a window runs beside us; one in the terminal is waited for.

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use super::file::reason;
use super::{env, interrupt, process, screen};

/// More bytes than this nobody has typed.
pub const MAX_EDITED: u64 = 64 << 20;

/// Editors that most systems have, for who has named none.
const EDITORS: [&str; 3] = ["vim", "vi", "nano"];

/// Programs that open a window of their own.
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

/// An editor or previewer, ready to open files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Editor {
    /// A program and its arguments; the file comes last.
    Words(Vec<String>),
    /// Shell text, as git has it; the file is its argument.
    Shell(String),
}

/// What became of opening a file.
#[derive(Debug)]
pub enum EditorOutcome {
    /// A terminal editor was left.
    Left(ExitStatus),
    /// A window is open; the user says when it is done.
    Window(Child),
}

/// Returns the previewer: the configured command, else Visual Studio Code. Nothing means: show
/// it in the terminal.
///
/// # Errors
/// The configured command has no words or an open quote.
pub fn previewer(configured: Option<&str>) -> io::Result<Option<Editor>> {
    match configured {
        Some(command) => split(command).map(Some),
        None => Ok(process::find("code").map(|_| Editor::Words(vec!["code".to_owned()]))),
    }
}

/// Returns the editor for a list or an action: the configured command, else Visual Studio Code,
/// else [`named_or_found`], else git's last resort.
///
/// # Errors
/// As [`previewer`].
pub fn editor(configured: Option<&str>, core_editor: Option<&str>) -> io::Result<Editor> {
    let named = || named_or_found(core_editor);
    let last = || Editor::Shell(git_editor(core_editor));
    Ok(previewer(configured)?.or_else(named).unwrap_or_else(last))
}

/// Returns the first editor there is: `VISUAL`, `EDITOR`, git's own choice, `vim`, `vi`, `nano`.
pub fn named_or_found(core_editor: Option<&str>) -> Option<Editor> {
    let named = named_first(core_editor).map(Editor::Shell);
    let mut known = EDITORS.iter();
    named.or_else(|| {
        known
            .find(|name| process::find(name).is_some())
            .map(|&name| Editor::Words(vec![name.to_owned()]))
    })
}

/// Returns the editor that somebody named, the user's own variables before git's.
fn named_first(core_editor: Option<&str>) -> Option<String> {
    let visual = env::var("VISUAL").filter(|_| !is_dumb());
    visual
        .or_else(|| env::var("EDITOR"))
        .or_else(|| env::var("GIT_EDITOR"))
        .or_else(|| core_editor.map(str::to_owned))
}

/// Returns whether the terminal can only print, so that nothing can be edited on it as a whole.
fn is_dumb() -> bool {
    env::var("TERM").is_none_or(|term| term == "dumb")
}

/// Returns what `git var GIT_EDITOR` says, given the value of `core.editor`.
pub fn git_editor(core_editor: Option<&str>) -> String {
    let visual = || env::var("VISUAL").filter(|_| !is_dumb());
    let core = || core_editor.map(str::to_owned);
    env::var("GIT_EDITOR")
        .or_else(core)
        .or_else(visual)
        .or_else(|| env::var("EDITOR"))
        .unwrap_or_else(|| "vi".to_owned())
}

/// Splits a configured command into words.
fn split(command: &str) -> io::Result<Editor> {
    let bad = || {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`{command}` is not a valid command: an opening quote is not closed"),
        )
    };
    let words = shlex::split(command)
        .filter(|words| !words.is_empty())
        .ok_or_else(bad)?;
    Ok(Editor::Words(words))
}

impl Editor {
    /// Opens a file: waits for a terminal editor, leaves a window open.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn open(&self, file: &Path) -> io::Result<EditorOutcome> {
        let mut command = self.command(file);
        let opened = if self.has_window() {
            // A group of its own: ctrl-c at our prompt must not close the user's window.
            let quiet = command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .process_group(0);
            quiet.spawn().map(EditorOutcome::Window)
        } else {
            attach(&mut command);
            interrupt::deaf(|| command.status()).map(EditorOutcome::Left)
        };
        opened
            .map_err(|e| io::Error::new(e.kind(), format!("cannot start `{self}`: {}", reason(&e))))
    }

    /// Returns whether the editor opens a window of its own.
    pub fn has_window(&self) -> bool {
        let words = match self {
            Editor::Words(words) => words.clone(),
            Editor::Shell(text) => shlex::split(text).unwrap_or_default(),
        };
        let program = words
            .first()
            .map(Path::new)
            .and_then(Path::file_name)
            .unwrap_or_default();
        program
            .to_str()
            .is_some_and(|name| WINDOWS.contains(&name) && !waits(&words))
    }

    /// Returns the command that opens a file.
    fn command(&self, file: &Path) -> Command {
        match self {
            Editor::Words(words) => {
                let mut command = process::command(words.first().map_or("", String::as_str));
                command.args(words.iter().skip(1)).arg(file);
                command
            }
            Editor::Shell(text) => {
                let mut command = process::command("sh");
                command
                    .arg("-c")
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
            Editor::Words(words) => f.write_str(&words.join(" ")),
            Editor::Shell(text) => f.write_str(text),
        }
    }
}

/// Gives a terminal editor the screen and the keyboard even if our own input and output go
/// elsewhere (`teddy execute - > result`).
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

/// Returns whether the words ask a window to be waited for.
fn waits(words: &[String]) -> bool {
    words.iter().any(|word| {
        matches!(
            word.as_str(),
            "--wait" | "-w" | "--block" | "-W" | "--nofork" | "-f"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the command and whether it is a window's.
    fn check(command: &str, expected: &[&str], window: bool) {
        let editor = split(command).unwrap();
        assert_eq!(
            editor,
            Editor::Words(expected.iter().map(|&w| w.to_owned()).collect())
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
            matches!(editor.open(file.path()).unwrap(), EditorOutcome::Left(status) if status.success())
        );
        assert_eq!(std::fs::read(file.path()).unwrap(), b"edited");
        let editor = Editor::Words(vec!["rm".to_owned()]);
        assert!(
            matches!(editor.open(file.path()).unwrap(), EditorOutcome::Left(status) if status.success())
        );
        assert!(!file.path().exists());
    }
}
