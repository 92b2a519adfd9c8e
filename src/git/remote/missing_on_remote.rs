//! Computes what a remote lacks, according to its branches as they are known here.

use std::collections::{BTreeMap, BTreeSet};

use gix::objs::Kind;

use crate::git::During as _;
use crate::git::command::run_with_input;
use crate::git::object::absent;
use crate::git::object::{BlobId, CommitId, TreeId};
use crate::git::repository::Repository;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct MissingOnRemote {
    pub objects: u64,
    /// Their size in bytes, as stored locally.
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingFile {
    pub path: Vec<u8>,
    pub blob: BlobId,
}

/// What some commits reach and a remote lacks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MissingCode {
    pub commits: Vec<CommitId>,
    /// Sorted by path.
    pub files: Vec<MissingFile>,
}

/// Returns the amount of data that `targets` reach and the remote lacks. The remote has the
/// `present` objects, and the commits of `branches`. Fetches nothing.
pub fn count_missing(
    repository: &Repository,
    branches: &[CommitId],
    targets: &[String],
    present: &[String],
) -> anyhow::Result<MissingOnRemote> {
    let input = input(branches, targets, present);
    let list = ["rev-list", "--objects", "--no-object-names", "--stdin"];
    let listed = rev_list(repository, &list, &input)?;
    let size = ["rev-list", "--objects", "--disk-usage", "--stdin"];
    let bytes = rev_list(repository, &size, &input)?;

    Ok(MissingOnRemote {
        objects: listed.iter().filter(|byte| **byte == b'\n').count() as u64,
        bytes: String::from_utf8_lossy(&bytes).trim().parse().unwrap_or(0),
    })
}

/// Returns the commits and file contents that some commits reach and the remote lacks.
pub fn list_missing_code(
    repository: &Repository,
    branches: &[CommitId],
    targets: &[String],
    present: &[String],
) -> anyhow::Result<MissingCode> {
    let mut missing = MissingCode::default();
    if targets.is_empty() {
        return Ok(missing);
    }

    let input = input(branches, targets, present);
    let listed = rev_list(repository, &["rev-list", "--objects", "--stdin"], &input)?;
    for line in listed.split(|byte| *byte == b'\n') {
        let mut parts = line.splitn(2, |byte| *byte == b' ');
        let id = parts.next().map(gix::ObjectId::from_hex);
        let Some(Ok(id)) = id else {
            continue;
        };
        let Some(path) = parts.next() else {
            missing.commits.push(CommitId(id));
            continue;
        };

        let header = absent::find(|| repository.gix.find_header(id));
        if header.during("listing files")?.kind() == Kind::Blob && !path.is_empty() {
            let (path, blob) = (path.to_vec(), BlobId(id));
            missing.files.push(MissingFile { path, blob });
        }
    }

    missing.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(missing)
}

/// Returns the paths that none of the branches contains.
pub fn paths_in_no_branch<'p>(
    repository: &Repository,
    branches: &[CommitId],
    paths: impl Iterator<Item = &'p [u8]>,
) -> anyhow::Result<Vec<&'p [u8]>> {
    let mut remaining: BTreeSet<&[u8]> = paths.collect();
    let mut visited = BTreeSet::new();
    for tip in branches {
        let Ok(commit) = repository.commit(*tip) else {
            continue;
        };
        let TreeId(tree) = commit.tree;
        if remaining.is_empty() || !visited.insert(tree) {
            continue;
        }

        let existing: BTreeMap<&[u8], _> = repository.entries_at(commit.tree, &remaining)?;
        remaining.retain(|path| !existing.contains_key(path));
    }

    Ok(remaining.into_iter().collect())
}

/// Returns the input for `git rev-list`: wanted objects, then exclusions.
fn input(branches: &[CommitId], targets: &[String], present: &[String]) -> Vec<u8> {
    let mut text = String::new();
    for id in targets {
        text.push_str(&format!("{id}\n"));
    }
    for id in branches
        .iter()
        .map(CommitId::to_string)
        .chain(present.to_vec())
    {
        text.push_str(&format!("^{id}\n"));
    }
    text.into_bytes()
}

fn rev_list(repository: &Repository, args: &[&str], input: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut command = repository.git()?;
    command.args(args);
    if repository.is_partial() {
        command.arg("--exclude-promisor-objects");
    }
    run_with_input(&mut command, input, "list what there is to send")
}
