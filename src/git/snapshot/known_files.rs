//! Lists the files of the last snapshot in the order of git's index, without reading trees.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use gix::ObjectId;
use gix::index::entry::{Mode, Stat};
use gix::objs::tree::EntryKind;

use super::cache::{Cache, CacheOrigin, CachedName, mark};
use crate::git::ignore::user_index;
use crate::git::object::id::index_mode;
use crate::git::object::{Leaf, TreeId};
use crate::git::paths;
use crate::git::repository::Repository;

pub struct KnownFile<'a> {
    pub path: &'a [u8],
    pub mode: Mode,
    pub id: ObjectId,
    /// Stat on disk; null if the file can have changed within the same clock tick.
    pub stat: Stat,
}

struct ChildDir<'a> {
    name: &'a [u8],
    /// A nested repository, which sorts like a file.
    embedded: bool,
    number: usize,
}

/// Calls `add` for each file of `tree` in the order of git's index.
///
/// Returns `None`, possibly after some calls, if the private index at `index` belongs to another
/// tree or lacks files.
pub fn each_known_file(
    repository: &Repository,
    index: &Path,
    tree: TreeId,
    mut add: impl FnMut(KnownFile<'_>),
) -> Option<()> {
    let cache = cache_of(repository, index, tree)?;
    let add = &mut |path: &[u8], entry: &CachedName<&[u8]>| {
        // A file that changed at the moment of the snapshot can have changed again.
        let is_sure =
            entry.origin == CacheOrigin::Scanned && !cache.basis.stamp.is_racy(&entry.stat);
        add(KnownFile {
            path,
            mode: index_mode(entry.kind),
            id: entry.id,
            stat: if is_sure { entry.stat } else { Stat::default() },
        });
    };
    each_in(&cache, 0, &mut Vec::new(), add)
}

/// The private index of one tree. It can move to another thread.
pub struct KnownTree(Arc<Cache>);

impl KnownTree {
    /// Returns the private index at `index`; `None` if it belongs to another tree.
    pub fn of(repository: &Repository, index: &Path, tree: TreeId) -> Option<KnownTree> {
        cache_of(repository, index, tree).map(KnownTree)
    }

    /// Returns the files, sorted, like [`Repository::leaves`] but without reading trees. `None` if
    /// the index lacks files.
    pub fn leaves(&self) -> Option<Vec<Leaf>> {
        let mut leaves = Vec::with_capacity(self.0.entry_count());
        each_in(&self.0, 0, &mut Vec::new(), &mut |path, entry| {
            let mode = entry.kind;
            let (path, id) = (path.to_vec(), entry.id);
            leaves.push(Leaf { path, mode, id });
        })?;
        Some(leaves)
    }
}

fn cache_of(repository: &Repository, index: &Path, tree: TreeId) -> Option<Arc<Cache>> {
    let hash = repository.gix.object_hash();
    let cache = repository.loaded.private_index(index, hash);
    cache.filter(|cache| cache.basis.root == tree.0)
}

/// Calls `add` for each file below a directory. `path` is a reused buffer. `None` if the cache
/// lacks files.
fn each_in(
    cache: &Cache,
    number: usize,
    path: &mut Vec<u8>,
    add: &mut impl FnMut(&[u8], &CachedName<&[u8]>),
) -> Option<()> {
    let dir = cache.dir(number);
    if dir.marks & mark::EMBEDDED != 0 && !dir.tree.is_null() {
        add(dir.path, &link_to(dir.tree));
        let is_empty = dir.entries.is_empty() && cache.children(number).is_empty();
        return is_empty.then_some(());
    }

    let children = sorted_children(cache, number);
    let mut next = children.iter().peekable();
    for at in dir.entries.clone() {
        let entry = cache.entry(at);
        match (entry.origin, entry.kind) {
            (CacheOrigin::Watched, _) => continue,
            // A sparse index has only the tree of this directory.
            (_, EntryKind::Tree) => return None,
            // A directory on disk takes precedence over an entry of the user's index.
            (CacheOrigin::Inherited, _)
                if cache.find_dir(&paths::join(dir.path, entry.name)).is_some() =>
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
        path.extend_from_slice(dir.path);
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(entry.name);
        add(path, &entry);
    }

    next.try_for_each(|child| each_in(cache, child.number, path, add))
}

/// In the order of the index.
fn sorted_children(cache: &Cache, number: usize) -> Vec<ChildDir<'_>> {
    let dir = cache.dir(number);
    let skip = dir.path.len() + usize::from(!dir.path.is_empty());
    let children = cache.children(number).iter().map(|&number| {
        let child = cache.dir(number as usize);
        ChildDir {
            name: &child.path[skip..],
            embedded: child.marks & mark::EMBEDDED != 0,
            number: number as usize,
        }
    });
    let mut children: Vec<ChildDir<'_>> = children.collect();
    children.sort_unstable_by(|a, b| a.in_index().cmp(b.in_index()));
    children
}

impl ChildDir<'_> {
    fn in_index(&self) -> impl Iterator<Item = u8> {
        let slash = (!self.embedded).then_some(b'/');
        self.name.iter().copied().chain(slash)
    }

    /// Returns whether the directory's files sort before a file of this name.
    fn is_before(&self, name: &[u8]) -> bool {
        self.in_index().cmp(name.iter().copied()) == Ordering::Less
    }
}

fn link_to(id: ObjectId) -> CachedName<&'static [u8]> {
    CachedName {
        name: b"",
        kind: EntryKind::Commit,
        id,
        stat: Stat::default(),
        basis: 0,
        origin: CacheOrigin::Scanned,
    }
}

/// Returns how many files of a tree git does not track in this worktree, except those below
/// `.teddy/`. `index` is the private index of the worktree.
pub fn count_untracked(
    repository: &Repository,
    index: &Path,
    tree: TreeId,
) -> anyhow::Result<usize> {
    let cached = KnownTree::of(repository, index, tree).and_then(|cached| cached.leaves());
    let leaves = cached.map_or_else(|| repository.leaves(tree), Ok)?;
    let tracked = &user_index(repository)?.state;
    let mut tracked = tracked
        .entries()
        .iter()
        .map(|entry| entry.path(tracked))
        .peekable();
    // A sparse index has a directory for its files.
    let covers = |entry: &[u8], path: &[u8]| {
        entry == path || (entry.ends_with(b"/") && path.starts_with(entry))
    };
    // Both are sorted.
    let is_untracked = |leaf: &&Leaf| {
        let is_before =
            |entry: &&gix::bstr::BStr| ***entry < *leaf.path && !covers(entry, &leaf.path);
        while tracked.next_if(is_before).is_some() {}
        let is_tracked = tracked
            .peek()
            .is_some_and(|entry| covers(entry, &leaf.path));
        !is_tracked && !leaf.path.starts_with(b".teddy/")
    };
    Ok(leaves.iter().filter(is_untracked).count())
}
