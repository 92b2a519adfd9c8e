//! The command line around clap: expands shorthand forms before clap parses it, and handles lines
//! that run no command: invalid ones, `--help`, and `teddy help`, which lists the commands in
//! groups as git does.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::exit::{self, ExitStatus};
use super::failure::{self, InvalidArgument};
use super::{COMMANDS, HelpPlace, ListedCommand, app, is_started_by_git, parser};
use crate::host::output;
use crate::text::has_word;
use crate::text::near::nearest;
use crate::text::sanitize::sanitize_line;
use crate::text::shell_word::shell_word;
use crate::ui::style::{self, Paint, StyledLine, shortened};
use crate::ui::terminal::stdout_width;

/// Expands shorthands:
///
/// - `teddy "<message>"` to `teddy resume "<message>"`
/// - `teddy session <command>` to `teddy <command>`
/// - `teddy models` to the list of `setup`
/// - `teddy run -- PROGRAM` to `teddy record -- PROGRAM`
/// - `--session` after `context add`, `rm` and `edit` to the list of that name (`-s` still names a
///   session)
/// - `diff --session` without a name to `--whole`
/// - `log -5` to `log -n5`, as in git
pub(super) fn expand(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if let Some(at) = first_word(&arguments) {
        if arguments[at] == "session" && arguments.len() > at + 1 {
            arguments.remove(at);
        } else if arguments[at] == "models" {
            arguments.splice(at..=at, ["setup", "--list"].map(OsString::from));
        } else if arguments[at] == "run" && arguments.iter().any(|word| word == "--") {
            // Without a program it would record edits where someone means to run a plan.
            arguments[at] = OsString::from("record");
        } else if arguments[at] == "log" {
            number_to_option(&mut arguments[at + 1..]);
        }
    }

    if let Some(at) = whole_session(&arguments) {
        arguments[at] = OsString::from("--whole");
    }

    // No command contains whitespace, so this is a message for the model.
    let first = first_word(&arguments).map(|at| arguments[at].to_string_lossy());
    if first.is_some_and(|word| word.trim().contains(char::is_whitespace)) {
        arguments.insert(1, OsString::from("resume"));
    }

    let is_edit = |pair: &[OsString]| {
        pair[0] == "context" && ["add", "rm", "edit"].iter().any(|verb| pair[1] == *verb)
    };
    let Some(at) = arguments.windows(2).position(is_edit) else {
        return arguments;
    };
    for argument in arguments
        .iter_mut()
        .skip(at + 2)
        .take_while(|argument| *argument != "--")
    {
        if argument == "--session" {
            *argument = OsString::from("--session-list");
        }
    }

    arguments
}

fn number_to_option(words: &mut [OsString]) {
    for word in words.iter_mut().take_while(|word| *word != "--") {
        let number = word.to_str().and_then(|word| word.strip_prefix('-'));
        let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(number) = number.filter(|text| !text.is_empty()).filter(is_number) {
            *word = OsString::from(format!("-n{number}"));
        }
    }
}

fn whole_session(arguments: &[OsString]) -> Option<usize> {
    let diff = arguments.iter().position(|argument| *argument == "diff")?;
    let end = arguments.iter().position(|argument| *argument == "--");
    let is_name = |next: &OsString| !next.as_encoded_bytes().starts_with(b"-");
    (diff + 1..end.unwrap_or(arguments.len()))
        .find(|&at| arguments[at] == "--session" && !arguments.get(at + 1).is_some_and(is_name))
}

/// Global options that take a value.
const GLOBAL_VALUES: &str = "-C -s --session -c --color";

/// Options of `resume` that take a value.
const RESUME_VALUES: &str =
    "-m --message -f --file -a --agent --model --pipeline --max-turns --max-cost";

const GLOBAL_FLAGS: &str = "-q --quiet -v --verbose --json";

fn is_in(list: &str, word: &OsString) -> bool {
    word.to_str().is_some_and(|word| has_word(list, word))
}

fn takes_value(word: &OsString) -> bool {
    is_in(GLOBAL_VALUES, word) || is_in(RESUME_VALUES, word)
}

