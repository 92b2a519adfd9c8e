//! What the last snapshot saw of the user's files, one after another as git's index has them.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use gix::ObjectId;
use gix::index::entry::{Mode, Stat};
use gix::objs::tree::EntryKind;

use super::cache::{Cache, CacheOrigin, CachedName, mark};
use super::folder::join;
use crate::git::object::{Leaf, TreeId};
use crate::git::repository::Repository;

/// A file that a snapshot saw.
pub struct KnownFile<'a> {
    /// Its path.
    pub path: &'a [u8],
    /// What it is.
    pub mode: Mode,
    /// Its content.
    pub id: ObjectId,
    /// Its stat; none of it where it may have changed once more.
    pub stat: Stat,
}

/// A folder in a folder.
struct ChildFolder<'a> {
    /// Its name.
    name: &'a [u8],
    /// Whether it is a repository of its own, which is as a file for the one around it.
    embedded: bool,
    /// Its number.
    number: usize,
}

/// Goes through the files of a tree, in the order of git's index, with what was seen of them when a
/// snapshot made it. Returns nothing, perhaps after some of them, where the private index at `index`
/// is that of another tree, or says less.
pub fn each_known_file(
    repository: &Repository,
    index: &Path,
    tree: TreeId,
    mut add: impl FnMut(KnownFile<'_>),
) -> Option<()> {
    let cache = cache_of(repository, index, tree)?;
    let add = &mut |path: &[u8], entry: &CachedName<&[u8]>| {
        // What changed in the moment of the snapshot may have changed once more.
        let is_sure =
            entry.standing == CacheOrigin::Seen && !cache.basis.stamp.is_racy(&entry.stat);
        add(KnownFile {
            path,
            mode: match entry.kind {
                EntryKind::Blob => Mode::FILE,
                EntryKind::BlobExecutable => Mode::FILE_EXECUTABLE,
                EntryKind::Link => Mode::SYMLINK,
                EntryKind::Commit | EntryKind::Tree => Mode::COMMIT,
            },
            id: entry.id,
            stat: if is_sure { entry.stat } else { Stat::default() },
        });
    };
    each_in(&cache, 0, &mut Vec::new(), add)
}

/// What the last snapshot saw of a tree; another thread can have it, too.
pub struct KnownTree(Arc<Cache>);

impl KnownTree {
    /// Returns what is known of a tree; nothing where the private index at `index` is that of another.
    pub fn of(repository: &Repository, index: &Path, tree: TreeId) -> Option<KnownTree> {
        cache_of(repository, index, tree).map(KnownTree)
    }

    /// Returns its files, sorted, as [`Repository::leaves`] does, without reading a folder of it;
    /// nothing where not all of them are known.
    pub fn leaves(&self) -> Option<Vec<Leaf>> {
        let mut leaves = Vec::with_capacity(self.0.entry_count());
        each_in(&self.0, 0, &mut Vec::new(), &mut |path, entry| {
            let mode = gix::objs::tree::EntryMode::from(entry.kind).into();
            let (path, id) = (path.to_vec(), entry.id);
            leaves.push(Leaf { path, mode, id });
        })?;
        Some(leaves)
    }
}

/// Returns a private index, if it is that of a tree.
fn cache_of(repository: &Repository, index: &Path, tree: TreeId) -> Option<Arc<Cache>> {
    let hash = repository.gix.object_hash();
    let cache = repository.loaded.private_index(index, hash);
    cache.filter(|cache| cache.basis.root == tree.0)
}

/// Goes through the files below a folder; `path` is room for a path. Returns nothing where the
/// cache does not know all of them.
fn each_in(
    cache: &Cache,
    number: usize,
    path: &mut Vec<u8>,
    add: &mut impl FnMut(&[u8], &CachedName<&[u8]>),
) -> Option<()> {
    let folder = cache.folder(number);
    if folder.marks & mark::EMBEDDED != 0 && !folder.tree.is_null() {
        add(folder.path, &link_to(folder.tree));
        let is_empty = folder.entries.is_empty() && cache.children(number).is_empty();
        return is_empty.then_some(());
    }

    let skip = folder.path.len() + usize::from(!folder.path.is_empty());
    let children = cache.children(number).iter().map(|&number| {
        let child = cache.folder(number as usize);
        ChildFolder {
            name: &child.path[skip..],
            embedded: child.marks & mark::EMBEDDED != 0,
            number: number as usize,
        }
    });
    let mut children: Vec<ChildFolder<'_>> = children.collect();
    children.sort_unstable_by(|a, b| a.in_index().cmp(b.in_index()));

    let mut next = children.iter().peekable();
    for at in folder.entries.clone() {
        let entry = cache.entry(at);
        match (entry.standing, entry.kind) {
            (CacheOrigin::Watched, _) => continue,
            // A sparse index says no more of a folder than its tree.
            (_, EntryKind::Tree) => return None,
            // A folder on disk wins over what only the user's index has.
            (CacheOrigin::Inherited, _)
                if cache.find_folder(&join(folder.path, entry.name)).is_some() =>
            {
                return None;
            }
            _ if entry.id.is_null() => continue,
            _ => {}
        }

        while let Some(child) = next.next_if(|child| child.is_before(entry.name)) {
            each_in(cache, child.number, path, add)?;
        }
        path.clear();
        path.extend_from_slice(folder.path);
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(entry.name);
        add(path, &entry);
    }

    next.try_for_each(|child| each_in(cache, child.number, path, add))
}

impl ChildFolder<'_> {
    /// Returns its name as what is in it has it in git's index.
    fn in_index(&self) -> impl Iterator<Item = u8> {
        let slash = (!self.embedded).then_some(b'/');
        self.name.iter().copied().chain(slash)
    }

    /// Returns whether what is in it comes before a file of this name.
    fn is_before(&self, name: &[u8]) -> bool {
        self.in_index().cmp(name.iter().copied()) == Ordering::Less
    }
}

/// Returns what is known of a folder that is a repository of its own, at this commit.
fn link_to(id: ObjectId) -> CachedName<&'static [u8]> {
    CachedName {
        name: b"",
        kind: EntryKind::Commit,
        id,
        stat: Stat::default(),
        basis: 0,
        standing: CacheOrigin::Seen,
    }
}
