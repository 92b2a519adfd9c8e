//! Command lines that lead to no command: wrong ones, and those that ask for help or the version.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};

use super::mistyped::{Mistyped, mistyped};
use super::{Command, app, exit, failure, version};
use crate::host::stdout;

/// Tells whether a command line that cannot be read asks for JSON.
pub(super) fn asks_for_json(arguments: &[OsString]) -> bool {
    let options = arguments.iter().take_while(|argument| *argument != "--");
    options.skip(1).any(|argument| argument == "--json")
}

/// Says what is wrong with the command line, or prints the help that was asked for.
pub(super) fn explain(mut error: clap::Error, line: &[OsString], is_json: bool) -> ExitCode {
    let mistyped = mistyped(&error, line, Command::names());
    // A short option that a command does not have is hardly meant as a value.
    if matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if is_short(word))
    {
        error.remove(ContextKind::Suggested);
    }

    if !error.use_stderr() {
        return printed(error.print());
    }

    // Where even stderr is gone there is nobody to tell.
    let _ = match &mistyped {
        Some(Mistyped { message, hint }) => {
            writeln!(std::io::stderr(), "error: {message}\nhint: {hint}")
        }
        None => error.print(),
    };

    if is_json {
        let (message, judged) = match mistyped {
            Some(Mistyped { message, hint }) => (message, failure::Diagnosis::usage(Some(hint))),
            None => failure::misread(&error),
        };
        let value = judged.to_json(&message, serde_json::Value::Null);
        let _ = app::json_text(&value).map(stdout::write);
    }

    exit::USAGE.into()
}

/// Returns whether a word is a short option, or a number that looks like one.
fn is_short(word: &str) -> bool {
    let name = word.strip_prefix('-').unwrap_or_default();
    name.chars().count() == 1 || name.parse::<u64>().is_ok()
}

/// Prints which program this is.
pub(super) fn tell_version(error: &clap::Error, is_json: bool, is_verbose: bool) -> ExitCode {
    printed(if is_json {
        app::json_text(&version::to_json())
            .map_err(std::io::Error::other)
            .and_then(stdout::write)
    } else if is_verbose {
        stdout::write(version::details())
    } else {
        error.print()
    })
}

/// Returns the exit code of something that was printed to standard output. A reader that is gone
/// has seen enough.
pub(super) fn printed(result: std::io::Result<()>) -> ExitCode {
    let flushed = result.and_then(|()| std::io::stdout().flush());
    match stdout::quietly(flushed) {
        Ok(()) => exit::DONE.into(),
        Err(error) => {
            let _ = writeln!(
                std::io::stderr(),
                "error: writing to standard output: {error}"
            );
            exit::FAILED.into()
        }
    }
}
