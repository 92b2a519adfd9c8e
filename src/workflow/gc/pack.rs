//! Loose objects and small packs, put together by git.

use anyhow::Context as _;

use crate::git::repository::Repository;

/// From which size on git stores a file by itself when it packs.
const LARGE: &str = "core.bigFileThreshold=8m";
/// How much memory each of its threads takes for the files that it compares.
const WINDOW: &str = "pack.windowMemory=128m";

/// Puts loose objects and small packs together; what no ref reaches is left to the user's own `git
/// gc`.
pub(super) fn pack(repository: &Repository) -> anyhow::Result<()> {
    let mut command = repository.git()?;
    // Git would look for minutes, and in gigabytes of memory, for what two large binaries share.
    command.args(["-c", LARGE, "-c", WINDOW, "repack", "-d", "-l", "-q"]);

    // Git cannot do both: put packs together by size, and leave out what only the server has.
    if !repository.is_partial() {
        command.arg("--geometric=2");
    }

    let output = command.output().context("starting git repack")?;
    anyhow::ensure!(
        output.status.success(),
        "git repack failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}
