//! Size of the difference between two trees, as displayed by git.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use super::repository::Repository;
use crate::git::object::TreeId;

/// Total length of paths that certainly fits into a command line.
const MAX_STAT_PATH_BYTES: usize = 1 << 20;

/// Returns the output of `git diff --stat` for some paths of two trees, at a given width.
pub fn render_diffstat(
    repository: &Repository,
    (old, new): (TreeId, TreeId),
    (width, paths): (usize, &[Vec<u8>]),
) -> anyhow::Result<String> {
    let mut git = repository.git()?;
    // Show letters of all languages as they are. Control characters are still quoted.
    git.args(["-c", "core.quotePath=false"]);
    git.args(["--literal-pathspecs", "diff", &format!("--stat={width}")])
        .args(["--no-ext-diff", "--no-textconv"])
        .args(["--no-color", "--no-renames", "--end-of-options"])
        .args([old.to_string(), new.to_string()]);
    // Paths that don't fit into a command line are nearly all paths, so compare all.
    if paths.iter().map(Vec::len).sum::<usize>() <= MAX_STAT_PATH_BYTES {
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
