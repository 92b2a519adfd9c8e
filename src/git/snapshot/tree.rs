//! Trees: from what the folders have to objects, the innermost first.

use gix::ObjectId;
use gix::objs::tree::EntryKind;
use gix::objs::{Kind, WriteTo as _};

use super::cache::{CacheOrigin, CachedName, mark};
use super::context::ScanContext;
use super::folder::{Listing, Scanned};
use crate::git::object::writer::Sink;

/// Writes the trees that are new; returns the tree of each folder, null where nothing is in it.
/// The folders are in the order of their paths.
pub(super) fn write(
    scan: &ScanContext<'_>,
    gix: &gix::Repository,
    folders: &[Scanned],
    sink: &Sink,
) -> anyhow::Result<Vec<ObjectId>> {
    let mut builder = TreeBuilder {
        scan,
        folders,
        trees: vec![gix.object_hash().null(); folders.len()],
        same: vec![false; folders.len()],
        children: vec![Vec::new(); folders.len()],
    };
    for at in (0..folders.len()).rev() {
        builder.same[at] = builder.is_same(at);
        builder.trees[at] = builder.tree(at, gix, sink)?;
        if at > 0 {
            let parent = parent_of(folders, at);
            builder.children[parent].push(at);
        }
    }

    Ok(builder.trees)
}

/// Returns the position of a folder's parent.
pub(super) fn parent_of(folders: &[Scanned], at: usize) -> usize {
    let path = &folders[at].path;
    let end = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
    folders
        .binary_search_by(|folder| folder.path.as_slice().cmp(&path[..end]))
        .expect("a folder is scanned after its parent")
}

/// The trees, as far as they are made.
struct TreeBuilder<'a> {
    /// The snapshot.
    scan: &'a ScanContext<'a>,
    /// The folders.
    folders: &'a [Scanned],
    /// Their trees.
    trees: Vec<ObjectId>,
    /// Whether they are as in the last snapshot.
    same: Vec<bool>,
    /// Their sub-folders, the last first.
    children: Vec<Vec<usize>>,
}

impl TreeBuilder<'_> {
    /// Returns whether a folder has what it had in the last snapshot.
    fn is_same(&self, at: usize) -> bool {
        let (Listing::Kept(number), Some(cache)) = (&self.folders[at].listing, &self.scan.cache)
        else {
            return false;
        };
        let children = &self.children[at];
        let link = self.folders[at].link;

        children.len() == cache.children(*number).len()
            && children.iter().all(|&child| self.same[child])
            && link.is_none_or(|link| link == cache.folder(*number).tree)
    }

    /// Returns a folder's tree, written if it is new.
    fn tree(&self, at: usize, gix: &gix::Repository, sink: &Sink) -> anyhow::Result<ObjectId> {
        let folder = &self.folders[at];
        if let Some(link) = folder.link {
            return Ok(link);
        }

        let known = match (&folder.listing, &self.scan.cache) {
            (Listing::Kept(number), Some(cache)) => Some(cache.folder(*number).tree),
            (_, cache) => cache
                .as_ref()
                .and_then(|cache| Some(cache.folder(cache.find_folder(&folder.path)?).tree)),
        };
        if let (true, Some(known)) = (self.same[at], known) {
            return Ok(known);
        }

        let tree = self.entries(at);
        if tree.entries.is_empty() && at > 0 {
            return Ok(gix.object_hash().null());
        }

        let mut data = Vec::new();
        tree.write_to(&mut data)?;
        if let Some(known) = known.filter(|known| !known.is_null()) {
            let id = gix::objs::compute_hash(gix.object_hash(), Kind::Tree, &data);
            if id.is_ok_and(|id| id == known) {
                return Ok(known);
            }
        }

        sink.add(Kind::Tree, data)
    }

    /// Returns a folder's entries in git's order; a folder that has something in it wins over a
    /// file of its name that only the index has.
    fn entries(&self, at: usize) -> gix::objs::Tree {
        let mut entries = Vec::new();
        let skip = if self.folders[at].path.is_empty() {
            0
        } else {
            self.folders[at].path.len() + 1
        };

        for &child in self.children[at]
            .iter()
            .filter(|&&child| !self.trees[child].is_null())
        {
            let kind = if self.folders[child].link.is_some() {
                EntryKind::Commit
            } else {
                EntryKind::Tree
            };

            let filename = self.folders[child].path[skip..].into();
            entries.push(gix::objs::tree::Entry {
                mode: kind.into(),
                filename,
                oid: self.trees[child],
            });
        }

        let folders = entries.len();
        let mut add = |entry: CachedName<&[u8]>| {
            let hidden = entry.standing == CacheOrigin::Inherited
                && entries[..folders].iter().any(|e| e.filename == entry.name);
            if entry.standing != CacheOrigin::Watched && !entry.id.is_null() && !hidden {
                entries.push(gix::objs::tree::Entry {
                    mode: entry.kind.into(),
                    filename: entry.name.into(),
                    oid: entry.id,
                });
            }
        };

        each_entry(self.scan, &self.folders[at], &mut add);
        entries.sort();
        gix::objs::Tree { entries }
    }
}

/// Goes through the entries of a folder.
pub(super) fn each_entry<'f>(
    scan: &'f ScanContext<'_>,
    folder: &'f Scanned,
    add: &mut impl FnMut(CachedName<&'f [u8]>),
) {
    match (&folder.listing, &scan.cache) {
        (Listing::Read(entries), _) => entries.iter().for_each(|entry| add(entry.borrowed())),
        (Listing::Kept(number), Some(cache)) if folder.marks & mark::EMBEDDED == 0 => {
            cache
                .folder(*number)
                .entries
                .for_each(|n| add(cache.entry(n)));
        }
        (Listing::Kept(_), _) => {}
    }
}
