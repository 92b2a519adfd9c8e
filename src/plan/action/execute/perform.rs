//! Runs a command and reports how it ended.

use std::io;
use std::path::Path;

use super::command::Execute;
use crate::host::file::{FileKind, Root, reason};
use crate::host::shell::{ScriptEnd, may_set_variable};
use crate::plan::run::error::ActionError;
use crate::plan::run::{Ending, Executed, Outcome, STOPPED, Stage};
use crate::text::path::RepoPath;
use crate::text::sanitize::sanitize_line;

pub(super) fn perform_execute(
    stage: &mut Stage<'_>,
    execute: &Execute,
) -> Result<Outcome, ActionError> {
    if let Some((name, _)) = execute.env.iter().find(|(name, _)| !may_set_variable(name)) {
        return Err(format!("a plan may not set `{}`", sanitize_line(name)).into());
    }

    // An earlier command can have removed the directory or replaced it by a link.
    if let Some(cwd) = &execute.cwd {
        require_dir(stage.root, cwd)?;
    }

    // A command that fails or cannot start is an outcome. Only a machine that can run nothing is an
    // error.
    let executed = stage.tools.execute(execute).map_err(|error| {
        let why = format!("the command cannot be run: {}", reason(&error));
        ActionError::World(io::Error::new(error.kind(), why))
    })?;
    Ok(command_outcome(&executed))
}

fn require_dir(root: &Root, cwd: &RepoPath) -> Result<(), ActionError> {
    let kind = root.kind(Path::new(cwd.as_str()));
    match kind.map_err(ActionError::reading)? {
        Some(FileKind::Dir) => Ok(()),
        _ => Err(format!(
            "there is no directory `{}` to run in",
            sanitize_line(cwd.as_str())
        )
        .into()),
    }
}

fn command_outcome(Executed { finished, hint }: &Executed) -> Outcome {
    let (ending, detail) = match &finished.end {
        ScriptEnd::Exited(0) => (Ending::Success, "the command succeeded".to_owned()),
        ScriptEnd::Exited(code) => (
            Ending::Failure,
            format!("the command failed with exit code {code}"),
        ),
        ScriptEnd::Signaled(signal) => (
            Ending::Failure,
            format!("the command was killed by signal {signal}"),
        ),
        ScriptEnd::TimedOut(limit) => (
            Ending::Failure,
            format!(
                "the command was stopped after its time limit of {} s",
                limit.as_secs_f64()
            ),
        ),
        ScriptEnd::Interrupted => (Ending::Failure, STOPPED.to_owned()),
        ScriptEnd::NotStarted(why) => (
            Ending::Failure,
            format!("the command did not start: {}", sanitize_line(why)),
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
