//! Converts the result of a walk to a private index.

use std::sync::Arc;

use super::cache::{Basis, Cache, CacheSizes, CacheWriter, CachedDir, CachedName, FreshName, mark};
use super::dir_scan::{Listing, Scanned};
use super::tree::DirTrees;

pub(super) struct ScannedFiles {
    /// The private index before the walk.
    pub(super) before: Option<Arc<Cache>>,
    /// Whether everything that decides about names is unchanged.
    pub(super) is_valid: bool,
    /// Sorted by path.
    pub(super) dirs: Vec<Scanned>,
    pub(super) trees: DirTrees,
    pub(super) basis: Basis,
}

impl ScannedFiles {
    /// Returns whether the private index on disk has the same content, so it need not be written.
    pub(super) fn is_as_saved(&self) -> bool {
        let Some(before) = self.before.as_ref().filter(|_| self.is_valid) else {
            return false;
        };
        before.basis.root == self.basis.root
            && self.dirs.len() == before.dir_count()
            && self.dirs.iter().all(|now| is_as_cached(before, now))
    }

    pub(super) fn size(&self) -> usize {
        let sizes = self.dirs.iter().map(|dir| match &dir.listing {
            Listing::Read(names) => names.len(),
            Listing::Cached(number) | Listing::Patched(number, _) => {
                let before = self.before.as_ref();
                before.map_or(0, |before| before.dir(*number).entries.len())
            }
        });
        sizes.sum()
    }

    pub(super) fn into_cache(self) -> Option<Cache> {
        let mut sizes = CacheSizes::default();
        for dir in &self.dirs {
            let size = match (self.unchanged(dir), &dir.listing) {
                (Some((number, before, _)), _) => before.sizes(number),
                (None, Listing::Read(entries)) => CacheSizes {
                    dirs: 1,
                    entries: entries.len(),
                    names: dir.path.len() + entries.iter().map(|e| e.name.len()).sum::<usize>(),
                },
                (None, _) => CacheSizes {
                    dirs: 1,
                    entries: 0,
                    names: dir.path.len(),
                },
            };
            sizes.dirs += size.dirs;
            sizes.entries += size.entries;
            sizes.names += size.names;
        }

        let mut writer = CacheWriter::new(sizes, self.basis.root.as_slice().len());
        for (at, dir) in self.dirs.iter().enumerate() {
            let record = CachedDir {
                path: &dir.path,
                parent: self.trees.parents[at] as u32,
                entries: 0..0,
                marks: dir.marks,
                times: dir.times,
                tree: self.trees.ids[at],
            };
            match self.unchanged(dir) {
                Some((number, before, fresh)) => writer.copy_cached(before, number, &record, fresh),
                None => writer.dir(&record, |writer| {
                    if let Listing::Read(names) = &dir.listing {
                        names.iter().for_each(|name| writer.entry(&name.borrowed()));
                    }
                }),
            }
        }

        writer.finish(&self.basis)
    }

    /// Returns the number of a directory in the old index, that index, and the entries that
    /// changed; `None` if the directory was listed again.
    fn unchanged<'s>(&'s self, dir: &'s Scanned) -> Option<(usize, &'s Cache, &'s [FreshName])> {
        let before = self.before.as_deref()?;
        match &dir.listing {
            _ if dir.marks & mark::EMBEDDED != 0 => None,
            Listing::Cached(number) => Some((*number, before, &[])),
            Listing::Patched(number, fresh) => Some((*number, before, fresh)),
            Listing::Read(_) => None,
        }
    }
}

/// Returns whether a directory equals the old index. One that was listed again can be equal too,
/// for example because of forced paths in it.
fn is_as_cached(before: &Cache, dir: &Scanned) -> bool {
    let number = match &dir.listing {
        Listing::Cached(number) | Listing::Patched(number, _) => Some(*number),
        Listing::Read(_) => before.find_dir(&dir.path),
    };
    let Some(cached) = number.map(|number| before.dir(number)) else {
        return false;
    };

    let marks = |marks: u32| marks & !mark::FORCED;
    let is_racy = (before.basis.stamp).is_racy_at(cached.times.mtime, cached.times.ctime);
    let is_sure = dir.times == cached.times && !is_racy;
    let is_known = |(position, name): (usize, &CachedName)| {
        before.entry(cached.entries.start + position) == name.borrowed()
    };
    is_sure
        && marks(dir.marks) == marks(cached.marks)
        && match &dir.listing {
            Listing::Cached(_) => true,
            Listing::Patched(_, fresh) => fresh.iter().all(|(at, name)| is_known((*at, name))),
            Listing::Read(names) => {
                cached.entries.len() == names.len() && names.iter().enumerate().all(is_known)
            }
        }
}
