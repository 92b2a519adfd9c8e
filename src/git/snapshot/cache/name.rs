//! One name of a folder, as the private index keeps it.

use gix::ObjectId;
use gix::index::entry::Stat;
use gix::objs::tree::EntryKind;

/// How an entry came into the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git::snapshot) enum CacheOrigin {
    /// It is on disk, with this stat.
    Seen,
    /// The user's index says so; the disk is not asked.
    Inherited,
    /// It is not in the tree, but a change of it matters (an ignored `.gitignore`).
    Watched,
}

/// One name of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git::snapshot) struct CachedName<N = Vec<u8>> {
    /// The name.
    pub(in crate::git::snapshot) name: N,
    /// What it is in the tree.
    pub(in crate::git::snapshot) kind: EntryKind,
    /// The object; null where it is not made yet or not in the tree.
    pub(in crate::git::snapshot) id: ObjectId,
    /// The stat when it was read.
    pub(in crate::git::snapshot) stat: Stat,
    /// The start of the id that the user's index had for it: line-end rules depend on it.
    pub(in crate::git::snapshot) basis: u32,
    /// How it came here.
    pub(in crate::git::snapshot) standing: CacheOrigin,
}

/// A name that was looked at anew, with its place among all of its folder.
pub(in crate::git::snapshot) type FreshName = (usize, CachedName);

impl CachedName {
    /// Returns the entry with its name borrowed.
    pub(in crate::git::snapshot) fn borrowed(&self) -> CachedName<&[u8]> {
        self.with_name(&self.name)
    }
}

impl CachedName<&[u8]> {
    /// Returns the entry with a name of its own.
    pub(in crate::git::snapshot) fn into_owned(self) -> CachedName {
        self.with_name(self.name.to_vec())
    }
}

impl<N> CachedName<N> {
    /// Returns what is known of the entry under another form of its name.
    fn with_name<M>(&self, name: M) -> CachedName<M> {
        CachedName {
            name,
            kind: self.kind,
            id: self.id,
            stat: self.stat,
            basis: self.basis,
            standing: self.standing,
        }
    }
}