/// Returns the index of the first word that is neither an option nor the value of one. The program is
/// at 0.
fn first_word(arguments: &[OsString]) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = arguments.get(at) {
        if takes_value(word) {
            at += 1;
        } else if word == "--" {
            return (at + 1 < arguments.len()).then_some(at + 1);
        } else if !word.as_encoded_bytes().starts_with(b"-") {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Returns the name of the command, if only global options precede it.
pub(super) fn command_word(arguments: &[OsString]) -> Option<&str> {
    let at = first_word(arguments)?;
    let mut before = arguments[1..at].iter();
    while let Some(word) = before.next() {
        if !is_in(GLOBAL_FLAGS, word) && !is_in(GLOBAL_VALUES, word) {
            return None;
        }
        if takes_value(word) {
            before.next();
        }
    }
    arguments[at].to_str()
}

/// Moves `--json` behind the command, where clap checks its conflicts. `None` if it does not
/// precede the command.
pub(super) fn with_json_moved(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let first = first_word(arguments)?;
    let before = &arguments[..first];
    let at = (1..first).find(|&at| before[at] == "--json" && !takes_value(&before[at - 1]))?;
    let is_words = before.iter().any(|word| word == "--");

    let mut moved = arguments.to_vec();
    let json = moved.remove(at);
    moved.insert(first, json);
    (!is_words).then_some(moved)
}

const CLAP_HINT: &str = "For more information, try '--help'.";

/// Returns whether an unparsable command line asks for JSON.
pub(super) fn asks_for_json(arguments: &[OsString]) -> bool {
    let options = arguments.iter().take_while(|argument| *argument != "--");
    options.skip(1).any(|argument| argument == "--json")
}

/// Reports what is wrong with the command line, or prints the requested help.
pub(super) fn explain(mut error: clap::Error, line: &[OsString], is_json: bool) -> ExitStatus {
    let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
    let mistyped = unknown_command(&error, line, &names);
    // Clap suggests passing an unknown short option as a value, which is rarely meant.
    if matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if is_short(word))
    {
        error.remove(ContextKind::Suggested);
    }

    if !error.use_stderr() {
        return exit::printed(error.print());
    }

    match &mistyped {
        Some(InvalidArgument { message, hint }) => {
            let hint = hint.as_deref().unwrap_or_default();
            app::eprint(&format!("error: {message}\nhint: {hint}"));
        }
        None => app::eprint(with_hint(&error, line).trim_end_matches('\n')),
    }

    if is_json {
        let misread = || failure::misread(&error, &help_hint(&error, line));
        let InvalidArgument { message, hint } = mistyped.unwrap_or_else(misread);
        let value = failure::Diagnosis::usage(hint).to_json(&message, serde_json::Value::Null);
        let _ = app::json_text(&value).map(output::write_stdout);
    }

    exit::USAGE
}

/// Says which command to type, as our own errors do.
fn with_hint(error: &clap::Error, line: &[OsString]) -> String {
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return text;
    }
    let hint = format!("hint: {}\n", help_hint(error, line));
    match text.split_once(CLAP_HINT) {
        Some((before, _)) => format!("{before}{hint}"),
        None => format!("{}\n{hint}", text.trim_end()),
    }
}

fn help_hint(error: &clap::Error, line: &[OsString]) -> String {
    let excess = error.get(ContextKind::InvalidArg);
    let is_word = matches!(excess, Some(ContextValue::String(word)) if !word.starts_with('-'));
    match named_commands(line).as_slice() {
        // Other commands take files after their text.
        ["record"] if is_word => {
            "a text of several words needs quotes, and a program comes after `--`, as in `teddy record 'format' -- black .`".to_owned()
        }
        [] => "`teddy help --all` lists the commands".to_owned(),
        names => format!(
            "`teddy {} --help` shows its arguments, with examples",
            names.join(" ")
        ),
    }
}

