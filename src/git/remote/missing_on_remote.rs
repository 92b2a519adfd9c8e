//! Computes what a remote lacks, according to its remote-tracking refs.

use std::collections::{BTreeMap, BTreeSet};

use gix::objs::Kind;

use super::RemoteName;
use crate::git::During as _;
use crate::git::command::run_with_input;
use crate::git::object::absent;
use crate::git::object::{BlobId, CommitId, TreeId};
use crate::git::refs;
use crate::git::repository::Repository;

const MOST_BRANCHES: usize = 1000;

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

/// Returns the amount of data that `targets` reach and the remote lacks. The remote has the
/// `present` objects. Fetches nothing.
pub fn count_missing(
    repository: &Repository,
    remote: &RemoteName,
    targets: &[String],
    present: &[String],
) -> anyhow::Result<MissingOnRemote> {
    let input = input(repository, remote, targets, present)?;
    let list = ["rev-list", "--objects", "--no-object-names", "--stdin"];
    let listed = rev_list(repository, &list, &input)?;
    let size = ["rev-list", "--objects", "--disk-usage", "--stdin"];
    let bytes = rev_list(repository, &size, &input)?;

    Ok(MissingOnRemote {
        objects: listed.iter().filter(|byte| **byte == b'\n').count() as u64,
        bytes: String::from_utf8_lossy(&bytes).trim().parse().unwrap_or(0),
    })
}

/// Returns the file contents that some commits reach and the remote lacks, sorted by path.
pub fn list_missing_files(
    repository: &Repository,
    remote: &RemoteName,
    targets: &[String],
    present: &[String],
) -> anyhow::Result<Vec<MissingFile>> {
    if targets.is_empty() {
        return Ok(Vec::new());
    }

    let input = input(repository, remote, targets, present)?;
    let listed = rev_list(repository, &["rev-list", "--objects", "--stdin"], &input)?;
    let mut files = Vec::new();
    for line in listed.split(|byte| *byte == b'\n') {
        let mut parts = line.splitn(2, |byte| *byte == b' ');
        let (Some(id), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let Ok(id) = gix::ObjectId::from_hex(id) else {
            continue;
        };

        let header = absent::find(|| repository.gix.find_header(id));
        if header.during("listing files")?.kind() == Kind::Blob && !path.is_empty() {
            let (path, blob) = (path.to_vec(), BlobId(id));
            files.push(MissingFile { path, blob });
        }
    }

    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Returns the paths that no known branch of the remote contains.
pub fn paths_in_no_branch<'p>(
    repository: &Repository,
    remote: &RemoteName,
    paths: impl Iterator<Item = &'p [u8]>,
) -> anyhow::Result<Vec<&'p [u8]>> {
    let mut remaining: BTreeSet<&[u8]> = paths.collect();
    let mut visited = BTreeSet::new();
    for tip in branches(repository, remote)? {
        let Ok(commit) = repository.commit(tip) else {
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

fn branches(repository: &Repository, remote: &RemoteName) -> anyhow::Result<Vec<CommitId>> {
    let listed = refs::list(repository, &format!("refs/remotes/{remote}/"))?;
    let tips = listed.into_iter().map(|reference| reference.target);
    Ok(tips.take(MOST_BRANCHES).collect())
}

/// Returns the input for `git rev-list`: wanted objects, then exclusions.
fn input(
    repository: &Repository,
    remote: &RemoteName,
    targets: &[String],
    present: &[String],
) -> anyhow::Result<Vec<u8>> {
    let mut text = String::new();
    for id in targets {
        text.push_str(&format!("{id}\n"));
    }

    let branches = branches(repository, remote)?.into_iter();
    let branches = branches.filter(|id| repository.has(*id));
    for id in branches.map(|id| id.to_string()).chain(present.to_vec()) {
        text.push_str(&format!("^{id}\n"));
    }
    Ok(text.into_bytes())
}

fn rev_list(repository: &Repository, args: &[&str], input: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut command = repository.git()?;
    command.args(args);
    if repository.is_partial() {
        command.arg("--exclude-promisor-objects");
    }
    run_with_input(&mut command, input, "list what there is to send")
}
