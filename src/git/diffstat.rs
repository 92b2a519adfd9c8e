//! How much two trees differ, as git shows it.

use super::repository::Repository;
use crate::git::object::TreeId;

/// Returns what `git diff --stat` says of two trees.
///
/// # Errors
/// If git cannot be run, or a tree is missing.
pub fn diffstat(repository: &Repository, old: TreeId, new: TreeId) -> anyhow::Result<String> {
    let mut git = repository.git()?;
    git.args(["diff", "--stat=80", "--no-ext-diff", "--no-textconv"])
        .args(["--no-color", "--no-renames", "--end-of-options"])
        .args([old.to_string(), new.to_string()]);
    let output = git.output()?;
    anyhow::ensure!(
        output.status.success(),
        "git cannot compare the trees: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );

    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