/// Returns the command of a line, and its subcommand if there is one.
fn named_commands(line: &[OsString]) -> Vec<&str> {
    let (mut names, mut parser, mut rest) = (Vec::new(), parser(), line);
    while let Some(at) = first_word(rest)
        && let Some(name) = rest[at].to_str()
        && let Some(command) = parser.find_subcommand(name).cloned()
    {
        names.push(name);
        (parser, rest) = (command, &rest[at..]);
    }
    names
}

/// Reports what is wrong with a command at the prompt of a loop, or prints the requested help.
pub(super) fn explain_at_prompt(error: &clap::Error) {
    if !error.use_stderr() {
        exit::printed(error.print());
        return;
    }
    let text = error.render().to_string();
    let message = text.split_once(CLAP_HINT);
    let message = message.map_or(text.as_str(), |(before, _)| before);
    app::eprint(&format!(
        "{}\n\nhint: `/help` lists the commands with their arguments",
        message.trim_end()
    ));
}

fn is_short(word: &str) -> bool {
    let name = word.strip_prefix('-').unwrap_or_default();
    name.chars().count() == 1 || name.parse::<u64>().is_ok()
}

// Suggests a command for an unknown one, by meaning and not only by spelling.

/// Command names of other tools, and the equivalent here: a line for each.
const OTHER_TOOLS: &str = "\
delete remove del drop: `teddy gc <session>` deletes a session; `teddy undo` takes a turn back
rm: `teddy context rm <file>` takes a file out of the context; `teddy gc <session>` deletes a session
rename mv move: `teddy branch -m <new-name>` renames the session
commit ci: `teddy land` commits what the turns did to your branch; each turn is recorded by itself
merge: `teddy land` commits to your branch; `teddy pick <session>:<turn>` takes a turn of another session
cherry-pick: `teddy pick <session>:<turn>` takes a turn of another session
config configure settings: `teddy setup` chooses a model; `teddy -v status` says which files the settings are in
model providers login auth: `teddy setup` finds and chooses models; `teddy setup --list` lists them
agent agents prompt prompts: `teddy get-prompt` lists the agents; `-a <agent>` chooses one
add: `teddy context add <file>` shows the model a file
list ls: `teddy sessions` lists the sessions, `teddy log` the turns, `teddy context list` what the model sees
session: `teddy sessions` lists the sessions; `teddy new <name>` starts one
checkout co: `teddy switch <session>` changes the session; `teddy restore <turn>` restores files
reset revert rollback rewind: `teddy undo` undoes the last turn; `teddy restore <turn>` goes to any
history: `teddy log` lists the turns
apply accept approve: `teddy execute` reviews and runs the plan that waits
chat prompt-user code edit do: `teddy start '<message>'` starts a session; `teddy resume` continues one
next go goon: `teddy resume` continues the session
run: `teddy execute` runs the plan that waits; `teddy record -- <program>` records what a program changes
recover repair fix: `teddy doctor --fix` recovers and repairs
adopt: `teddy switch --adopt` accepts a session of someone else
replay rerun: `teddy verify --rerun <turn>` runs the plan of a turn again
sign: `teddy verify --sign` signs a session
create: `teddy new <name>` starts a session
question explain query: `teddy ask '<question>'` asks about the files
search grep: `teddy find <pattern>` searches all sessions
save snapshot stash checkpoint: every turn is recorded by itself; `teddy branch <name>` keeps a name for this point
cleanup clean prune: `teddy gc` frees disk space
du size usage: `teddy gc -n` shows the disk space used
version: `teddy --version` prints it
update upgrade: the program is updated as it was installed; see the README
pull share upload: `teddy push` sends sessions to a git remote, `teddy fetch` gets those of others
squash rebase: `teddy land` commits all turns as one; plain `git rebase` works on landed commits
";

fn other_tools() -> impl Iterator<Item = (&'static str, &'static str)> {
    OTHER_TOOLS.lines().filter_map(|line| line.split_once(": "))
}

