//! Which commit each line of a file comes from, as `git blame` tells.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context as _;

use super::repository::Repository;
use crate::git::object::CommitId;

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Where it comes from; nothing for one that no commit has.
    pub commit: Option<CommitId>,
    /// Its number, from 1.
    pub number: usize,
    /// Its text, without the line end.
    pub text: String,
}

/// What is told of a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Who wrote it.
    pub author: String,
    /// When, seconds since 1970.
    pub seconds: i64,
    /// The first line of its message.
    pub summary: String,
    /// The name of the file there.
    pub path: String,
}

/// A file, line by line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blame {
    /// The lines that were asked for.
    pub lines: Vec<Line>,
    /// Their commits.
    pub commits: HashMap<CommitId, Origin>,
}

/// git does not tell: the range is not in the file, say.
#[derive(Debug, thiserror::Error)]
#[error("git blame: {0}")]
pub struct Refused(pub String);

/// Asks about the lines of a file as they are in the worktree, or some of them; the history is that
/// of a commit, which has the file.
///
/// # Errors
/// [`Refused`], or git cannot be run.
pub fn blame(
    repository: &Repository,
    (commit, path): (CommitId, &str),
    contents: &Path,
    range: Option<&str>,
) -> anyhow::Result<Blame> {
    let mut git = repository.git()?;
    git.args(["blame", "--porcelain", "--no-textconv"]);
    if let Some(range) = range {
        git.arg(format!("-L{range}"));
    }
    git.arg("--contents").arg(contents);
    git.arg(commit.to_string()).arg("--").arg(path);
    let output = git.output().context("starting git blame")?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let words = words.trim();
        return Err(Refused(words.strip_prefix("fatal: ").unwrap_or(words).to_owned()).into());
    }
    parse(&String::from_utf8_lossy(&output.stdout)).context("git blame told something unknown")
}

/// Reads what git told.
fn parse(text: &str) -> Option<Blame> {
    let mut blame = Blame::default();
    let mut lines = text.split('\n').peekable();
    while let Some(head) = lines.next().filter(|head| !head.is_empty()) {
        let mut words = head.split(' ');
        let id = words.next()?;
        let number = words.nth(1)?.parse().ok()?;
        // All zeros: what no commit has.
        let commit = match id.bytes().all(|byte| byte == b'0') {
            true => None,
            false => Some(id.parse::<CommitId>().ok()?),
        };
        let mut origin = Origin::default();
        let text = loop {
            let line = lines.next()?;
            if let Some(text) = line.strip_prefix('\t') {
                break text;
            }
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            match key {
                "author" => value.clone_into(&mut origin.author),
                "author-time" => origin.seconds = value.parse().ok()?,
                "summary" => value.clone_into(&mut origin.summary),
                "filename" => value.clone_into(&mut origin.path),
                _ => {}
            }
        };
        if let Some(commit) = commit {
            blame.commits.entry(commit).or_insert(origin);
        }
        blame.lines.push(Line {
            commit,
            number,
            text: text.strip_suffix('\r').unwrap_or(text).to_owned(),
        });
    }
    Some(blame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_tells_is_read() {
        let id = "381f12f4dc1ecdd0296fde7936e27a2f785cb694";
        let none = "0".repeat(40);
        let text = format!(
            "{id} 1 1 2\nauthor Ada\nauthor-time 12\nsummary Begin\nboundary\nfilename a b\n\t# A\r\n\
             {id} 2 2\n\t\n{none} 3 3 1\nauthor Not Committed Yet\nauthor-time 13\nfilename a b\n\tx\ty\n"
        );
        let blame = parse(&text).unwrap();
        let told: Vec<_> = blame
            .lines
            .iter()
            .map(|line| (line.commit.is_some(), line.number, line.text.as_str()))
            .collect();
        assert_eq!(told, [(true, 1, "# A"), (true, 2, ""), (false, 3, "x\ty")]);
        let origin = Origin {
            author: "Ada".to_owned(),
            seconds: 12,
            summary: "Begin".to_owned(),
            path: "a b".to_owned(),
        };
        assert_eq!(blame.commits[&id.parse().unwrap()], origin);
        assert_eq!(parse("what\n"), None);
        assert_eq!(parse(""), Some(Blame::default()));
    }
}
