//! EXECUTE and RESEARCH: what runs outside of this program.

use std::io;
use std::path::Path;

use super::error::ActionError;
use super::{Ending, Executed, Outcome, Stage, Tools, found_line};
use crate::host::file::{Kind, Root, reason};
use crate::host::shell::{End, may_set};
use crate::plan::action::execute::Execute;
use crate::text::path::RepoPath;
use crate::text::visible::visible;

/// How a command or a search ended that the user stopped.
const INTERRUPTED: &str = "stopped by the user";

/// Runs a command and keeps what it said.
pub(super) fn execute(stage: &mut Stage<'_>, execute: &Execute) -> Result<Outcome, ActionError> {
    if let Some((name, _)) = execute.env.iter().find(|(name, _)| !may_set(name)) {
        return Err(format!("a plan may not set `{}`", visible(name)).into());
    }
    if let Some(cwd) = &execute.cwd {
        is_folder(stage.root, cwd)?;
    }
    // A command that fails or does not begin is no error: what cannot be had is what runs any.
    let executed = stage.tools.execute(execute).map_err(|error| {
        let why = format!("the command cannot be run: {}", reason(&error));
        ActionError::World(io::Error::new(error.kind(), why))
    })?;
    Ok(ended(&executed))
}

/// Makes sure that a command can run in a folder.
fn is_folder(root: &Root, cwd: &RepoPath) -> Result<(), ActionError> {
    let kind = root.kind(Path::new(cwd.as_str()));
    match kind.map_err(ActionError::reading)? {
        Some(Kind::Folder) => Ok(()),
        _ => Err(format!(
            "there is no directory `{}` to run in",
            visible(cwd.as_str())
        )
        .into()),
    }
}

/// Returns the outcome of a command.
fn ended(Executed { finished, hint }: &Executed) -> Outcome {
    let (ending, detail) = match &finished.end {
        End::Exited(0) => (Ending::Success, "the command succeeded".to_owned()),
        End::Exited(code) => (
            Ending::Failure,
            format!("the command failed with exit code {code}"),
        ),
        End::Signaled(signal) => (
            Ending::Failure,
            format!("the command was killed by signal {signal}"),
        ),
        End::TimedOut(limit) => (
            Ending::Failure,
            format!(
                "the command was stopped after its time limit of {} s",
                limit.as_secs_f64()
            ),
        ),
        End::Interrupted => (Ending::Failure, INTERRUPTED.to_owned()),
        End::NotStarted(why) => (
            Ending::Failure,
            format!("the command did not start: {}", visible(why)),
        ),
    };
    let detail = hint.map_or(detail.clone(), |hint| format!("{detail}; {hint}"));
    Outcome {
        exit_code: Some(finished.end.code()),
        output: finished.output.joined(),
        lost_output: finished.output.lost,
        ..Outcome::of(ending, detail)
    }
}

/// Runs every query; one that finds something is enough.
pub(super) fn research(tools: &mut dyn Tools, queries: &[String]) -> Outcome {
    let (mut output, mut failures) = (String::new(), Vec::new());
    for query in queries {
        if tools.interrupted() {
            return Outcome {
                output: output.into_bytes(),
                ..Outcome::failure(INTERRUPTED)
            };
        }
        match tools.search(query) {
            Ok(found) => output += &format!("{}\n\n{}\n\n", found_line(query), found.trim_end()),
            Err(why) => {
                failures.push(format!(
                    "no result for `{}`: {}",
                    visible(query.trim()),
                    visible(&why)
                ));
            }
        }
    }
    let found = queries.len() - failures.len();
    let ending = if found == 0 {
        Ending::Failure
    } else {
        Ending::Success
    };
    let share = match queries.len() {
        1 => (found == 1).then(|| "the query has results".to_owned()),
        number => Some(format!("{found} of {number} queries have results")),
    };
    let detail = share
        .into_iter()
        .chain(failures)
        .collect::<Vec<_>>()
        .join("; ");
    Outcome {
        output: output.into_bytes(),
        ..Outcome::of(ending, detail)
    }
}
