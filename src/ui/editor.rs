//! Which program shows or edits a file for the person, and how it is started: never by a shell.

use std::io::{self, Write};
use std::path::Path;

use crate::host::{env, process};

/// Programs that open a window of their own and leave the terminal alone.
const GRAPHICAL: [&str; 24] = [
    "code",
    "code-insiders",
    "codium",
    "vscodium",
    "cursor",
    "windsurf",
    "zed",
    "zeditor",
    "subl",
    "sublime_text",
    "atom",
    "gedit",
    "gnome-text-editor",
    "kate",
    "kwrite",
    "mousepad",
    "xed",
    "gvim",
    "mvim",
    "mate",
    "idea",
    "pycharm",
    "xdg-open",
    "open",
];
/// The options with which a graphical program stays in the terminal.
const IN_TERMINAL: [&str; 4] = ["-nw", "--no-window-system", "-t", "--tty"];
/// The variables that name an editor, in the order of git.
const VARIABLES: [&str; 3] = ["GIT_EDITOR", "VISUAL", "EDITOR"];

/// A program with its arguments; the file's path comes last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Editor {
    /// Program and arguments.
    argv: Vec<String>,
}

/// The editor with a window that is taken where nothing is configured.
const CODE: &str = "code";
/// The editor that every system has.
const VI: &str = "vi";

/// How a file was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// The program had the terminal and has ended.
    Ended,
    /// The program runs beside the terminal.
    Beside,
}

/// What the choice of an editor depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choices {
    /// `preview_command`.
    pub preview_command: Option<String>,
    /// The editors that the environment names, first choice first.
    pub environment: Vec<String>,
    /// The programs that are there, of those that are taken without being named.
    pub there: Vec<String>,
}

impl Choices {
    /// Returns what can be chosen on this machine.
    pub fn here(preview_command: Option<&str>) -> Choices {
        let there = |name: &&str| process::find(name).is_some();
        Choices {
            preview_command: preview_command.map(str::to_owned),
            environment: VARIABLES.iter().filter_map(|name| env::var(name)).collect(),
            there: [CODE, VI].into_iter().filter(there).map(str::to_owned).collect(),
        }
    }

    /// Returns the program for a preview: the configured one, `code`, an editor of the environment.
    pub fn preview(&self) -> Option<Editor> {
        self.reader().or_else(|| self.environment())
    }

    /// Returns the program for reading alone: the configured one or `code`.
    pub fn reader(&self) -> Option<Editor> {
        self.configured().or_else(|| self.found(CODE))
    }

    /// Returns the program for writing a message: an editor of the environment first, as git does.
    pub fn message(&self) -> Option<Editor> {
        self.environment().or_else(|| self.configured()).or_else(|| self.found(VI))
    }

    /// Returns what `preview_command` says.
    fn configured(&self) -> Option<Editor> {
        self.preview_command.as_deref().and_then(Editor::parse)
    }

    /// Returns what the environment says.
    fn environment(&self) -> Option<Editor> {
        self.environment.iter().find_map(|text| Editor::parse(text))
    }

    /// Returns a program that is there.
    fn found(&self, name: &str) -> Option<Editor> {
        self.there.iter().any(|there| there == name).then(|| Editor { argv: vec![name.to_owned()] })
    }
}

impl Editor {
    /// Splits a command into its words; nothing where there are none or a quote is not closed.
    pub fn parse(command: &str) -> Option<Editor> {
        shlex::split(command).filter(|argv| !argv.is_empty()).map(|argv| Editor { argv })
    }

    /// Returns the program's name without its folder.
    pub fn name(&self) -> &str {
        self.argv[0].rsplit('/').next().unwrap_or_default()
    }

    /// Tells whether it opens a window of its own.
    pub fn is_graphical(&self) -> bool {
        let emacs = matches!(self.name(), "emacs" | "emacsclient");
        let stays = self.argv.iter().any(|word| IN_TERMINAL.contains(&word.as_str()));
        (GRAPHICAL.contains(&self.name()) || (emacs && env::var("DISPLAY").is_some())) && !(emacs && stays)
    }

    /// Opens a file. The terminal must be in its ordinary mode.
    ///
    /// # Errors
    /// The program cannot be started, or it had the terminal and failed.
    pub fn open(&self, path: &Path) -> io::Result<Opened> {
        io::stderr().flush()?;
        let mut command = process::command(&self.argv[0]);
        command.args(&self.argv[1..]).arg(path);
        if self.is_graphical() {
            let quiet = std::process::Stdio::null;
            let mut child = command.stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn()?;
            // Some return at once and some stay: either way somebody must take the exit code.
            std::thread::spawn(move || child.wait());
            return Ok(Opened::Beside);
        }
        let status = command.stdout(io::stderr()).status()?;
        if status.success() { Ok(Opened::Ended) } else { Err(io::Error::other(format!("`{}` ended with {status}", self.argv[0]))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the programs for preview and message.
    fn check(preview_command: Option<&str>, environment: &[&str], there: &[&str], expected: (Option<&str>, Option<&str>)) {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let choices = Choices { preview_command: preview_command.map(str::to_owned), environment: owned(environment), there: owned(there) };
        let words = |editor: Option<Editor>| editor.map(|editor| editor.argv.join(" "));
        let found = (words(choices.preview()), words(choices.message()));
        assert_eq!((found.0.as_deref(), found.1.as_deref()), expected);
    }

    #[test]
    fn a_preview_takes_the_configured_program_then_code_then_the_environment() {
        let both = ["vim -f", "nano"];
        check(Some("nvim -R"), &both, &["code"], (Some("nvim -R"), Some("vim -f")));
        check(None, &both, &["code"], (Some("code"), Some("vim -f")));
        check(None, &both, &[], (Some("vim -f"), Some("vim -f")));
        check(None, &[], &["vi"], (None, Some("vi")));
        check(None, &[], &[], (None, None));
    }

    #[test]
    fn a_command_is_split_and_not_given_to_a_shell() {
        check(Some("'my editor' --x=\"a b\"; rm"), &[], &[], (Some("my editor --x=a b; rm"), Some("my editor --x=a b; rm")));
        assert_eq!(Editor::parse("'open"), None);
        assert_eq!(Editor::parse("  "), None);
    }

    #[test]
    fn windows_run_beside_and_the_rest_gets_the_terminal() {
        let graphical = |command: &str| Editor::parse(command).unwrap().is_graphical();
        assert!(graphical("code --wait") && graphical("/usr/bin/subl -n"));
        assert!(!graphical("vim") && !graphical("nano") && !graphical("less -R") && !graphical("./my-script") && !graphical("emacs -nw"));
    }
}