/// Returns the error for a command line that names an unknown command; `None` if something else is
/// wrong.
fn unknown_command(
    error: &clap::Error,
    line: &[OsString],
    names: &[&'static str],
) -> Option<InvalidArgument> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };

    // Subcommands are few, and clap lists them itself.
    let mut before = line
        .iter()
        .skip(1)
        .take_while(|part| *part != word.as_str());
    let is_below = before.any(|part| names.iter().any(|name| part == name));
    if error.kind() != ErrorKind::InvalidSubcommand || is_below {
        return None;
    }

    let is_help = line.get(1).is_some_and(|first| first == "help");
    let suggestion = suggest_command(word, names.iter().copied());
    let hint = match unquoted_message(line, word).filter(|_| !is_help) {
        Some(message) => {
            let message = shell_word(message);
            let quotes =
                format!("a message of several words needs quotes, as in `teddy {message}`");
            match suggestion {
                near if near.starts_with("did you mean") => format!("{near} Otherwise, {quotes}"),
                usual if usual.contains("needs quotes") => quotes,
                elsewhere => format!("{quotes}; {elsewhere}"),
            }
        }
        // Text after `help` is never a message for the model.
        None if is_help && suggestion.contains("needs quotes") => {
            "`teddy --help` lists the commands".to_owned()
        }
        None => suggestion,
    };
    Some(InvalidArgument {
        message: format!("there is no command `{}`", sanitize_line(word)),
        hint: Some(hint),
    })
}

/// Joins the words from `word` on, if they can be a request: at least three, and no option.
fn unquoted_message(line: &[OsString], word: &str) -> Option<String> {
    let tail = line.iter().skip(1).skip_while(|part| *part != word);
    let parts: Vec<&str> = tail.map(|part| part.to_str()).collect::<Option<_>>()?;
    let is_message = parts.len() > 2 && parts.iter().all(|part| !part.starts_with('-'));
    is_message.then(|| parts.join(" "))
}

fn suggest_command<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    let lower = word.to_lowercase();
    let elsewhere = other_tools()
        .find(|(keywords, _)| keywords.split(' ').any(|keyword| keyword == lower))
        .map(|(_, hint)| hint.to_owned());
    let with_prefix = |names: &[&'n str]| {
        names
            .iter()
            .copied()
            .find(|name| lower.len() > 2 && name.starts_with(&lower))
    };
    let names: Vec<&'n str> = names.into_iter().collect();
    let near = || {
        with_prefix(&names)
            .or_else(|| nearest(word, names.iter().copied()))
            .map(|name| format!("did you mean `teddy {name}`?"))
    };
    let usual = || {
        "`teddy --help` lists the commands; a message of several words needs quotes, as in `teddy \"add a form\"`".to_owned()
    };
    elsewhere.or_else(near).unwrap_or_else(usual)
}

/// Returns the list of commands if the line asks for it: `teddy help`, `teddy help --all`. The help of
/// a command is clap's.
pub(super) fn asked_help(arguments: &[OsString]) -> Option<String> {
    let words: Vec<&str> = arguments
        .iter()
        .skip(1)
        .filter_map(|word| word.to_str())
        .collect();
    let program = match is_started_by_git(arguments) {
        true => "git teddy",
        false => "teddy",
    };
    match words.as_slice() {
        ["help" | "-h"] => Some(list(program, false, stdout_width())),
        ["help", "-a" | "--all"] | ["--help"] => Some(list(program, true, stdout_width())),
        _ => None,
    }
}

