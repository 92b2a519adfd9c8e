//! Finds the commit of each line of a file, with `git blame`, including uncommitted lines.
//!
//! Limitation: for git before 2.41, it writes a commit with the current content. No ref reaches it.

use std::collections::HashMap;
use std::path::{Component, Path};

use anyhow::Context as _;

use super::repository::Repository;
use crate::git::command::run_checked;
use crate::git::diff;
use crate::git::object::{CommitId, EntryMode, TreeEntry};
use crate::host::file::read_regular;
use crate::text::hint::error_with_hint;
use crate::text::sanitize::sanitize_line;

/// Error of git before 2.41 for `--contents` with a commit.
const BEFORE_2_41: &str = "cannot use --contents with final commit object name";
/// Part of git's error if only the server of a partial clone has an object.
const NOT_FETCHED: &str = "from promisor remote";
const MAX_CONTENTS: u64 = 1 << 30;
const MAX_REVISIONS: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlamedLine {
    /// `None` if the line is not committed.
    pub commit: Option<CommitId>,
    /// Line number in that commit, from 1.
    pub origin: usize,
    /// Line number in the file, from 1.
    pub number: usize,
    /// Text without the line ending.
    pub text: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    pub author: String,
    /// Author time in seconds since 1970.
    pub seconds: i64,
    pub summary: String,
    /// Path of the file in that commit.
    pub path: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blame {
    pub lines: Vec<BlamedLine>,
    pub commits: HashMap<CommitId, Origin>,
}

/// git refused, for example because the range is outside of the file.
#[derive(Debug, thiserror::Error)]
#[error("git blame: {0}")]
pub struct BlameRefused(pub String);

#[derive(Debug, Clone, Copy)]
pub struct BlameRequest<'a> {
    /// Commit from which the history is searched; it contains the file.
    pub commit: CommitId,
    pub path: &'a str,
    pub contents: &'a Path,
    /// Range of lines in git's syntax.
    pub range: Option<&'a str>,
    /// Excludes the history that this commit reaches.
    pub since: Option<CommitId>,
}

/// Blames a file. Fails with [`BlameRefused`] if git refuses.
pub fn blame_file(repository: &Repository, request: &BlameRequest<'_>) -> anyhow::Result<Blame> {
    match ask(repository, request, None) {
        Err(error) if format!("{error}").contains(BEFORE_2_41) => {
            let contents_commit = commit_contents(repository, request)?;
            let mut blame = ask(repository, request, Some(contents_commit))?;
            // Lines of the temporary commit are not committed.
            blame.commits.remove(&contents_commit);
            for line in &mut blame.lines {
                line.commit = line.commit.filter(|commit| *commit != contents_commit);
            }
            Ok(blame)
        }
        answer => answer,
    }
}

/// Blames the content of `contents_commit` if it is set, otherwise that of the request's file.
fn ask(
    repository: &Repository,
    request: &BlameRequest<'_>,
    contents_commit: Option<CommitId>,
) -> anyhow::Result<Blame> {
    let mut git = repository.git()?;
    let ignored = ignored_revisions(repository)?;
    // git resolves these names from its directory. In the user's directory it would also read
    // attributes, and block on a pipe of that name.
    if let Some(dir) = &ignored {
        git.current_dir(dir.path());
    }
    // A text conversion runs a program that the configuration names.
    git.args(["blame", "--porcelain", "--no-textconv"]);
    if let Some(range) = request.range {
        git.arg(format!("-L{range}"));
    }

    match contents_commit {
        Some(contents_commit) => git.arg(contents_commit.to_string()),
        None => git
            .arg("--contents")
            .arg(request.contents)
            .arg(request.commit.to_string()),
    };
    git.args(request.since.map(|commit| format!("^{commit}")));
    git.arg("--").arg(request.path);
    let output = git.output().context("starting git blame")?;

    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let stderr = stderr.trim();
        if repository.is_partial() && stderr.contains(NOT_FETCHED) {
            let path = sanitize_line(request.path);
            return Err(error_with_hint(
                format!("this partial clone lacks earlier versions of `{path}`"),
                "`git blame` of the file fetches them, then it works",
            ));
        }
        return Err(
            BlameRefused(stderr.strip_prefix("fatal: ").unwrap_or(stderr).to_owned()).into(),
        );
    }

    parse(&String::from_utf8_lossy(&output.stdout)).context("git blame told something unknown")
}

