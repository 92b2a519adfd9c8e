//! An entry of the private index.

use gix::ObjectId;
use gix::index::entry::Stat;
use gix::objs::tree::EntryKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git::snapshot) enum CacheOrigin {
    /// On disk, with this stat.
    Scanned,
    /// From the user's index, not compared with the disk.
    Inherited,
    /// Not in the tree, but changes matter: an ignored `.gitignore`.
    Watched,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git::snapshot) struct CachedName<N = Vec<u8>> {
    pub(in crate::git::snapshot) name: N,
    pub(in crate::git::snapshot) kind: EntryKind,
    /// Null if the object is not written yet or not in the tree.
    pub(in crate::git::snapshot) id: ObjectId,
    /// Stat when the file was read.
    pub(in crate::git::snapshot) stat: Stat,
    /// First bytes of the id in the user's index, or 0: the conversion of line endings depends on
    /// it.
    pub(in crate::git::snapshot) basis: u32,
    pub(in crate::git::snapshot) origin: CacheOrigin,
}

/// A new or changed entry, with its position in the directory.
pub(in crate::git::snapshot) type FreshName = (usize, CachedName);

impl CachedName {
    pub(in crate::git::snapshot) fn borrowed(&self) -> CachedName<&[u8]> {
        self.with_name(&self.name)
    }
}

impl CachedName<&[u8]> {
    pub(in crate::git::snapshot) fn into_owned(self) -> CachedName {
        self.with_name(self.name.to_vec())
    }
}

impl<N> CachedName<N> {
    fn with_name<M>(&self, name: M) -> CachedName<M> {
        CachedName {
            name,
            kind: self.kind,
            id: self.id,
            stat: self.stat,
            basis: self.basis,
            origin: self.origin,
        }
    }
}
