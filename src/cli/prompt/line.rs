//! Parses input at the prompt: a message, a `/command`, or a `!command` for the shell.

use std::path::Path;

use crate::git::refs;
use crate::project::Project;
use crate::text::near::nearest;
use crate::text::path::lossy;
use crate::text::sanitize::sanitize_line;
use crate::workflow::model::agents;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PromptCommand {
    /// Name after the `/`.
    pub name: &'static str,
    /// Its arguments, for `/help`.
    pub arguments: &'static str,
    /// Description for `/help`.
    pub about: &'static str,
    pub act: PromptAct,
}

/// Implementation of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptAct {
    /// Runs these words as a command line.
    Run(&'static [&'static str]),
    Model,
    Agent,
    /// Shows the plan of the newest turn, or sends a message that asks for a plan.
    Plan,
    Help,
    Quit,
}

/// Generates the list: name, arguments, description and implementation of each.
macro_rules! commands {
    ($($name:literal $arguments:literal $about:literal $act:expr,)*) => {
        &[$(PromptCommand { name: $name, arguments: $arguments, about: $about, act: $act },)*]
    };
}

/// All commands, in the order of `/help`.
pub(super) const COMMANDS: &[PromptCommand] = commands! {
    "undo" "[N]" "undo the last turn, or the last N" PromptAct::Run(&["undo"]),
    "redo" "[N]" "redo what was undone" PromptAct::Run(&["redo"]),
    "diff" "[TURN]" "show what the newest turn changed" PromptAct::Run(&["diff"]),
    "status" "" "show where things stand" PromptAct::Run(&["status"]),
    "log" "" "list the turns" PromptAct::Run(&["log"]),
    "show" "[TURN]" "show a turn" PromptAct::Run(&["show"]),
    "add" "FILE..." "show the model files" PromptAct::Run(&["context", "add"]),
    "drop" "FILE..." "remove files from the context" PromptAct::Run(&["context", "rm"]),
    "context" "" "list what the model sees" PromptAct::Run(&["context", "list"]),
    "model" "[MODEL]" "choose the model, or list those configured" PromptAct::Model,
    "agent" "[AGENT]" "choose the agent, or list them" PromptAct::Agent,
    "plan" "[TEXT]" "show the newest plan, or ask for one" PromptAct::Plan,
    "land" "[OPTION...]" "commit what the turns did to your branch" PromptAct::Run(&["land"]),
    "help" "" "list these commands" PromptAct::Help,
    "quit" "" "leave" PromptAct::Quit,
};

const ALIASES: [(&str, &str); 4] = [
    ("exit", "quit"),
    ("q", "quit"),
    ("h", "help"),
    ("rm", "drop"),
];

/// Parsed input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptLine<'a> {
    /// For the model.
    Message(&'a str),
    /// A command with its arguments.
    Command(PromptCommand, &'a str),
    /// For the shell.
    Shell(&'a str),
    /// An unknown command, with a suggestion.
    Unknown(&'a str, Option<&'static str>),
}

impl PromptLine<'_> {
    /// Parses the input. A `/` followed by a word is always a command. A path, or text that starts
    /// with a space, is a message.
    pub(super) fn read(text: &str) -> PromptLine<'_> {
        if let Some(command) = text.strip_prefix('!') {
            return PromptLine::Shell(command.trim());
        }

        // These words leave any other prompt, so they are not meant for the model.
        let line = match text.trim() {
            "exit" | "quit" => "quit",
            _ => match text.strip_prefix('/') {
                Some(line) => line,
                None => return PromptLine::Message(text),
            },
        };
        let (word, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let is_word = word.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
        if !is_word {
            return PromptLine::Message(text);
        }

        match command(word) {
            Some(command) => PromptLine::Command(command, arguments.trim()),
            // A mistyped command is not sent to the model.
            None => PromptLine::Unknown(word, nearest(word, command_names())),
        }
    }
}

fn command(word: &str) -> Option<PromptCommand> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == word);
    let name = alias.map_or(word, |(_, name)| name);
    COMMANDS
        .iter()
        .find(|command| command.name == name)
        .copied()
}

pub(super) fn command_names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|command| command.name)
}

/// Returns the `@` mentions of a message, without the `@`.
pub(super) fn mentions(message: &str) -> impl Iterator<Item = &str> {
    let mention_length = |word: &'_ str| word.strip_prefix('@').map(str::len);
    message.split_whitespace().filter_map(move |word| {
        let length = mention_length(word)?;
        let name = &word[word.len() - length..];
        let name = name.trim_end_matches([',', ';', ':', '!', '?', ')', '.']);
        (!name.is_empty()).then_some(name)
    })
}

/// Names considered.
const MAX_NAMES: usize = 200;

