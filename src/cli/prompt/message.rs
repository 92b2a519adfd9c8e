//! Rules of messages: what is sent, and the files that are shown with it.

use std::rc::Rc;

use super::line::{self, PromptAct, PromptLine, mentions};
use crate::cli::app::App;
use crate::cli::request::{add_files, is_file};
use crate::cli::{parser, source};
use crate::project::Project;
use crate::query::history;
use crate::session::input::ListScope;
use crate::text::sanitize::sanitize_line;
use crate::ui::ask;
use crate::ui::prompt::{PromptHelp, TextUse};
use crate::ui::style::Paint;

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

/// Shell commands that users type at this prompt by habit.
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
    let words: Vec<&str> = first.split_whitespace().collect();
    let (name, arguments) = words.split_first()?;
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
            line::candidates(&project, &dir, before)
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
}
