//! Validates an EXECUTE: the directory exists, and no variable can run other code or appears twice.

use std::collections::BTreeSet;

use super::command::Execute;
use crate::host::shell::may_set;
use crate::plan::action::Action;
use crate::plan::validate::world::Found;
use crate::plan::validate::{Judge, Mistake};
use crate::text::path::RepoPath;
use crate::text::visible::visible;

/// Validates an EXECUTE. Its effect on the files is unknown, and validation of later actions takes
/// that into account.
pub(super) fn check(
    judge: &mut Judge<'_>,
    action: &Action,
    execute: &Execute,
) -> anyhow::Result<()> {
    if execute.command.trim().is_empty() {
        judge.refuse(
            action,
            action.line,
            Mistake::new("there is no command", "put the command into the code block"),
        );
    }

    if let Some(mistake) = execute
        .cwd
        .as_ref()
        .map(|cwd| no_folder(judge, cwd))
        .transpose()?
        .flatten()
    {
        // Not `refuse`: an earlier command can create the directory.
        judge.miss(action, action.line, mistake);
    }

    let mut seen = BTreeSet::new();
    for (name, _) in &execute.env {
        if let Some(mistake) =
            wrong_variable(name).or_else(|| (!seen.insert(name)).then(|| twice(name)))
        {
            judge.refuse(action, action.line, mistake);
        }
    }

    // The command can change any file.
    judge.world.shaken = true;
    Ok(())
}

fn no_folder(judge: &Judge<'_>, cwd: &RepoPath) -> anyhow::Result<Option<Mistake>> {
    let shown = visible(cwd.as_str());
    let found = judge.world.look(cwd)?;
    Ok(match found {
        Found::Folder => None,
        Found::Absent => Some(Mistake::new(
            format!("there is no directory `{shown}` to run in"),
            "`cwd` is relative to the project's root",
        )),
        Found::File(_) => Some(Mistake::new(
            format!("`{shown}` is a file, not a directory to run in"),
            "name its directory",
        )),
        other => Some(Mistake::new(
            format!(
                "`{shown}` {}",
                judge.world.obstacle(cwd, &other)?.unwrap_or_default()
            ),
            "run in a directory of the project",
        )),
    })
}

fn wrong_variable(name: &str) -> Option<Mistake> {
    let shown = visible(name);
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if name.is_empty() || !plain {
        return Some(Mistake::new(
            format!("`{shown}` is not a valid variable name"),
            "use letters, digits and `_`",
        ));
    }

    (!may_set(name)).then(|| {
        let hint =
            "it decides which programs and services a command reaches; leave it as the user has it";
        Mistake::new(format!("a plan may not set `{shown}`"), hint)
    })
}

fn twice(name: &str) -> Mistake {
    Mistake::new(
        format!("`{}` is set twice", visible(name)),
        "keep one value",
    )
}
