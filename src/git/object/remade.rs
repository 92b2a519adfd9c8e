//! Commits made anew: with another tree and other parents, by the same people at the same time.

use gix::objs::{Kind, WriteTo as _};

use super::batch::Batch;
use super::{BlobId, CommitId, TreeId};
use crate::git::During as _;
use crate::git::object::absent;
use crate::git::repository::Repository;

/// What is different in a commit that is made anew.
#[derive(Debug, Clone)]
pub struct Remake<'a> {
    /// Its tree.
    pub tree: TreeId,
    /// Its only parent; nothing for the first one.
    pub parent: Option<CommitId>,
    /// Its message; nothing if it stays.
    pub message: Option<&'a [u8]>,
}

/// A commit that was made anew and is written nowhere yet.
#[derive(Debug, Clone)]
pub struct Remade {
    /// Its id.
    pub id: CommitId,
    /// What git stores.
    bytes: Vec<u8>,
}

impl Remade {
    /// Returns how many bytes git stores, before they are compressed.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// Makes a commit anew in memory: author, committer, dates and the encoding stay; what else may be
/// in its head, such as a signature, goes.
///
/// # Errors
/// The commit cannot be read.
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
        parents: wanted.parent.iter().map(|parent| parent.0).collect(),
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

/// Returns the name of who wrote a commit.
///
/// # Errors
/// The commit cannot be read.
pub fn author(repository: &Repository, id: CommitId) -> anyhow::Result<String> {
    let what = || format!("reading commit {id}");
    let read = absent::find(|| repository.gix.find_commit(id.0)).during(what())?;
    let author = read.author().during(what())?;
    Ok(author.name.to_string())
}

/// Returns the bytes of a commit's message.
///
/// # Errors
/// The commit cannot be read.
pub fn message(repository: &Repository, id: CommitId) -> anyhow::Result<Vec<u8>> {
    let what = || format!("reading commit {id}");
    let read = absent::find(|| repository.gix.find_commit(id.0)).during(what())?;
    Ok(read.message_raw().during(what())?.to_vec())
}

/// Reads a blob unless it has more bytes than this.
///
/// # Errors
/// It is missing or damaged.
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
    /// Takes a commit that was made anew.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn remade(&self, commit: Remade) -> anyhow::Result<()> {
        self.sink.add(Kind::Commit, commit.bytes).map(drop)
    }
}
