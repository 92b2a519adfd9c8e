//! Converts the result of a walk to a private index.

use std::collections::HashSet;
use std::sync::Arc;

use gix::ObjectId;
use gix::objs::tree::{EntryKind, EntryRef};

use super::cache::{Basis, Cache, CacheOrigin, CacheWriter, CachedDir, CachedName, mark};
use super::context::ScanContext;
use super::dir_scan::{Listing, Scanned};
use super::limits::display_path;
use crate::git::object::writer::Sink;
use crate::git::paths;
use crate::git::repository::Repository;

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
        let mut writer = CacheWriter::new(self.basis.root.as_slice().len());
        for (at, dir) in self.dirs.iter().enumerate() {
            let record = CachedDir {
                path: &dir.path,
                parent: self.trees.parents[at] as u32,
                entries: 0..0,
                marks: dir.marks,
                times: dir.times,
                tree: self.trees.ids[at],
            };
            writer.dir(&record, |writer| {
                let before = self.before.as_deref();
                dir.listing.each(before, |name| writer.entry(&name));
            });
        }

        writer.finish(&self.basis)
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

pub(super) struct DirTrees {
    /// Tree of each directory, or null if it is empty.
    pub(super) ids: Vec<ObjectId>,
    /// Index of each directory's parent. The first directory has its own index.
    pub(super) parents: Vec<usize>,
}

/// Writes the new trees. `dirs` must be sorted by path.
pub(super) fn write_trees(
    scan: &ScanContext<'_>,
    repository: &Repository,
    dirs: &[Scanned],
    sink: &Sink,
) -> anyhow::Result<DirTrees> {
    let mut builder = TreeBuilder {
        scan,
        dirs,
        trees: vec![repository.gix.object_hash().null(); dirs.len()],
        same: vec![false; dirs.len()],
        children: vec![Vec::new(); dirs.len()],
    };
    let parents = parent_indexes(dirs);
    for at in (0..dirs.len()).rev() {
        builder.same[at] = builder.is_same(at);
        builder.trees[at] = builder.tree(at, repository, sink)?;
        if at > 0 {
            builder.children[parents[at]].push(at);
        }
    }

    Ok(DirTrees {
        ids: builder.trees,
        parents,
    })
}

fn parent_indexes(dirs: &[Scanned]) -> Vec<usize> {
    let mut parents = Vec::with_capacity(dirs.len());
    for dir in dirs {
        let (path, _) = paths::split(&dir.path);
        // Most directories follow their parent or a sibling.
        let last = parents.len().saturating_sub(1);
        let near = [Some(last), parents.last().copied()];
        let near = near.into_iter().flatten().find(|&at| dirs[at].path == path);
        parents.push(near.unwrap_or_else(|| {
            dirs.binary_search_by(|dir| dir.path.as_slice().cmp(path))
                .expect("a folder is scanned after its parent")
        }));
    }
    parents
}

struct TreeBuilder<'a> {
    scan: &'a ScanContext<'a>,
    dirs: &'a [Scanned],
    trees: Vec<ObjectId>,
    /// Whether each directory and all of its subdirectories are unchanged.
    same: Vec<bool>,
    /// Subdirectories of each directory, last first.
    children: Vec<Vec<usize>>,
}

impl TreeBuilder<'_> {
    /// Returns whether a directory contains what it did in the last snapshot. Its subdirectories
    /// must be done.
    fn is_same(&self, at: usize) -> bool {
        let (Listing::Cached(number), Some(cache)) = (&self.dirs[at].listing, &self.scan.cache)
        else {
            return false;
        };
        let children = &self.children[at];
        let link = self.dirs[at].link;

        children.len() == cache.children(*number).len()
            && children.iter().all(|&child| self.same[child])
            && link.is_none_or(|link| link == cache.dir(*number).tree)
    }

    fn tree(&self, at: usize, repository: &Repository, sink: &Sink) -> anyhow::Result<ObjectId> {
        let dir = &self.dirs[at];
        if let Some(link) = dir.link {
            return Ok(link);
        }

        let cached = match (&dir.listing, &self.scan.cache) {
            (Listing::Cached(number) | Listing::Patched(number, _), Some(cache)) => {
                Some(cache.dir(*number).tree)
            }
            (_, cache) => cache
                .as_ref()
                .and_then(|cache| Some(cache.dir(cache.find_dir(&dir.path)?).tree)),
        };
        if let (true, Some(cached)) = (self.same[at], cached) {
            return Ok(cached);
        }

        let entries = self.entries(at);
        // git has no empty trees, except the top one.
        if entries.is_empty() && at > 0 {
            return Ok(repository.gix.object_hash().null());
        }
        let cached = cached.filter(|id| !id.is_null());
        sink.add_tree(&repository.memory, cached, encode_tree(&entries)?)
    }

    /// Returns the entries of a directory in git's order. A non-empty directory on disk wins over a
    /// file of the same name that only the index has.
    fn entries(&self, at: usize) -> Vec<TreeName<'_>> {
        let skip = if self.dirs[at].path.is_empty() {
            0
        } else {
            self.dirs[at].path.len() + 1
        };

        let children = self.children[at].iter().copied();
        let mut entries: Vec<_> = children
            .filter(|&child| !self.trees[child].is_null())
            .map(|child| TreeName {
                kind: if self.dirs[child].link.is_some() {
                    EntryKind::Commit
                } else {
                    EntryKind::Tree
                },
                name: &self.dirs[child].path[skip..],
                id: self.trees[child],
            })
            .collect();

        let dirs: HashSet<&[u8]> = entries.iter().map(|dir| dir.name).collect();
        let cache = self.scan.cache.as_deref();
        self.dirs[at].listing.each(cache, |entry| {
            let hidden = entry.origin == CacheOrigin::Inherited && dirs.contains(entry.name);
            if entry.origin != CacheOrigin::Watched && !entry.id.is_null() && !hidden {
                let CachedName { name, kind, id, .. } = entry;
                entries.push(TreeName { kind, name, id });
            }
        });
        entries.sort_by(|a, b| a.as_entry().cmp(&b.as_entry()));
        entries
    }
}

/// An entry of a new tree. Borrows the name, because a tree can have very many.
struct TreeName<'n> {
    kind: EntryKind,
    name: &'n [u8],
    id: ObjectId,
}

impl TreeName<'_> {
    fn as_entry(&self) -> EntryRef<'_> {
        EntryRef {
            mode: self.kind.into(),
            filename: self.name.into(),
            oid: &self.id,
        }
    }
}

/// Encodes a tree. Fails on a name that no tree can contain: git could neither read the tree nor
/// repack.
fn encode_tree(entries: &[TreeName<'_>]) -> anyhow::Result<Vec<u8>> {
    for entry in entries {
        let is_sound = !entry.name.is_empty() && !entry.name.contains(&b'/');
        anyhow::ensure!(
            is_sound,
            "`{}` is no name for a tree",
            display_path(entry.name)
        );
    }

    let length = |entry: &TreeName<'_>| 8 + entry.name.len() + entry.id.as_slice().len();
    let mut data = Vec::with_capacity(entries.iter().map(length).sum());
    for entry in entries {
        data.extend_from_slice(entry.kind.as_octal_str());
        data.push(b' ');
        data.extend_from_slice(entry.name);
        data.push(0);
        data.extend_from_slice(entry.id.as_slice());
    }
    Ok(data)
}