/// In a pipe, without a width, no line is cut.
fn list(program: &str, is_all: bool, width: Option<usize>) -> String {
    let parser = parser();
    let about = |name: &str| {
        let command = parser.find_subcommand(name)?;
        Some(command.get_about()?.to_string())
    };

    let mut text =
        format!("usage: {program} [options] <command> [arguments], or: {program} '<message>'\n\n");
    let is_shown = |command: &&ListedCommand| match command.place {
        HelpPlace::First => true,
        HelpPlace::More => is_all,
        HelpPlace::Hidden => false,
    };
    let shown: Vec<&ListedCommand> = COMMANDS.iter().filter(is_shown).collect();
    for group in shown.chunk_by(|a, b| a.group == b.group) {
        for (at, command) in group.iter().enumerate() {
            let heading = if at == 0 { command.group } else { "" };
            let about = about(command.name).unwrap_or_default();
            text.push_str(&line(heading, command.name, &about, width));
        }
    }
    text.push_str(&match is_all {
        false => format!(
            "\n`{program} help --all` lists all commands, `{program} <command> --help` explains one.\n"
        ),
        true => format!(
            "\n`{program} <command> --help` explains a command; `{program} resume --help` the options.\n"
        ),
    });
    if is_all {
        let mut parser = parser;
        text.push_str(&format!("\n{}", options(&mut parser)));
    }
    let Some(width) = width else { return text };
    let lines = text.lines().map(StyledLine::plain).collect();
    style::text(&style::wrap_all(lines, width), Paint::Bare)
}

fn line(heading: &str, name: &str, about: &str, width: Option<usize>) -> String {
    let start = format!("{heading:<9} {name:<11} ");
    match width {
        Some(width) => {
            let about = shortened(about, width.saturating_sub(start.len()));
            format!("{start}{about}\n")
        }
        None => format!("{start}{about}\n"),
    }
}

