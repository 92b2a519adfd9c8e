//! The command line. One file per command: arguments, one call into `workflow`, output.
#![allow(
    clippy::missing_docs_in_private_items,
    reason = "clap shows the comment of a field as help, and a flattened one has none"
)]

mod acp;
mod app;
mod ask;
mod begin;
mod bisect;
mod blame;
mod branch;
mod browse;
mod change;
mod command_line;
mod compare;
mod complete;
mod completions;
mod context;
mod demo;
mod diff;
mod difference;
mod doctor;
mod execute;
mod exit;
mod export;
mod failure;
mod fetch;
mod find;
mod gc;
mod get_prompt;
mod hooks;
mod in_use;
mod init;
mod land;
mod log;
mod man;
mod new;
mod number;
mod overview;
mod pick;
mod plan;
mod preprocess;
mod prompt;
mod push;
mod race;
mod record;
mod redo;
mod request;
mod restore;
mod resume;
mod retry;
mod sessions;
mod setup;
mod show;
mod source;
mod start;
mod status;
mod switch;
mod trust;
mod undo;
mod verify;
mod version;
mod web;

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args as _, CommandFactory, FromArgMatches, Parser, Subcommand};

use app::{App, Global};
use command_line::{asked_help, asks_for_json, command_word, expand, explain, with_json_moved};
use exit::{ExitStatus, printed};
use hooks::hook;
use race::lane;

use crate::host::{overlay, supervisor};
use crate::project::Project;

/// Git-native sessions for AI-assisted coding
///
/// A session is a chain of turns, and each turn is a commit: the model's input and answer, the
/// plan, the report, and the code before and after. Plans run in an isolated worktree; your files
/// move from one recorded state to the next, or not at all.
#[derive(Parser)]
#[command(name = "teddy", version = version::line(), max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    global: Global,
}

/// Examples for beginners.
const EXAMPLES: &str = "\
Examples:
  teddy demo                                a complete session with recorded answers
  teddy setup                               find a model and try it
  teddy start 'add a login form' src/       plan it, review it, run it, record it
  teddy 'now validate the password'         go on
  teddy ask 'where are sessions stored?'    a question; nothing is changed
  teddy undo                                undo the last turn
  teddy land                                commit what the turns did to your branch";

/// A command in the list that `teddy help` prints.
struct ListedCommand {
    group: &'static str,
    place: HelpPlace,
    name: &'static str,
}

/// Where `teddy help` lists a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HelpPlace {
    /// On the first screen.
    First,
    /// Only with `--all`.
    More,
    Hidden,
}

