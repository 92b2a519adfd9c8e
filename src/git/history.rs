//! Histories as git draws them, and times as git reads them.

use anyhow::Context as _;

use super::repository::Repository;
use crate::git::object::CommitId;

/// A line of a drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawn {
    /// What git draws.
    pub drawing: String,
    /// The commit that stands behind it; a line that only connects has none.
    pub commit: Option<CommitId>,
}

/// Draws the first parents of commits, as `git log --graph` does.
///
/// # Errors
/// git cannot be run, or does not find a commit.
pub fn graph(
    repository: &Repository,
    tips: &[CommitId],
    most: Option<usize>,
) -> anyhow::Result<Vec<Drawn>> {
    let mut git = repository.git()?;
    git.args(["log", "--graph", "--first-parent", "--no-color"])
        .args(["--no-decorate", "--format=%x00%H"]);
    if let Some(most) = most {
        git.arg(format!("--max-count={most}"));
    }

    git.arg("--end-of-options");
    git.args(tips.iter().map(ToString::to_string)).arg("--");
    let output = git.output().context("starting git log")?;
    anyhow::ensure!(
        output.status.success(),
        "git cannot draw the sessions: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let drawn = |line: &str| match line.split_once('\0') {
        Some((drawing, id)) => Ok(Drawn {
            drawing: drawing.to_owned(),
            commit: Some(id.trim().parse()?),
        }),
        None => Ok(Drawn {
            drawing: line.to_owned(),
            commit: None,
        }),
    };

    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(drawn).collect()
}

/// Returns the moment that a text means for `git log --since`, seconds since 1970.
///
/// # Errors
/// git cannot be run.
pub fn since(repository: &Repository, text: &str) -> anyhow::Result<i64> {
    let mut git = repository.git()?;
    let output = git
        .args(["rev-parse", &format!("--since={text}")])
        .output()?;
    let told = String::from_utf8_lossy(&output.stdout);
    let seconds = told.trim().strip_prefix("--max-age=");

    seconds
        .and_then(|seconds| seconds.parse().ok())
        .with_context(|| format!("git does not know the time `{text}`"))
}