/// Returns the global options and the examples, as clap renders them.
fn options(parser: &mut clap::Command) -> String {
    let help = parser.render_help().to_string();
    let start = help.find("Options:").unwrap_or(help.len());
    help[start..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the hint for a word if these commands exist.
    fn check(word: &str, expected: &str) {
        let names = ["execute", "resume", "undo", "log", "land"];
        let hint = suggest_command(word, names);
        assert!(hint.contains(expected), "{word}: {hint}");
    }

    #[test]
    fn a_word_of_other_tools_leads_to_ours() {
        check("delete", "teddy gc <session>");
        check("rename", "teddy branch -m <new-name>");
        check("commit", "teddy land");
        check("config", "teddy setup");
        check("model", "teddy setup --list");
        check("DELETE", "teddy gc <session>");
    }

    #[test]
    fn a_slip_of_the_keys_leads_to_the_command() {
        check("exeucte", "did you mean `teddy execute`?");
        check("exec", "did you mean `teddy execute`?");
        check("udno", "did you mean `teddy undo`?");
        check("xyzzy", "`teddy --help`");
    }

    #[test]
    fn a_hint_names_the_command_of_the_line_and_no_word_like_it() {
        let check = |line: &str, expected: &str| {
            let line: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(named_commands(&line).join(" "), expected, "{line:?}");
        };
        check("teddy land --nope", "land");
        check("teddy -C show log --nope", "log");
        check("teddy -s land status --nope", "status");
        check("teddy --session=land status --nope", "status");
        check("teddy change plan", "change plan");
        check("teddy -q bisect run", "bisect run");
        check("teddy change nope plan", "change");
        check("teddy log plan --nope", "log");
        check("teddy -C", "");
        check("teddy --nope", "");
    }

    #[test]
    fn the_name_of_the_program_is_no_word_of_a_message() {
        let message = |line: &str| {
            let line: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            unquoted_message(&line, "teddy")
        };
        assert_eq!(message("teddy teddy log"), None);
        assert_eq!(
            message("teddy teddy is great").as_deref(),
            Some("teddy is great")
        );
    }

    #[test]
    fn the_table_has_each_word_once_and_no_command() {
        let commands = super::super::parser();
        assert_eq!(other_tools().count(), OTHER_TOOLS.lines().count());
        let mut keywords: Vec<&str> = other_tools()
            .flat_map(|(keywords, _)| keywords.split(' '))
            .collect();
        keywords.sort_unstable();
        let before = keywords.clone();
        keywords.dedup();
        assert_eq!(keywords, before);
        for name in commands
            .get_subcommands()
            .flat_map(|command| command.get_name_and_visible_aliases())
        {
            assert!(!keywords.contains(&name), "{name}");
        }
    }

    #[test]
    fn session_behind_a_change_of_the_context_is_a_list() {
        let check = |line: &str, expected: &str| {
            let expanded = expand(line.split(' ').map(OsString::from).collect());
            assert_eq!(
                expanded
                    .iter()
                    .map(|word| word.to_string_lossy())
                    .collect::<Vec<_>>()
                    .join(" "),
                expected
            );
        };
        check(
            "teddy context add a.rs --session",
            "teddy context add a.rs --session-list",
        );
        check(
            "teddy context add --session a.rs",
            "teddy context add --session-list a.rs",
        );
        check(
            "teddy --session x context rm a.rs",
            "teddy --session x context rm a.rs",
        );
        check("teddy session restore 1", "teddy restore 1");
        check("teddy models --json", "teddy setup --list --json");
        check("teddy -C x session log", "teddy -C x log");
        check("teddy --json models", "teddy --json setup --list");
        check("teddy show models", "teddy show models");
        check("teddy log --session x", "teddy log --session x");
        check("teddy log -5 x -- -3", "teddy log -n5 x -- -3");
        check("teddy log - --all -n 5", "teddy log - --all -n 5");
    }

    #[test]
    fn json_is_moved_behind_the_command_that_it_is_for() {
        let check = |line: &str, expected: Option<&str>| {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let expected = expected.map(|line| line.split(' ').map(OsString::from).collect());
            assert_eq!(with_json_moved(&args), expected, "{line}");
        };
        check(
            "teddy --json -s x log --graph",
            Some("teddy -s x log --json --graph"),
        );
        check("teddy log --json", None);
        check("teddy -s --json log", None);
        check("teddy --json -- log", None);
        check("teddy --json", None);
    }

    #[test]
    fn words_for_the_model_are_no_command() {
        let check = |line: &[&str], expected: &[&str]| {
            let args = line.iter().map(OsString::from).collect();
            assert_eq!(expand(args), expected);
        };
        check(
            &["teddy", "add a form", "a.rs"],
            &["teddy", "resume", "add a form", "a.rs"],
        );
        check(
            &["teddy", "-q", "-s", "a b", "add a form"],
            &["teddy", "resume", "-q", "-s", "a b", "add a form"],
        );
        check(
            &["teddy", "-y", "--", "add a form"],
            &["teddy", "resume", "-y", "--", "add a form"],
        );
        check(&["teddy", "log"], &["teddy", "log"]);
        check(
            &["teddy", "run", "--", "make"],
            &["teddy", "record", "--", "make"],
        );
        check(&["teddy", "run", "plan.md"], &["teddy", "run", "plan.md"]);
        check(&["teddy", "find", "a b"], &["teddy", "find", "a b"]);
        check(
            &["teddy", "-C", "a b", "log"],
            &["teddy", "-C", "a b", "log"],
        );
        check(&["teddy", "--color=a b"], &["teddy", "--color=a b"]);
    }

    #[test]
    fn the_first_screen_has_14_commands_and_fits_24_lines() {
        let first = COMMANDS.iter().filter(|one| one.place == HelpPlace::First);
        assert_eq!(first.count(), 14);
        for width in [60, 80, 200] {
            let text = list("teddy", false, Some(width));
            assert!(text.lines().count() < 24, "{text}");
            let mut commands = text.lines().skip(2).take(14);
            assert!(commands.all(|line| line.chars().count() <= width), "{text}");
        }
    }

    #[test]
    fn no_description_is_cut_at_80_columns() {
        let text = list("teddy", true, Some(80));
        assert!(!text.contains('…'), "{text}");
    }

    #[test]
    fn in_a_pipe_no_line_is_cut() {
        assert!(!list("teddy", true, None).contains('…'));
    }

    #[test]
    fn only_the_list_itself_is_answered() {
        let asks =
            |line: &str| asked_help(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(asks("teddy help").is_some() && asks("teddy -h").is_some());
        assert!(asks("teddy help --all").unwrap().contains("\nmaintain "));
        assert_eq!(asks("teddy help log"), None);
        assert_eq!(asks("teddy log --help"), None);
        assert_eq!(asks("teddy"), None);
    }
}
