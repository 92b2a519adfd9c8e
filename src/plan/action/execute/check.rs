//! Validates an EXECUTE: the directory exists, and no variable can run other code or appears twice.

use std::collections::BTreeSet;

use super::command::Execute;
use crate::host::shell::may_set_variable;
use crate::plan::action::Action;
use crate::plan::validate::simulated_files::Lookup;
use crate::plan::validate::{Mistake, Validator};
use crate::text::path::RepoPath;
use crate::text::sanitize::sanitize_line;

/// Validates an EXECUTE. Its effect on the files is unknown, and validation of later actions takes
/// that into account.
pub(super) fn check_execute(
    validator: &mut Validator<'_>,
    action: &Action,
    execute: &Execute,
) -> anyhow::Result<()> {
    if execute.command.trim().is_empty() {
        validator.refuse(
            action,
            action.line,
            Mistake::new("there is no command", "put the command into the code block"),
        );
    }

    if let Some(mistake) = execute
        .cwd
        .as_ref()
        .map(|cwd| missing_dir(validator, cwd))
        .transpose()?
        .flatten()
    {
        // Not `refuse`: an earlier command can create the directory.
        validator.refuse_unless_fixable(action, action.line, mistake);
    }

    let mut names = BTreeSet::new();
    for (name, _) in &execute.env {
        if let Some(mistake) =
            wrong_variable(name).or_else(|| (!names.insert(name)).then(|| duplicate_variable(name)))
        {
            validator.refuse(action, action.line, mistake);
        }
    }

    // The command can change any file.
    validator.files.unknown_after_command = true;
    Ok(())
}

fn missing_dir(validator: &Validator<'_>, cwd: &RepoPath) -> anyhow::Result<Option<Mistake>> {
    let rendered = sanitize_line(cwd.as_str());
    let entry = validator.files.look_up(cwd)?;
    Ok(match entry {
        Lookup::Dir => None,
        Lookup::Absent => Some(Mistake::new(
            format!("there is no directory `{rendered}` to run in"),
            "`cwd` is relative to the project's root",
        )),
        Lookup::File(_) => Some(Mistake::new(
            format!("`{rendered}` is a file, not a directory to run in"),
            "name its directory",
        )),
        other => Some(Mistake::new(
            format!(
                "`{rendered}` {}",
                validator.files.obstacle(cwd, &other)?.unwrap_or_default()
            ),
            "run in a directory of the project",
        )),
    })
}

fn wrong_variable(name: &str) -> Option<Mistake> {
    let rendered = sanitize_line(name);
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if name.is_empty() || !plain {
        return Some(Mistake::new(
            format!("`{rendered}` is not a valid variable name"),
            "use letters, digits and `_`",
        ));
    }

    (!may_set_variable(name)).then(|| {
        let hint =
            "it decides which programs and services a command reaches; leave it as the user has it";
        Mistake::new(format!("a plan may not set `{rendered}`"), hint)
    })
}

fn duplicate_variable(name: &str) -> Mistake {
    Mistake::new(
        format!("`{}` is set twice", sanitize_line(name)),
        "keep one value",
    )
}
