//! Commit graphs and dates, as git displays and parses them.

use std::collections::{BTreeSet, BinaryHeap, HashSet};

use anyhow::Context as _;

use super::repository::Repository;
use super::{During, refs};
use crate::git::command::run_checked;
use crate::git::object::CommitId;

/// Commits that are named in one call of git: arguments are limited in size.
const MAX_COMMITS_PER_CALL: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphLine {
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
    let output = run_checked(&mut git, "draw the sessions")?;
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

    let text = String::from_utf8_lossy(&output);
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
        let output = run_checked(&mut git, "tell which refs reach the session")?;
        let listed = String::from_utf8_lossy(&output);
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

pub fn first_parent(
    repository: &Repository,
    from: CommitId,
    back: u64,
) -> anyhow::Result<CommitId> {
    let mut id = from;
    for _ in 0..back {
        let parent = repository.find_commit(id)?.parent_ids().next();
        let parent = parent.map(|parent| CommitId(parent.detach()));
        id = parent.with_context(|| format!("commit {id} has no parent"))?;
    }

    Ok(id)
}

/// Returns the best common ancestor of two commits; `None` if there is none.
pub fn merge_base(
    repository: &Repository,
    one: CommitId,
    other: CommitId,
) -> anyhow::Result<Option<CommitId>> {
    let base = repository.gix.merge_base(one.0, other.0);
    Ok(base
        .during("comparing commits")?
        .map(|base| CommitId(base.detach())))
}

/// Returns whether a branch, given by its short name, contains a commit. `false` if either cannot
/// be read.
pub fn is_on_branch(repository: &Repository, commit: CommitId, branch: &str) -> bool {
    let tip = match branch {
        "HEAD" => refs::resolve(repository, "HEAD"),
        name => refs::resolve(repository, &format!("refs/heads/{name}")),
    };
    tip.is_ok_and(|tip| is_ancestor(repository, commit, tip).unwrap_or(false))
}

/// Returns the newest commit whose message matches, among the `limit` newest up to `tip`.
pub fn find_commit_by_message(
    repository: &Repository,
    tip: CommitId,
    limit: usize,
    is_it: &dyn Fn(&str) -> bool,
) -> anyhow::Result<Option<CommitId>> {
    let (mut waiting, mut visited) = (BinaryHeap::new(), HashSet::new());
    waiting.push((i64::MAX, tip.to_string(), tip));
    while let Some((.., id)) = waiting.pop() {
        if !visited.insert(id) || visited.len() > limit {
            continue;
        }
        // A shallow clone has commits without their parents.
        let Ok(commit) = repository.commit(id) else {
            continue;
        };
        if is_it(&commit.message) {
            return Ok(Some(id));
        }
        for parent in commit.parents {
            let seconds = repository
                .commit(parent)
                .map_or(i64::MIN, |commit| commit.seconds);
            waiting.push((seconds, parent.to_string(), parent));
        }
    }
    Ok(None)
}

/// Returns whether `ancestor` is `descendant` or reachable from it.
pub fn is_ancestor(
    repository: &Repository,
    ancestor: CommitId,
    descendant: CommitId,
) -> anyhow::Result<bool> {
    if ancestor == descendant {
        return Ok(true);
    }

    Ok(merge_base(repository, ancestor, descendant)? == Some(ancestor))
}
