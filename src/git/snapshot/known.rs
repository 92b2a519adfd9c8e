//! What the last snapshot saw of the user's files, as an index of git's.

use std::path::Path;

use gix::bstr::ByteSlice as _;
use gix::index::State;
use gix::index::entry::{Flags, Mode, Stat};
use gix::objs::tree::EntryKind;

use super::cache::{Cache, CacheOrigin};
use super::folder::join;
use crate::git::object::TreeId;
use crate::git::repository::Repository;

/// Returns the files of a tree with what was seen of them when a snapshot made it; nothing where
/// the private index at `index` is that of another tree.
pub fn known_files(repository: &Repository, index: &Path, tree: TreeId) -> Option<State> {
    let hash = repository.gix.object_hash();
    let cache = Cache::load(index, hash).filter(|cache| cache.basis.root == tree.0)?;
    let mut state = State::new(hash);
    for number in 0..cache.folder_count() {
        let folder = cache.folder(number);
        for at in folder.entries.clone() {
            let entry = cache.entry(at);
            let mode = match (entry.standing, entry.kind) {
                (CacheOrigin::Watched, _) | (_, EntryKind::Tree) => continue,
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
