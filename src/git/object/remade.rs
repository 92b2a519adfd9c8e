//! Rewrites commits with another tree and other parents. Author, committer and dates stay.

use gix::objs::{Kind, WriteTo as _};

use super::batch::Batch;
use super::{BlobId, CommitId, TreeId};
use crate::git::During as _;
use crate::git::object::absent;
use crate::git::repository::Repository;

/// Replaced parts of a rewritten commit.
#[derive(Debug, Clone)]
pub struct Remake<'a> {
    /// New tree.
    pub tree: TreeId,
    /// New first parent; `None` for a root commit.
    pub parent: Option<CommitId>,
    /// Further parents.
    pub others: &'a [CommitId],
    /// New message; `None` to keep the old one.
    pub message: Option<&'a [u8]>,
}

/// A rewritten commit that is not written yet.
#[derive(Debug, Clone)]
pub struct Remade {
    /// Id of the new commit.
    pub id: CommitId,
    bytes: Vec<u8>,
}

impl Remade {
    /// Returns the uncompressed size of the commit object.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// Rewrites a commit in memory. Author, committer, dates and encoding stay. Other headers are
/// dropped, because a signature would be invalid.
pub fn remade(
    repository: &Repository,
    id: CommitId,
    wanted: &Remake<'_>,
) -> anyhow::Result<Remade> {
    let what = || format!("reading commit {id}");
    let read = absent::find(|| repository.gix.find_commit(id.0)).during(what())?;
    let old = read.decode().during(what())?;
    let message = wanted.message.unwrap_or(old.message);
    let new = gix::objs::Commit {
        tree: wanted.tree.0,
        parents: wanted
            .parent
            .iter()
            .chain(wanted.others)
            .map(|parent| parent.0)
            .collect(),
        author: old.author().during(what())?.to_owned().during(what())?,
        committer: old.committer().during(what())?.to_owned().during(what())?,
        encoding: old.encoding.map(ToOwned::to_owned),
        message: message.into(),
        extra_headers: Vec::new(),
    };

    let mut bytes = Vec::with_capacity(512);
    new.write_to(&mut bytes)?;
    let id = gix::objs::compute_hash(repository.gix.object_hash(), Kind::Commit, &bytes)
        .map_err(|e| anyhow::anyhow!("{e}").context("hashing"))?;
    Ok(Remade {
        id: CommitId(id),
        bytes,
    })
}

/// Returns the name of a commit's author.
pub fn author(repository: &Repository, id: CommitId) -> anyhow::Result<String> {
    let what = || format!("reading commit {id}");
    let read = absent::find(|| repository.gix.find_commit(id.0)).during(what())?;
    let author = read.author().during(what())?;
    Ok(author.name.to_string())
}

/// Returns a commit's message as bytes.
pub fn message(repository: &Repository, id: CommitId) -> anyhow::Result<Vec<u8>> {
    let what = || format!("reading commit {id}");
    let read = absent::find(|| repository.gix.find_commit(id.0)).during(what())?;
    Ok(read.message_raw().during(what())?.to_vec())
}

/// Reads a blob; `None` if it is larger than `most` bytes.
pub fn blob_within(
    repository: &Repository,
    id: BlobId,
    most: u64,
) -> anyhow::Result<Option<Vec<u8>>> {
    if repository.blob_size(id)? > most {
        return Ok(None);
    }
    repository.blob(id).map(Some)
}

impl Batch<'_> {
    /// Adds a rewritten commit.
    pub fn remade(&self, commit: Remade) -> anyhow::Result<()> {
        self.sink.add(Kind::Commit, commit.bytes).map(drop)
    }
}