/// Commits the current content, for a git that cannot combine `--contents` with a commit.
fn commit_contents(
    repository: &Repository,
    request: &BlameRequest<'_>,
) -> anyhow::Result<CommitId> {
    let bytes = read_regular(request.contents, MAX_CONTENTS)?;
    let entry = TreeEntry {
        mode: EntryMode::Blob,
        id: repository.write_blob(&bytes)?.0,
    };
    let edits = [(request.path.as_bytes().to_vec(), Some(entry))].into();
    let tree = diff::tree_with(repository, repository.commit(request.commit)?.tree, &edits)?;
    let mut git = repository.git()?;
    // The user might have no identity, and `commit-tree` fails without one.
    for (name, value) in [("NAME", "TeDDy"), ("EMAIL", "teddy@localhost")] {
        git.env(format!("GIT_AUTHOR_{name}"), value);
        git.env(format!("GIT_COMMITTER_{name}"), value);
    }
    git.args(["commit-tree", "-m", "contents", "-p"]);
    git.arg(request.commit.to_string()).arg(tree.to_string());
    let output = run_checked(&mut git, "commit the contents")?;
    String::from_utf8_lossy(&output).trim().parse()
}

/// Copies the files that `blame.ignoreRevsFile` names by a relative path to a directory. `None` if
/// there are none.
fn ignored_revisions(repository: &Repository) -> anyhow::Result<Option<tempfile::TempDir>> {
    let settings = repository.config_section("blame").into_iter();
    let mut dir = None;
    for (_, value) in settings.filter(|(key, _)| key.eq_ignore_ascii_case("ignoreRevsFile")) {
        // git's prefix of a path that can be missing.
        let value = value.trim_start_matches(":(optional)");
        let name = Path::new(value);
        let is_below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        // git resolves absolute and `~` paths itself.
        if value.is_empty() || value.starts_with('~') || !name.components().all(is_below) {
            continue;
        }
        if dir.is_none() {
            dir = Some(tempfile::tempdir()?);
        }
        if let (Some(dir), Ok(text)) = (
            &dir,
            read_regular(&repository.workdir().join(name), MAX_REVISIONS),
        ) {
            let copy = dir.path().join(name);
            std::fs::create_dir_all(copy.parent().unwrap_or(dir.path()))?;
            std::fs::write(copy, text)?;
        }
    }
    Ok(dir)
}

fn parse(text: &str) -> Option<Blame> {
    let mut blame = Blame::default();
    let mut lines = text.split('\n').peekable();
    while let Some(head) = lines.next().filter(|head| !head.is_empty()) {
        let mut fields = head.split(' ');
        let id = fields.next()?;
        let (first, number) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);

        // The null id means not committed.
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
                "filename" => origin.path = unquoted(value),
                _ => {}
            }
        };

        if let Some(commit) = commit {
            blame.commits.entry(commit).or_insert(origin);
        }

        blame.lines.push(BlamedLine {
            commit,
            origin: first,
            number,
            text: text.strip_suffix('\r').unwrap_or(text).to_owned(),
        });
    }

    Some(blame)
}

fn unquoted(path: &str) -> String {
    if !path.starts_with('"') {
        return path.to_owned();
    }
    let plain = gix::quote::ansi_c::undo(path.into());
    plain.map_or_else(|_| path.to_owned(), |(plain, _)| plain.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_quotes_is_read() {
        let check = |path: &str, expected: &str| assert_eq!(unquoted(path), expected);
        check("a b.rs", "a b.rs");
        check(r#""a\tb\"\303\274.rs""#, "a\tb\"\u{fc}.rs");
        check(r#""broken"#, r#""broken"#);
    }

    #[test]
    fn what_git_tells_is_read() {
        let id = "381f12f4dc1ecdd0296fde7936e27a2f785cb694";
        let none = "0".repeat(40);
        let text = format!(
            "{id} 1 1 2\nauthor Ada\nauthor-time 12\nsummary Begin\nboundary\nfilename a b\n\t# A\r\n\
             {id} 2 2\n\t\n{none} 3 3 1\nauthor Not Committed Yet\nauthor-time 13\nfilename a b\n\tx\ty\n"
        );
        let blame = parse(&text).unwrap();
        let lines: Vec<_> = blame
            .lines
            .iter()
            .map(|line| (line.commit.is_some(), line.number, line.text.as_str()))
            .collect();
        assert_eq!(lines, [(true, 1, "# A"), (true, 2, ""), (false, 3, "x\ty")]);
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
