//! Converts the result of a walk to a private index.

use std::sync::Arc;

use super::cache::{Basis, Cache, CachedFolder, CachedName, FreshName, Sizes, Writer, mark};
use super::folder::{Listing, Scanned};
use super::tree::FolderTrees;

pub(super) struct SeenFiles {
    /// The private index before the walk.
    pub(super) before: Option<Arc<Cache>>,
    /// Whether everything that decides about names is unchanged.
    pub(super) stands: bool,
    /// Sorted by path.
    pub(super) folders: Vec<Scanned>,
    pub(super) trees: FolderTrees,
    pub(super) basis: Basis,
}

impl SeenFiles {
    /// Returns whether the private index on disk has the same content, so it need not be written.
    pub(super) fn is_as_saved(&self) -> bool {
        let Some(before) = self.before.as_ref().filter(|_| self.stands) else {
            return false;
        };
        before.basis.root == self.basis.root
            && self.folders.len() == before.folder_count()
            && self.folders.iter().all(|now| is_as_cached(before, now))
    }

    pub(super) fn size(&self) -> usize {
        let sizes = self.folders.iter().map(|folder| match &folder.listing {
            Listing::Read(names) => names.len(),
            Listing::Kept(number) | Listing::Mended(number, _) => {
                let before = self.before.as_ref();
                before.map_or(0, |before| before.folder(*number).entries.len())
            }
        });
        sizes.sum()
    }

    pub(super) fn into_cache(self) -> Option<Cache> {
        let mut sizes = Sizes::default();
        for folder in &self.folders {
            let size = match (self.kept(folder), &folder.listing) {
                (Some((number, before, _)), _) => before.sizes(number),
                (None, Listing::Read(entries)) => Sizes {
                    folders: 1,
                    entries: entries.len(),
                    names: folder.path.len() + entries.iter().map(|e| e.name.len()).sum::<usize>(),
                },
                (None, _) => Sizes {
                    folders: 1,
                    entries: 0,
                    names: folder.path.len(),
                },
            };
            sizes.folders += size.folders;
            sizes.entries += size.entries;
            sizes.names += size.names;
        }

        let mut writer = Writer::new(sizes, self.basis.root.as_slice().len());
        for (at, folder) in self.folders.iter().enumerate() {
            let record = CachedFolder {
                path: &folder.path,
                parent: self.trees.parents[at] as u32,
                entries: 0..0,
                marks: folder.marks,
                times: folder.times,
                tree: self.trees.ids[at],
            };
            match self.kept(folder) {
                Some((number, before, fresh)) => writer.kept(before, number, &record, fresh),
                None => writer.folder(&record, |writer| {
                    if let Listing::Read(names) = &folder.listing {
                        names.iter().for_each(|name| writer.entry(&name.borrowed()));
                    }
                }),
            }
        }

        writer.finish(&self.basis)
    }

    /// Returns the number of a directory in the old index, that index, and the entries that
    /// changed; `None` if the directory was listed again.
    fn kept<'s>(&'s self, folder: &'s Scanned) -> Option<(usize, &'s Cache, &'s [FreshName])> {
        let before = self.before.as_deref()?;
        match &folder.listing {
            _ if folder.marks & mark::EMBEDDED != 0 => None,
            Listing::Kept(number) => Some((*number, before, &[])),
            Listing::Mended(number, fresh) => Some((*number, before, fresh)),
            Listing::Read(_) => None,
        }
    }
}

/// Returns whether a directory equals the old index. One that was listed again can be equal too,
/// for example because of forced paths in it.
fn is_as_cached(before: &Cache, folder: &Scanned) -> bool {
    let number = match &folder.listing {
        Listing::Kept(number) | Listing::Mended(number, _) => Some(*number),
        Listing::Read(_) => before.find_folder(&folder.path),
    };
    let Some(was) = number.map(|number| before.folder(number)) else {
        return false;
    };

    let marks = |marks: u32| marks & !mark::FORCED;
    let is_racy = (before.basis.stamp).is_racy_at(was.times.mtime, was.times.ctime);
    let is_sure = folder.times == was.times && !is_racy;
    let is_known = |(place, name): (usize, &CachedName)| {
        before.entry(was.entries.start + place) == name.borrowed()
    };
    is_sure
        && marks(folder.marks) == marks(was.marks)
        && match &folder.listing {
            Listing::Kept(_) => true,
            Listing::Mended(_, fresh) => fresh.iter().all(|(at, name)| is_known((*at, name))),
            Listing::Read(names) => {
                was.entries.len() == names.len() && names.iter().enumerate().all(is_known)
            }
        }
}
