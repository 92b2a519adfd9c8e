//! A folder of a walk: what is asked about it, and what came out.

use gix::ObjectId;

use super::cache::{CachedName, Times};
use super::limits::LeftOut;

/// A folder to look at.
#[derive(Debug, Clone, Default)]
pub(super) struct FolderTask {
    /// Its path; empty for the top.
    pub(super) path: Vec<u8>,
    /// Its number in the cache, where that is known already.
    pub(super) known: Option<usize>,
    /// Ignore rules above it changed: what is in it must be judged anew.
    pub(super) relist: bool,
    /// Attributes above it changed: ids in the cache prove nothing.
    pub(super) distrust: bool,
    /// It is not on disk; what the index holds still is taken from there.
    pub(super) absent: bool,
    /// It cannot be read: everything tracked in it is taken from the index.
    pub(super) unreadable: bool,
}

/// What came out of a folder.
pub(super) struct Scanned {
    /// Its path.
    pub(super) path: Vec<u8>,
    /// Bits of [`mark`].
    pub(super) marks: u32,
    /// Its times.
    pub(super) times: Times,
    /// Its names.
    pub(super) listing: Listing,
    /// The commit, if it is a repository of its own.
    pub(super) link: Option<ObjectId>,
    /// What is not in the snapshot.
    pub(super) left: Vec<LeftOut>,
}

/// The names of a folder.
pub(super) enum Listing {
    /// All as the folder of this number in the cache.
    Kept(usize),
    /// These, in order; a file whose id is null must be read.
    Read(Vec<CachedName>),
}

/// Returns the path of a name in a folder.
pub(super) fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(folder.len() + 1 + name.len());
    if !folder.is_empty() {
        path.extend_from_slice(folder);
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}
