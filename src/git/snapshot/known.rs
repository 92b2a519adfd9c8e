//! What the last snapshot saw of the user's files: as an index of git's, and as a list.

use std::path::Path;

use gix::ObjectId;
use gix::bstr::ByteSlice as _;
use gix::index::State;
use gix::index::entry::{Flags, Mode, Stat};
use gix::objs::tree::EntryKind;

use super::cache::{Cache, CacheOrigin, CachedName, mark};
use super::folder::join;
use crate::git::object::{Leaf, TreeId};
use crate::git::repository::Repository;

/// Returns the files of a tree with what was seen of them when a snapshot made it; nothing where
/// the private index at `index` is that of another tree, or says less.
pub fn known_files(repository: &Repository, index: &Path, tree: TreeId) -> Option<State> {
    let mut state = State::new(repository.gix.object_hash());
    each_known(repository, index, tree, |path, entry, is_sure| {
        let mode = match entry.kind {
            EntryKind::Blob => Mode::FILE,
            EntryKind::BlobExecutable => Mode::FILE_EXECUTABLE,
            EntryKind::Link => Mode::SYMLINK,
            EntryKind::Commit | EntryKind::Tree => Mode::COMMIT,
        };
        // What changed in the moment of the snapshot may have changed once more.
        let stat = if is_sure { entry.stat } else { Stat::default() };
        state.dangerously_push_entry(stat, entry.id, Flags::empty(), mode, path.as_bstr());
    })?;

    state.sort_entries();
    Some(state)
}

/// Returns the files of a tree, sorted, as [`Repository::leaves`] does, without reading a folder of
/// it; nothing where the private index at `index` is that of another tree, or says less.
pub fn known_leaves(repository: &Repository, index: &Path, tree: TreeId) -> Option<Vec<Leaf>> {
    let mut leaves = Vec::new();
    each_known(repository, index, tree, |path, entry, _| {
        let mode = gix::objs::tree::EntryMode::from(entry.kind).into();
        let id = entry.id;
        leaves.push(Leaf { path, mode, id });
    })?;

    leaves.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Some(leaves)
}

/// Goes through the files of a tree by the private index: each with its path, what is known of it,
/// and whether its stat is sure. Returns nothing where that is not all of them.
fn each_known(
    repository: &Repository,
    index: &Path,
    tree: TreeId,
    mut add: impl FnMut(Vec<u8>, &CachedName<&[u8]>, bool),
) -> Option<()> {
    let cache = Cache::load(index, repository.gix.object_hash());
    let cache = cache.filter(|cache| cache.basis.root == tree.0)?;
    for number in 0..cache.folder_count() {
        let folder = cache.folder(number);
        if folder.marks & mark::EMBEDDED != 0 && !folder.tree.is_null() {
            add(folder.path.to_vec(), &link_to(folder.tree), false);
        }

        for at in folder.entries.clone() {
            let entry = cache.entry(at);
            let path = join(folder.path, entry.name);
            match (entry.standing, entry.kind) {
                (CacheOrigin::Watched, _) => continue,
                // A sparse index says no more of a folder than its tree.
                (_, EntryKind::Tree) => return None,
                // A folder on disk wins over what only the user's index has.
                (CacheOrigin::Inherited, _) if cache.find_folder(&path).is_some() => return None,
                _ if entry.id.is_null() => continue,
                _ => {}
            }

            let is_seen = entry.standing == CacheOrigin::Seen;
            add(
                path,
                &entry,
                is_seen && !cache.basis.stamp.is_racy(&entry.stat),
            );
        }
    }

    Some(())
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
