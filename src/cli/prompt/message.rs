//! Reads what is typed at a prompt: a message with the files that it mentions, a `/command`, or a
//! `!command` for the shell. Completes the names in it.

use std::path::Path;
use std::rc::Rc;

use crate::cli::app::App;
use crate::cli::request::{add_files, is_file};
use crate::cli::{parser, source};
use crate::git::refs;
use crate::project::Project;
use crate::query::history;
use crate::session::input::ListScope;
use crate::text::near::nearest;
use crate::text::path::lossy;
use crate::text::sanitize::sanitize_line;
use crate::ui::ask;
use crate::ui::prompt::{PromptHelp, TextUse};
use crate::ui::style::Paint;
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

fn command_names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|command| command.name)
}

/// Returns the `@` mentions of a message, without the `@`.
pub(super) fn mentions(message: &str) -> impl Iterator<Item = &str> {
    message.split_whitespace().filter_map(|word| {
        let name = word.strip_prefix('@')?;
        let name = name.trim_end_matches([',', ';', ':', '!', '?', ')', '.']);
        (!name.is_empty()).then_some(name)
    })
}

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

fn candidates(project: &Project, dir: &Path, before: &str) -> Vec<String> {
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

const MAX_HISTORY: usize = 100;

/// Adds the files that a message mentions to the context of the turn.
pub(in crate::cli) fn add_mentioned(
    app: &App,
    project: &Project,
    text: &str,
) -> anyhow::Result<()> {
    let (files, others): (Vec<String>, Vec<String>) = mentions(text)
        .map(str::to_owned)
        .partition(|name| is_file(app, project, name));
    for name in others {
        let near = near_mention(app, project, &name);
        let name = sanitize_line(&name);
        match near {
            Some(near) => app.warn(&format!(
                "there is no file `{name}`; did you mean `@{near}`?"
            )),
            // As in `@lru_cache(maxsize=9)`.
            None if name.contains(['(', '<', '"', '\'', '`', '=']) => {}
            None => app.note(&format!(
                "`@{name}` names no file of the project, so it is sent as text."
            )),
        }
    }
    match files.is_empty() {
        true => Ok(()),
        false => add_files(app, project, &files, ListScope::Turn),
    }
}

/// Like [`add_mentioned`], for a message that is recorded already.
pub(in crate::cli) fn add_or_warn(app: &App, project: &Project, text: &str) {
    if let Err(error) = add_mentioned(app, project, text) {
        app.warn(&format!("{error:#}"));
    }
}

/// As [`is_file`] reads the name.
fn near_mention(app: &App, project: &Project, name: &str) -> Option<String> {
    match name.strip_prefix('/') {
        Some(path) => {
            let near = source::near_in(project.repository.workdir(), path)?;
            Some(format!("/{near}"))
        }
        None => source::near(app, name),
    }
}

/// Returns what a text is at a prompt that takes no commands. Tells the user if it cannot be sent.
fn check(text: &str, paint: Paint) -> anyhow::Result<TextUse> {
    match PromptLine::read(text) {
        PromptLine::Command(command, _) if command.act == PromptAct::Quit => Ok(TextUse::Leaves),
        PromptLine::Message(_) => Ok(match is_meant_for_shell(text, false)? {
            true => TextUse::IsAskedAgain,
            false => TextUse::Sent,
        }),
        PromptLine::Command(..) | PromptLine::Shell(_) | PromptLine::Unknown(..) => {
            ask::show(&[ask::misplaced_command(false)], paint);
            Ok(TextUse::IsAskedAgain)
        }
    }
}

/// Returns whether a text is a shell command that the user does not want to send to the model.
/// `runs_commands`: this prompt runs it after a `!`.
pub(super) fn is_meant_for_shell(text: &str, runs_commands: bool) -> anyhow::Result<bool> {
    let Some(command) = shell_command(text) else {
        return Ok(false);
    };
    let command = sanitize_line(command);
    let how = match runs_commands {
        true => format!("; `!{command}` runs it"),
        false => String::new(),
    };
    let question = format!("`{command}` looks like a shell command{how}. Send it to the model?");
    Ok(!ask::yes(&question)?)
}

/// Typed at this prompt by habit.
const SHELL_COMMANDS: [&str; 18] = [
    "cat", "cd", "clear", "df", "fg", "grep", "history", "htop", "jobs", "ll", "ls", "ps", "pwd",
    "rm", "sudo", "top", "vi", "vim",
];

/// Those of them that mostly have one file as their argument.
const WITH_FILE: [&str; 7] = ["cat", "cd", "ll", "ls", "rm", "vi", "vim"];

/// Programs whose first argument is a word.
const WITH_SUBCOMMAND: [&str; 3] = ["cargo", "git", "npm"];

/// Returns a text that looks like a shell command: its name, with options or one file at most, a
/// name and its subcommand, or a command of ours. Only the first of several commands counts. A space
/// in front makes it a message.
fn shell_command(text: &str) -> Option<&str> {
    let first = text.split([';', '|', '&']).next()?;
    let parts: Vec<&str> = first.split_whitespace().collect();
    let (name, arguments) = parts.split_first()?;
    let is_command = match arguments {
        [_] | [] if WITH_SUBCOMMAND.contains(name) => true,
        [_] if WITH_FILE.contains(name) => true,
        [command, ..] if *name == "teddy" => parser().find_subcommand(command).is_some(),
        arguments => {
            SHELL_COMMANDS.contains(name) && arguments.iter().all(|word| word.starts_with('-'))
        }
    };
    (is_command && !text.starts_with(' ')).then(|| text.trim())
}

/// Returns the rules for writing messages.
pub(in crate::cli) fn rules(app: &App) -> PromptHelp {
    let paint = app.paint(true);
    PromptHelp {
        check: Rc::new(move |text| check(text, paint)),
        ..PromptHelp::default()
    }
}

/// Returns history, completion and rules for writing messages. The project is opened only when they
/// are used.
pub(in crate::cli) fn help(app: &App) -> PromptHelp {
    let [one, other] = [&app.global, &app.global].map(|global| App::new(global.clone()));
    PromptHelp {
        history: Rc::new(move || {
            let project = one.open().ok();
            project
                .and_then(|project| history::messages(&project, MAX_HISTORY).ok())
                .unwrap_or_default()
        }),
        candidates: Rc::new(move |before| {
            let (Ok(project), Ok(dir)) = (other.open(), other.dir()) else {
                return Vec::new();
            };
            candidates(&project, &dir, before)
        }),
        ..rules(app)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_alone_or_with_options_is_no_message() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(shell_command(text), expected, "{text}");
        };
        check("ls", Some("ls"));
        check("clear", Some("clear"));
        check("ls -la", Some("ls -la"));
        check("git status", Some("git status"));
        check("cd src", Some("cd src"));
        check("clear; ls", Some("clear; ls"));
        check("git status && make", Some("git status && make"));
        check("teddy undo", Some("teddy undo"));
        check("teddy diff 3 --stat", Some("teddy diff 3 --stat"));
        check("teddy should undo this", None);
        check("rm the duplicates", None);
        check("git should ignore target", None);
        check("clear the cache", None);
        check(" ls", None);
        check("yes", None);
        check("", None);
    }

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
