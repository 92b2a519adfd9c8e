//! Writes files of the worktree atomically.

use std::io;
use std::path::Path;

use super::error::{self, ActionError};
use crate::host::file::Root;
use crate::text::diff;
use crate::text::path::RepoPath;
use crate::text::sanitize::sanitize_line;

/// Largest texts for which a diff is kept, in bytes.
pub const MAX_COMPARED_TEXT: usize = 8 << 20;

/// Returns the unified diff of a new or changed file; empty if it is too large.
pub fn file_difference(path: &RepoPath, before: Option<&str>, after: &str) -> String {
    let old = before.unwrap_or_default();
    if old.len() + after.len() > MAX_COMPARED_TEXT {
        return String::new();
    }

    let name = match before {
        Some(_) => format!("a/{path}"),
        None => "/dev/null".to_owned(),
    };
    diff::unified(old, after, (&name, &format!("b/{path}")))
}

/// Returns the unified diff of a deleted file; empty if it is too large.
pub fn removal_difference(path: &RepoPath, before: &str) -> String {
    if before.len() > MAX_COMPARED_TEXT {
        return String::new();
    }
    diff::unified(before, "", (&format!("a/{path}"), "/dev/null"))
}

/// Runs a write between two fault points.
pub fn write_guarded(write: impl FnOnce() -> io::Result<()>) -> Result<(), ActionError> {
    error::pass_fault_point("before-write")?;
    write().map_err(ActionError::writing)?;
    error::pass_fault_point("after-write")
}

/// Rejects a path inside a nested repository, such as one that a command of the plan cloned.
pub fn no_repository_above(root: &Root, path: &RepoPath) -> Result<(), ActionError> {
    // Snapshots don't look into nested repositories, so a change there would be lost (T9).
    for dir in path.ancestors() {
        let git = root.kind(&Path::new(dir).join(".git"));
        if git.map_err(ActionError::reading)?.is_some() {
            return Err(format!(
                "`{}` is in `{}`, which is a repository of its own",
                sanitize_line(path.as_str()),
                sanitize_line(dir)
            )
            .into());
        }
    }

    Ok(())
}
