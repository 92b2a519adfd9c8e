//! Packs loose objects and small packs with `git repack`.

use anyhow::Context as _;

use crate::git::repository::Repository;

const BIG_FILE_THRESHOLD: &str = "core.bigFileThreshold=8m";
const WINDOW_MEMORY: &str = "pack.windowMemory=128m";

/// Packs loose objects and small packs. Unreachable objects are left to the user's own `git gc`.
pub(super) fn repack(repository: &Repository) -> anyhow::Result<()> {
    let mut command = repository.git()?;
    // git would spend minutes and gigabytes on deltas between large binaries.
    command.args([
        "-c",
        BIG_FILE_THRESHOLD,
        "-c",
        WINDOW_MEMORY,
        "repack",
        "-d",
        "-l",
        "-q",
    ]);

    // `--geometric` does not work in partial clones: git cannot leave out promised objects then.
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
