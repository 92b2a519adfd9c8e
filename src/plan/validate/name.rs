//! Names that no file has: what a person could misread must not be made, and is not looked for.

use super::simulated_files::Lookup;
use super::{Mistake, Validator};
use crate::plan::action::Action;
use crate::plan::diagnostic::quote;
use crate::text::path::RepoPath;

/// Validates the part of a path that does not exist yet. Returns
/// whether it can be judged further.
pub(super) fn check_name(validator: &mut Validator<'_>, action: &Action) -> anyhow::Result<bool> {
    let kind = &action.kind;
    let cwd = kind.command().and_then(|command| command.cwd.as_ref());
    let Some(path) = kind.worktree_path().or(cwd) else {
        return Ok(true);
    };
    let Err(error) = path.fit_for_new(existing_prefix(validator, path)?) else {
        return Ok(true);
    };

    // Only an existing file can have such a name.
    let message = format!("{error}: \"{}\"", quote(path.as_str()));
    let hint =
        "write `[path/from/root](/path/from/root)`, text and destination alike, inside the project";
    validator.refuse(action, action.line, Mistake::new(message, hint));
    Ok(false)
}

/// Returns the length of the existing prefix of a path.
fn existing_prefix(validator: &Validator<'_>, path: &RepoPath) -> anyhow::Result<usize> {
    let names = std::iter::once(path.as_str()).chain(path.ancestors());
    for name in names {
        let parsed = RepoPath::parse(name).expect("the directory above a checked path is one");
        if validator.files.look_up(&parsed)? != Lookup::Absent {
            return Ok(name.len());
        }
    }
    Ok(0)
}
