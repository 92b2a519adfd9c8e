//! What a walk saw, on its way into the private index.

use std::sync::Arc;

use super::cache::{Basis, Cache, CachedFolder, CachedName, FreshName, Sizes, Writer, mark};
use super::folder::{Listing, Scanned};
use super::tree::FolderTrees;

/// The folders of a walk and what became of them.
pub(super) struct SeenFiles {
    /// What the last snapshot saw.
    pub(super) before: Option<Arc<Cache>>,
    /// Whether what decides about names is what it was then.
    pub(super) stands: bool,
    /// The folders, in the order of their paths.
    pub(super) folders: Vec<Scanned>,
    /// Their trees.
    pub(super) trees: FolderTrees,
    /// What the walk stands on.
    pub(super) basis: Basis,
}

impl SeenFiles {
    /// Returns whether the private index on disk says just this.
    pub(super) fn is_as_saved(&self) -> bool {
        let Some(before) = self.before.as_ref().filter(|_| self.stands) else {
            return false;
        };
        before.basis.root == self.basis.root
            && self.folders.len() == before.folder_count()
            && self.folders.iter().all(|now| is_as_cached(before, now))
    }

    /// Returns about how many names there are.
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

    /// Returns the private index that says this.
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

    /// Returns the number of a folder in the private index before, that index, and what is not as
    /// it says; nothing for a folder that was listed anew.
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

/// Returns whether a folder is as the private index has it. One that was read anew may be: for paths
/// in it that are to be taken whatever the rules say, now and then.
fn is_as_cached(before: &Cache, folder: &Scanned) -> bool {
    let number = match &folder.listing {
        Listing::Kept(number) | Listing::Mended(number, _) => Some(*number),
        Listing::Read(_) => before.find_folder(&folder.path),
    };
    let Some(was) = number.map(|number| before.folder(number)) else {
        return false;
    };

    let marks = |marks: u32| marks & !mark::FORCED;
    let is_sure = folder.times == was.times && was.times.mtime < before.basis.stamp.0;
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
