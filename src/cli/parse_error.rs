//! Handles command lines that run no command: invalid ones, `--help`, `--version`.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::mistyped::{Mistyped, unknown_command};
use super::{COMMANDS, app, exit, failure, version};
use crate::host::output;

const CLAP_HINT: &str = "For more information, try '--help'.";

/// Returns whether an unparsable command line asks for JSON.
pub(super) fn asks_for_json(arguments: &[OsString]) -> bool {
    let options = arguments.iter().take_while(|argument| *argument != "--");
    options.skip(1).any(|argument| argument == "--json")
}

/// Reports what is wrong with the command line, or prints the requested help.
pub(super) fn explain(mut error: clap::Error, line: &[OsString], is_json: bool) -> ExitCode {
    let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
    let mistyped = unknown_command(&error, line, &names);
    // Clap suggests passing an unknown short option as a value, which is rarely meant.
    if matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if is_short(word))
    {
        error.remove(ContextKind::Suggested);
    }

    if !error.use_stderr() {
        return printed(error.print());
    }

    // If stderr is closed, there is no way to report this.
    let _ = match &mistyped {
        Some(Mistyped { message, hint }) => {
            writeln!(std::io::stderr(), "error: {message}\nhint: {hint}")
        }
        None => write!(std::io::stderr(), "{}", with_hint(&error, line)),
    };

    if is_json {
        let (message, diagnosis) = match mistyped {
            Some(Mistyped { message, hint }) => (message, failure::Diagnosis::usage(Some(hint))),
            None => failure::misread(&error, &help_hint(line)),
        };
        let value = diagnosis.to_json(&message, serde_json::Value::Null);
        let _ = app::json_text(&value).map(output::write_stdout);
    }

    exit::USAGE.into()
}

/// Says which command to type, as our own errors do.
fn with_hint(error: &clap::Error, line: &[OsString]) -> String {
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return text;
    }
    let hint = format!("hint: {}\n", help_hint(line));
    match text.split_once(CLAP_HINT) {
        Some((before, _)) => format!("{before}{hint}"),
        None => format!("{}\n{hint}", text.trim_end()),
    }
}

fn help_hint(line: &[OsString]) -> String {
    let mut words = line.iter().skip(1).filter_map(|word| word.to_str());
    let command = words.find(|word| COMMANDS.iter().any(|command| command.name == *word));
    match command {
        Some(command) => format!("`teddy {command} --help` shows its arguments, with examples"),
        None => "`teddy help --all` lists the commands".to_owned(),
    }
}

fn is_short(word: &str) -> bool {
    let name = word.strip_prefix('-').unwrap_or_default();
    name.chars().count() == 1 || name.parse::<u64>().is_ok()
}

pub(super) fn print_version(error: &clap::Error, is_json: bool, is_verbose: bool) -> ExitCode {
    printed(if is_json {
        app::json_text(&version::to_json())
            .map_err(std::io::Error::other)
            .and_then(output::write_stdout)
    } else if is_verbose {
        output::write_stdout(version::details())
    } else {
        error.print()
    })
}

/// Returns the exit code after printing to stdout. A closed pipe is not an error.
pub(super) fn printed(result: std::io::Result<()>) -> ExitCode {
    let flushed = result.and_then(|()| std::io::stdout().flush());
    match output::ignore_closed_pipe(flushed) {
        Ok(()) => exit::SUCCESS.into(),
        Err(error) => {
            let _ = writeln!(
                std::io::stderr(),
                "error: writing to standard output: {error}"
            );
            exit::FAILED.into()
        }
    }
}