/// Kind of completion for the last word.
#[derive(Debug, PartialEq, Eq)]
enum CompletionKind<'a> {
    /// Commands; the word starts with `/`.
    Commands(&'a str),
    /// Files: the mark before the path, and the incomplete path.
    Files(&'static str, &'a str),
    Models(&'a str),
    Agents(&'a str),
    Nothing,
}

/// Returns completions for the last word of a text.
pub(super) fn candidates(project: &Project, dir: &Path, before: &str) -> Vec<String> {
    let completions = match completion_kind(before) {
        CompletionKind::Commands(word) => {
            matching_names(command_names().map(|name| format!("/{name}")), word)
        }
        CompletionKind::Files(mark, path) => matching_files(project, dir, path)
            .into_iter()
            .map(|path| format!("{mark}{path}"))
            .collect(),
        CompletionKind::Models(word) => {
            matching_names(project.settings.models.keys().cloned(), word)
        }
        CompletionKind::Agents(word) => matching_names(agents::agents(project), word),
        CompletionKind::Nothing => Vec::new(),
    };

    // Names that a terminal cannot show verbatim are never offered.
    completions
        .into_iter()
        .filter(|name| sanitize_line(name) == *name && !name.contains(char::is_whitespace))
        .collect()
}

fn completion_kind(before: &str) -> CompletionKind<'_> {
    let word = before.rsplit(char::is_whitespace).next().unwrap_or(before);
    if let Some(path) = word.strip_prefix('@') {
        return CompletionKind::Files("@", path);
    }

    let Some(line) = before.strip_prefix('/') else {
        return CompletionKind::Nothing;
    };
    let Some((name, _)) = line.split_once(char::is_whitespace) else {
        return CompletionKind::Commands(before);
    };
    match command(name).map(|command| command.act) {
        Some(PromptAct::Run(["context", "add" | "rm"])) => CompletionKind::Files("", word),
        Some(PromptAct::Model) => CompletionKind::Models(word),
        Some(PromptAct::Agent) => CompletionKind::Agents(word),
        _ => CompletionKind::Nothing,
    }
}

fn matching_names(names: impl IntoIterator<Item = String>, word: &str) -> Vec<String> {
    names
        .into_iter()
        .filter(|name| name.starts_with(word))
        .collect()
}

/// Returns files and directories whose path starts with the typed text. If there are none, returns
/// files of the newest commit whose path contains it.
fn matching_files(project: &Project, dir: &Path, typed: &str) -> Vec<String> {
    let (above, start) = typed
        .rsplit_once('/')
        .map_or(("", typed), |(above, start)| {
            (&typed[..above.len() + 1], start)
        });
    let entries = std::fs::read_dir(dir.join(above)).into_iter().flatten();
    let mut paths: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_hidden = name.starts_with('.') && !start.starts_with('.');
            if !name.starts_with(start) || is_hidden || name == ".git" {
                return None;
            }
            let slash = if entry.path().is_dir() { "/" } else { "" };
            Some(format!("{above}{name}{slash}"))
        })
        .take(MAX_NAMES)
        .collect();
    paths.sort();
    if paths.is_empty() && !typed.is_empty() && dir == project.repository.workdir() {
        paths = committed_files(project, typed).unwrap_or_default();
    }

    paths
}

/// Returns files of the newest commit whose path contains a text.
fn committed_files(project: &Project, part: &str) -> Option<Vec<String>> {
    let tree = refs::head_tree(&project.repository).ok()?;
    let leaves = project.repository.leaves(tree).ok()?;
    let paths = leaves.iter().map(|leaf| lossy(&leaf.path));
    Some(
        paths
            .filter(|path| path.contains(part))
            .take(MAX_NAMES)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let described = match PromptLine::read(text) {
            PromptLine::Message(text) => format!("message {text}"),
            PromptLine::Command(command, arguments) => format!("{} [{arguments}]", command.name),
            PromptLine::Shell(command) => format!("shell {command}"),
            PromptLine::Unknown(word, near) => format!("unknown {word}, {}", near.unwrap_or("-")),
        };
        assert_eq!(described, expected);
    }

    #[test]
    fn a_word_behind_a_slash_is_a_command_and_nothing_else_is() {
        check("/undo", "undo []");
        check("/undo 2 ", "undo [2]");
        check("/add src/a.rs b.rs", "add [src/a.rs b.rs]");
        check("/exit", "quit []");
        check("exit", "quit []");
        check("exit early", "message exit early");
        check("/undp", "unknown undp, undo");
        check("/xyzzy now", "unknown xyzzy, -");
        check("/", "unknown , -");
        check("/etc/hosts is wrong", "message /etc/hosts is wrong");
        check(" /undo", "message  /undo");
        check("undo it", "message undo it");
        check("!make test", "shell make test");
        check("!", "shell ");
    }

    #[test]
    fn names_are_ours_alone() {
        let mut names: Vec<&str> = command_names()
            .chain(ALIASES.iter().map(|(alias, _)| *alias))
            .collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn files_are_mentioned_with_an_at_sign() {
        let mentioned = |text: &str| mentions(text).collect::<Vec<_>>().join(" ");
        assert_eq!(
            mentioned("see @src/a.rs, and @b.rs. me@x.org @"),
            "src/a.rs b.rs"
        );
        assert_eq!(mentioned("nothing"), "");
    }
}

#[cfg(test)]
mod names_tests {
    use super::*;

    #[test]
    fn what_is_completed_depends_on_what_stands_before() {
        let check = |before: &str, expected: CompletionKind<'_>| {
            assert_eq!(completion_kind(before), expected)
        };
        check("/un", CompletionKind::Commands("/un"));
        check("/add src/", CompletionKind::Files("", "src/"));
        check("/drop a b", CompletionKind::Files("", "b"));
        check("/rm a b", CompletionKind::Files("", "b"));
        check("/model so", CompletionKind::Models("so"));
        check("/agent ", CompletionKind::Agents(""));
        check("/undo ", CompletionKind::Nothing);
        check("see @sr", CompletionKind::Files("@", "sr"));
        check("/plan see @sr", CompletionKind::Files("@", "sr"));
        check("see sr", CompletionKind::Nothing);
    }
}