/// Generates the enum of commands, with the match arms for each row, and the list of the groups.
macro_rules! commands {
    ($($group:literal {
        $($(#[$attribute:meta])* $place:ident $name:literal $variant:ident => $module:ident,)*
    })*) => {
        // Not a doc comment: clap would use it as the description of the program.
        #[derive(Subcommand)]
        enum Command {
            $($(
                #[command(name = $name, hide = matches!(HelpPlace::$place, HelpPlace::Hidden))]
                $(#[$attribute])*
                $variant($module::Args),
            )*)*
        }

        const COMMANDS: &[ListedCommand] = &[
            $($(ListedCommand { group: $group, place: HelpPlace::$place, name: $name },)*)*
        ];

        impl Command {
            /// Adds only this command to the program; `None` if there is no command with exactly
            /// this name.
            fn alone(program: clap::Command, name: &str) -> Option<clap::Command> {
                let command = match name {
                    $($($name => $module::Args::augment_args(clap::Command::new($name)),)*)*
                    _ => return None,
                };
                Some(program.subcommand(command))
            }

            fn run(self, app: &mut App) -> anyhow::Result<ExitStatus> {
                match self {
                    $($(Command::$variant(args) => Ok($module::run(args, app)?.into()),)*)*
                }
            }
        }
    };
}

commands! {
    "start" {
        First "setup" Setup => setup,
        First "start" Start => start,
        More "demo" Demo => demo,
        More "init" Init => init,
        More "new" New => new,
        More "trust" Trust => trust,
    }
    "work" {
        #[command(visible_alias = "continue")]
        First "resume" Resume => resume,
        First "ask" Ask => ask,
        First "plan" Plan => plan,
        First "execute" Execute => execute,
        First "context" Context => context,
        More "race" Race => race,
        More "retry" Retry => retry,
        More "change" Change => change,
        More "record" Record => record,
        More "hooks" Hooks => hooks,
        More "acp" Acp => acp,
    }
    "look" {
        First "status" Status => status,
        First "log" Log => log,
        First "diff" Diff => diff,
        More "show" Show => show,
        More "find" Find => find,
        More "browse" Browse => browse,
        More "web" Web => web,
        More "blame" Blame => blame,
        More "compare" Compare => compare,
        More "bisect" Bisect => bisect,
        More "sessions" Sessions => sessions,
        More "verify" Verify => verify,
    }
    "go back" {
        First "undo" Undo => undo,
        More "redo" Redo => redo,
        More "restore" Restore => restore,
        More "branch" Branch => branch,
        More "switch" Switch => switch,
    }
    "share" {
        First "land" Land => land,
        First "push" Push => push,
        More "pick" Pick => pick,
        #[command(alias = "import")]
        More "fetch" Fetch => fetch,
        More "export" Export => export,
    }
    "maintain" {
        First "doctor" Doctor => doctor,
        More "gc" Gc => gc,
        More "completions" Completions => completions,
        More "man" Man => man,
        More "preprocess" Preprocess => preprocess,
        More "get-prompt" GetPrompt => get_prompt,
    }
    "called by programs" {
        Hidden "hook" Hook => hook,
        Hidden "__lane" Lane => lane,
    }
}

/// Returns an error as [`main`] would report it on stderr: its message, the model's question and the
/// hint. The last line has the exit code.
pub fn error_report(error: &anyhow::Error) -> String {
    let diagnosis = failure::classify(error);
    let question = failure::question(error).map(|question| format!("{question}\n"));
    let hint = diagnosis.hint.map(|hint| format!("hint: {hint}\n"));
    format!(
        "error: {error:#}\n{}{}exit code {}\n",
        question.unwrap_or_default(),
        hint.unwrap_or_default(),
        diagnosis.kind.code().0
    )
}

/// Runs the program and returns its exit code.
pub fn main() -> ExitCode {
    crate::host::panic::install();
    let arguments = crate::host::env::args();
    let helper = supervisor::serve_if_asked(&arguments);
    if let Some(code) = helper.or_else(|| overlay::serve_if_asked(&arguments)) {
        return code;
    }

    complete::answer(project_of);
    answer_user().into()
}

/// Runs the command of the command line.
fn answer_user() -> ExitStatus {
    // Building the parser for all commands takes longer than printing the version.
    if version::is_all(&crate::host::env::args()) {
        let line = format!("teddy {}\n", version::line());
        return printed(crate::host::output::write_stdout(line));
    }

    if let Some(text) = asked_help(&crate::host::env::args()) {
        return printed(crate::host::output::write_stdout(text));
    }

    let arguments = expand(crate::host::env::args());
    let is_json = asks_for_json(&arguments);
    let is_verbose = version::asks_for_details(&arguments);
    let (global, command) = match parse(arguments.clone()) {
        Ok(parsed) => parsed,
        Err(error) if error.kind() == ErrorKind::DisplayVersion => {
            return version::print(&error, is_json, is_verbose);
        }
        Err(error) => return explain(error, &arguments, is_json),
    };

    // Without handlers, ctrl-c kills the process, and recovery handles the rest.
    let _ = crate::host::interrupt::install();
    // The output of a hook is read by a program, and `browse` owns the screen.
    if !global.quiet && !matches!(command, Some(Command::Hook(_) | Command::Browse(_))) {
        crate::host::lock::report_waits(|holder| {
            let _ = writeln!(std::io::stderr(), "Waiting for {holder}...");
        });
    }

    let mut app = App::new(global);
    let result = match command {
        Some(command) => command.run(&mut app),
        None => overview::run(&mut app).map(ExitStatus::from),
    };
    app.note_time();

    match result {
        // The command completed, but the exit code must reflect that the user wanted to stop.
        Ok(_) if crate::host::interrupt::requested() => exit::INTERRUPTED,
        Ok(code) => code,
        Err(error) => app.fail(error),
    }
}

/// Parses the command line. Clap detects conflicts of `--json` only if it follows the command.
fn parse(arguments: Vec<OsString>) -> Result<(Global, Option<Command>), clap::Error> {
    let reordered = with_json_moved(&arguments);
    let parsed = parse_as_typed(arguments)?;
    match reordered.map(parse_as_typed) {
        Some(Err(error)) if error.kind() == ErrorKind::ArgumentConflict => Err(error),
        _ => Ok(parsed),
    }
}

fn is_started_by_git(arguments: &[OsString]) -> bool {
    let program = arguments.first().map(Path::new);
    program.is_some_and(|program| program.file_name() == Some(OsStr::new("git-teddy")))
}

/// Parses the command line as typed. If started by git, usage and hints say `git teddy`. The
/// command is `None` if the line has none.
fn parse_as_typed(arguments: Vec<OsString>) -> Result<(Global, Option<Command>), clap::Error> {
    let mut parser = parser_of(&arguments);
    if is_started_by_git(&arguments) {
        parser = parser.bin_name("git teddy");
    }

    let matches = parser.try_get_matches_from_mut(arguments)?;
    let command = || match matches.subcommand_name() {
        Some(_) => Command::from_arg_matches(&matches).map(Some),
        None => Ok(None),
    };
    let parsed = Global::from_arg_matches(&matches).and_then(|global| Ok((global, command()?)));
    parsed.map_err(|error| error.format(&mut parser))
}

/// Runs a command that was typed while the program runs with other options.
fn run_nested(app: &App, args: Vec<String>) -> anyhow::Result<ExitStatus> {
    let line = ["teddy".to_owned()].into_iter().chain(args);
    match parse(line.map(OsString::from).collect()) {
        Ok((_, None)) => Ok(exit::SUCCESS),
        Ok((typed, Some(command))) => command.run(&mut App::new(app.global.merge(typed))),
        Err(error) => {
            command_line::explain_at_prompt(&error);
            Ok(exit::USAGE)
        }
    }
}

/// Opens the project of an incomplete command line.
fn project_of(line: Vec<OsString>) -> Option<Project> {
    let matches = parser_of(&line)
        .ignore_errors(true)
        .try_get_matches_from(line)
        .ok()?;
    App::new(Global::from_arg_matches(&matches).ok()?)
        .open()
        .ok()
}

/// Returns the parser with all commands, for completions and the manual.
fn parser() -> clap::Command {
    Command::augment_subcommands(Cli::command())
}

/// Returns the parser for a command line. If global options and a command are all that it begins
/// with, only that command is built: building all of them dominates the run time of a short call.
fn parser_of(line: &[OsString]) -> clap::Command {
    command_word(line)
        .and_then(|name| Command::alone(Cli::command(), name))
        .unwrap_or_else(parser)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the subcommands whose help has no example.
    fn without_example(command: &clap::Command, path: &str) -> Vec<String> {
        let own = |command: &clap::Command| format!("{path} {}", command.get_name());
        let shows = |command: &clap::Command| {
            let line = format!("  {}", own(command));
            command
                .get_after_help()
                .is_some_and(|help| help.to_string().contains(&line))
        };
        let subcommands = command
            .get_subcommands()
            .filter(|command| command.get_name() != "help" && !command.is_hide_set());
        subcommands
            .flat_map(|command| {
                let missing = (!shows(command)).then(|| own(command));
                missing
                    .into_iter()
                    .chain(without_example(command, &own(command)))
            })
            .collect()
    }

    #[test]
    fn the_help_of_every_command_has_an_example_of_it() {
        assert_eq!(without_example(&parser(), "teddy"), Vec::<String>::new());
    }

    #[test]
    fn usage_is_what_was_typed() {
        let check = |program: &str, expected: &str| {
            let error = parse([program, "restore"].map(OsString::from).to_vec())
                .err()
                .unwrap()
                .to_string();
            assert!(
                error.contains(&format!("Usage: {expected} restore")),
                "{error}"
            );
        };
        check("teddy", "teddy");
        check("/usr/lib/git-core/git-teddy", "git teddy");
    }

    #[test]
    fn the_parser_is_consistent() {
        parser().debug_assert();
    }

    fn error_text(parser: clap::Command, line: &[OsString]) -> String {
        let error = parser.try_get_matches_from(line).unwrap_err();
        error.render().to_string()
    }

    #[test]
    fn promise_d6_a_command_is_the_same_without_the_others() {
        let commands = parser();
        // Hidden commands, called only by programs, accept any word.
        let typed = commands
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        for command in typed {
            let name = command.get_name();
            let lines = [
                &["teddy", name, "--help"][..],
                &["teddy", name, "-h"],
                &["teddy", name, "--no-such"],
                &["teddy", name, "-s"],
                &[
                    "teddy",
                    "-q",
                    "-s",
                    "demo",
                    "--color",
                    "never",
                    name,
                    "--no-such",
                ],
            ];
            for line in lines {
                let line: Vec<OsString> = line.iter().map(OsString::from).collect();
                let alone = parser_of(&line);
                let names: Vec<&str> = alone
                    .get_subcommands()
                    .map(clap::Command::get_name)
                    .collect();
                assert_eq!(names, [name]);
                assert_eq!(
                    error_text(alone, &line),
                    error_text(parser(), &line),
                    "{line:?}"
                );
            }
        }
    }
}
