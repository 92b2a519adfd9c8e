//! What is typed at the prompt of a loop: a message, a command of ours, or one for the shell.

use crate::text::near::nearest;

/// A command at the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PromptCommand {
    /// Its name, behind the `/`.
    pub name: &'static str,
    /// What may stand behind it.
    pub arguments: &'static str,
    /// What it does, for `/help`.
    pub about: &'static str,
    /// How it is done.
    pub act: PromptAct,
}

/// How a command is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptAct {
    /// As these words on the command line would.
    Run(&'static [&'static str]),
    /// The model is chosen.
    Model,
    /// The agent is chosen.
    Agent,
    /// The plan of the newest turn is shown, or a message is sent.
    Plan,
    /// The commands are listed.
    Help,
    /// The loop ends.
    Quit,
}

/// Makes the table of commands.
macro_rules! commands {
    ($(($name:literal, $arguments:literal, $about:literal, $act:expr),)*) => {
        &[$(PromptCommand { name: $name, arguments: $arguments, about: $about, act: $act },)*]
    };
}

/// Every command, in the order in which `/help` lists them.
pub(super) const COMMANDS: &[PromptCommand] = commands![
    (
        "undo",
        "[N]",
        "undo the last turn, or the last N",
        PromptAct::Run(&["undo"])
    ),
    (
        "redo",
        "[N]",
        "redo what was undone",
        PromptAct::Run(&["redo"])
    ),
    (
        "diff",
        "[TURN]",
        "show what the newest turn changed",
        PromptAct::Run(&["diff"])
    ),
    (
        "status",
        "",
        "show where things stand",
        PromptAct::Run(&["status"])
    ),
    ("log", "", "list the turns", PromptAct::Run(&["log"])),
    ("show", "[TURN]", "show a turn", PromptAct::Run(&["show"])),
    (
        "add",
        "FILE...",
        "show the model files",
        PromptAct::Run(&["context", "add"])
    ),
    (
        "drop",
        "FILE...",
        "remove files from the context",
        PromptAct::Run(&["context", "rm"])
    ),
    (
        "context",
        "",
        "list what the model sees",
        PromptAct::Run(&["context", "list"])
    ),
    (
        "model",
        "[MODEL]",
        "choose the model, or list those configured",
        PromptAct::Model
    ),
    (
        "agent",
        "[AGENT]",
        "choose the agent, or list them",
        PromptAct::Agent
    ),
    (
        "plan",
        "[TEXT]",
        "show the newest plan, or ask for one",
        PromptAct::Plan
    ),
    (
        "land",
        "[OPTION...]",
        "commit what the turns did to your branch",
        PromptAct::Run(&["land"])
    ),
    ("help", "", "list these commands", PromptAct::Help),
    ("quit", "", "leave", PromptAct::Quit),
];

/// Other names of commands.
const ALIASES: [(&str, &str); 4] = [
    ("exit", "quit"),
    ("q", "quit"),
    ("h", "help"),
    ("rm", "drop"),
];

/// What a text at the prompt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptLine<'a> {
    /// For the model.
    Message(&'a str),
    /// A command, and what stands behind it.
    Command(PromptCommand, &'a str),
    /// For the shell.
    Shell(&'a str),
    /// It looks like a command, and there is none of this name; what may have been meant.
    Unknown(&'a str, Option<&'static str>),
}

impl PromptLine<'_> {
    /// Reads what was typed. A `/` with a word behind it is a command, so that nothing which was
    /// meant for us is sent to a model; a path, or a text that begins with a blank, is a message.
    pub(super) fn read(text: &str) -> PromptLine<'_> {
        if let Some(command) = text.strip_prefix('!') {
            return PromptLine::Shell(command.trim());
        }

        // What ends every other prompt was not meant for a model.
        let line = match text.trim() {
            "exit" | "quit" => "quit",
            _ => match text.strip_prefix('/') {
                Some(line) => line,
                None => return PromptLine::Message(text),
            },
        };
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let is_word = word.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
        if !is_word {
            return PromptLine::Message(text);
        }

        match command(word) {
            Some(command) => PromptLine::Command(command, rest.trim()),
            None => PromptLine::Unknown(word, nearest(word, names())),
        }
    }
}

/// Returns the command of a name.
fn command(word: &str) -> Option<PromptCommand> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == word);
    let name = alias.map_or(word, |(_, name)| name);
    COMMANDS
        .iter()
        .find(|command| command.name == name)
        .copied()
}

/// Returns the names of all commands.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|command| command.name)
}

/// Returns the words of a message that begin with `@`, without it.
pub(super) fn mentions(message: &str) -> impl Iterator<Item = &str> {
    let named = |word: &'_ str| word.strip_prefix('@').map(str::len);
    message.split_whitespace().filter_map(move |word| {
        let length = named(word)?;
        let name = &word[word.len() - length..];
        let name = name.trim_end_matches([',', ';', ':', '!', '?', ')', '.']);
        (!name.is_empty()).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares what a text is.
    fn check(text: &str, expected: &str) {
        let found = match PromptLine::read(text) {
            PromptLine::Message(text) => format!("message {text}"),
            PromptLine::Command(command, rest) => format!("{} [{rest}]", command.name),
            PromptLine::Shell(command) => format!("shell {command}"),
            PromptLine::Unknown(word, near) => format!("unknown {word}, {}", near.unwrap_or("-")),
        };
        assert_eq!(found, expected);
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
        let mut names: Vec<&str> = names()
            .chain(ALIASES.iter().map(|(alias, _)| *alias))
            .collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn files_are_mentioned_with_an_at_sign() {
        let found = |text: &str| mentions(text).collect::<Vec<_>>().join(" ");
        assert_eq!(
            found("see @src/a.rs, and @b.rs. me@x.org @"),
            "src/a.rs b.rs"
        );
        assert_eq!(found("nothing"), "");
    }
}
