//! What the last snapshot saw of the user's files: as an index of git's, and as a list.

use std::path::Path;

use gix::ObjectId;
use gix::bstr::ByteSlice as _;
use gix::index::State;
use gix::index::entry::{Flags, Mode, Stat};
use gix::objs::tree::EntryKind;

use super::cache::{Cache, CacheOrigin, CachedFolder, mark};
use super::folder::join;
use crate::git::object::{EntryMode, Leaf, TreeId};
use crate::git::repository::Repository;

/// Returns the files of a tree with what was seen of them when a snapshot made it; nothing where
/// the private index at `index` is that of another tree.
pub fn known_files(repository: &Repository, index: &Path, tree: TreeId) -> Option<State> {
    let hash = repository.gix.object_hash();
    let cache = Cache::load(index, hash).filter(|cache| cache.basis.root == tree.0)?;
    let mut state = State::new(hash);
    for number in 0..cache.folder_count() {
        let folder = cache.folder(number);
        if let Some(id) = link_of(&folder) {
            let (stat, path) = (Stat::default(), folder.path.as_bstr());
            state.dangerously_push_entry(stat, id, Flags::empty(), Mode::COMMIT, path);
        }

        for at in folder.entries.clone() {
            let entry = cache.entry(at);
            let mode = match (entry.standing, entry.kind) {
                (CacheOrigin::Watched, _) => continue,
                // A sparse index says no more of a folder than its tree.
                (_, EntryKind::Tree) => return None,
                (_, EntryKind::Blob) => Mode::FILE,
                (_, EntryKind::BlobExecutable) => Mode::FILE_EXECUTABLE,
                (_, EntryKind::Link) => Mode::SYMLINK,
                (_, EntryKind::Commit) => Mode::COMMIT,
            };
            if entry.id.is_null() {
                return None;
            }

            // What changed in the moment of the snapshot may have changed once more.
            let is_sure =
                entry.standing == CacheOrigin::Seen && !cache.basis.stamp.is_racy(&entry.stat);
            let stat = if is_sure { entry.stat } else { Stat::default() };
            let path = join(folder.path, entry.name);
            state.dangerously_push_entry(stat, entry.id, Flags::empty(), mode, path.as_bstr());
        }
    }

    state.sort_entries();
    Some(state)
}

/// Returns the files of a tree, sorted, as [`Repository::leaves`] does, without reading a folder of
/// it; nothing where the private index at `index` is that of another tree, or says less.
pub fn known_leaves(repository: &Repository, index: &Path, tree: TreeId) -> Option<Vec<Leaf>> {
    let hash = repository.gix.object_hash();
    let cache = Cache::load(index, hash).filter(|cache| cache.basis.root == tree.0)?;
    let mut leaves = Vec::new();
    for number in 0..cache.folder_count() {
        let folder = cache.folder(number);
        if let Some(id) = link_of(&folder) {
            let (path, mode) = (folder.path.to_vec(), EntryMode::Gitlink);
            leaves.push(Leaf { path, mode, id });
        }

        for at in folder.entries.clone() {
            let entry = cache.entry(at);
            let path = join(folder.path, entry.name);
            match entry.standing {
                CacheOrigin::Watched => continue,
                // A folder on disk wins over what only the user's index has.
                CacheOrigin::Inherited if cache.find_folder(&path).is_some() => return None,
                _ if entry.id.is_null() => continue,
                CacheOrigin::Inherited | CacheOrigin::Seen => {}
            }

            let mode = match entry.kind {
                EntryKind::Tree => return None,
                EntryKind::Blob => EntryMode::File,
                EntryKind::BlobExecutable => EntryMode::Executable,
                EntryKind::Link => EntryMode::Link,
                EntryKind::Commit => EntryMode::Gitlink,
            };
            let id = entry.id;
            leaves.push(Leaf { path, mode, id });
        }
    }

    leaves.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Some(leaves)
}

/// Returns the commit of a folder that is a repository of its own, if it has one.
fn link_of(folder: &CachedFolder<'_>) -> Option<ObjectId> {
    (folder.marks & mark::EMBEDDED != 0 && !folder.tree.is_null()).then_some(folder.tree)
}
