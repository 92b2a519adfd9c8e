//! How much two trees differ, as git shows it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use super::repository::Repository;
use crate::git::object::TreeId;

/// The bytes of paths that a command line is sure to hold.
const MAX_PATHS: usize = 1 << 20;

/// Returns what `git diff --stat` says of some paths of two trees, in a width.
///
/// # Errors
/// If git cannot be run, or a tree is missing.
pub fn diffstat(
    repository: &Repository,
    (old, new): (TreeId, TreeId),
    (width, paths): (usize, &[Vec<u8>]),
) -> anyhow::Result<String> {
    let mut git = repository.git()?;
    // Letters of every language are shown as they are; what can move a cursor is quoted.
    git.args(["-c", "core.quotePath=false"]);
    git.args(["--literal-pathspecs", "diff", &format!("--stat={width}")])
        .args(["--no-ext-diff", "--no-textconv"])
        .args(["--no-color", "--no-renames", "--end-of-options"])
        .args([old.to_string(), new.to_string()]);
    // More than a command line can hold are all of them, or nearly so.
    if paths.iter().map(Vec::len).sum::<usize>() <= MAX_PATHS {
        git.arg("--");
        git.args(paths.iter().map(|path| OsStr::from_bytes(path)));
    }

    let output = git.output()?;
    anyhow::ensure!(
        output.status.success(),
        "git cannot compare the trees: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );

    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
