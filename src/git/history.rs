//! Commit graphs and dates, as git displays and parses them.

use std::collections::BTreeSet;

use anyhow::Context as _;

use super::repository::Repository;
use crate::git::object::CommitId;

/// Commits that are named in one call of git: arguments are limited in size.
const MAX_COMMITS_PER_CALL: usize = 500;

/// A line of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphLine {
    /// git's drawing.
    pub drawing: String,
    /// Commit of the line; `None` for a connecting line.
    pub commit: Option<CommitId>,
}

/// Draws the first-parent history of commits like `git log --graph`.
pub fn draw_graph(
    repository: &Repository,
    tips: &[CommitId],
    most: Option<usize>,
) -> anyhow::Result<Vec<GraphLine>> {
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
        Some((drawing, id)) => Ok(GraphLine {
            drawing: drawing.to_owned(),
            commit: Some(id.trim().parse()?),
        }),
        None => Ok(GraphLine {
            drawing: line.to_owned(),
            commit: None,
        }),
    };

    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(drawn).collect()
}

/// Returns the names of all refs that reach one of these commits, sorted. Ignores commits that do not
/// exist.
pub fn refs_that_reach(
    repository: &Repository,
    commits: &[CommitId],
) -> anyhow::Result<BTreeSet<String>> {
    let commits: Vec<CommitId> = commits
        .iter()
        .copied()
        .filter(|id| repository.has(*id))
        .collect();
    let mut names = BTreeSet::new();
    for some in commits.chunks(MAX_COMMITS_PER_CALL) {
        let mut git = repository.git()?;
        git.args(["for-each-ref", "--format=%(refname)"]);
        git.args(some.iter().map(|id| format!("--contains={id}")));
        let output = git.output().context("starting git for-each-ref")?;
        anyhow::ensure!(
            output.status.success(),
            "git cannot tell which refs reach the session: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let listed = String::from_utf8_lossy(&output.stdout);
        names.extend(listed.lines().map(str::to_owned));
    }

    Ok(names)
}

/// Parses a date like `git log --since`; returns seconds since 1970.
pub fn parse_since(repository: &Repository, text: &str) -> anyhow::Result<i64> {
    let mut git = repository.git()?;
    let output = git
        .args(["rev-parse", &format!("--since={text}")])
        .output()?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let seconds = stdout.trim().strip_prefix("--max-age=");

    seconds
        .and_then(|seconds| seconds.parse().ok())
        .with_context(|| format!("git does not know the time `{text}`"))
}
