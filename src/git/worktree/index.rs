//! The index of a session's worktree, and a note of the tree that it was written for.
//!
//! The note is valid only for exactly the index file that it was written with. It means that the
//! worktree has all files of the tree, and lets a switch compare two trees instead of every file.
//! Commands can write neither file. If a power cut damaged one, every file is compared.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::bstr::ByteSlice as _;
use gix::index::entry::{Flags, Mode as IndexMode, Stat};
use gix::index::{Entry, File, State};

use crate::git::During;
use crate::git::diff::{self, TreeChange};
use crate::git::ignore::user_index;
use crate::git::object::{EntryMode, TreeId};
use crate::git::repository::Repository;
use crate::git::snapshot::known_files::{KnownFile, each_known_file};
use crate::git::sparse::Hidden;
use crate::host::file::{read_regular_text, write_cache};

/// File with the note, next to the index.
pub(super) const TREE_NOTE: &str = "tree";

/// Approximate size of an index without entries.
const BASE_SIZE: usize = 1 << 10;

/// Maximum size of an entry without its path.
const MAX_ENTRY_SIZE: usize = 96;

/// Upper bound for the note, which is one line.
const MAX_NOTE: u64 = 4 << 10;

pub(super) struct KnownIndex {
    /// Empty if the index is missing or unreadable.
    pub(super) index: State,
    /// Changes from the noted tree to the target. `None` without a valid note.
    pub(super) changes: Option<Vec<TreeChange>>,
}

pub(super) fn load(repository: &Repository, tree: TreeId) -> anyhow::Result<KnownIndex> {
    let Ok(index) = read(repository) else {
        // Otherwise a switch that writes no index would leave the broken one behind.
        let _ = std::fs::remove_file(repository.gix.index_path());
        return Ok(KnownIndex {
            index: State::new(repository.gix.object_hash()),
            changes: None,
        });
    };

    let changes = noted(repository)
        .map(|old| diff::changes(repository, old, tree))
        .transpose()?;
    Ok(KnownIndex { index, changes })
}

pub(super) fn read(repository: &Repository) -> anyhow::Result<State> {
    let options = gix::index::decode::Options::default();
    let index = File::at(
        repository.gix.index_path(),
        repository.gix.object_hash(),
        true,
        options,
    );
    let (state, _) = index
        .during("reading the index of the worktree")?
        .into_parts();
    anyhow::ensure!(
        !state.is_sparse(),
        "the index of the worktree has whole folders in it"
    );

    Ok(state)
}

/// Returns the index of a tree, derived from `old` if the changes are known. The stats of changed
/// files are reset.
pub(super) fn for_tree(
    repository: &Repository,
    old: &State,
    tree: TreeId,
    changes: Option<&[TreeChange]>,
) -> anyhow::Result<State> {
    let Some(changes) = changes else {
        let index = repository
            .gix
            .index_from_tree(&tree.0)
            .during(format_args!("reading tree {tree}"))?;
        return Ok(index.into_parts().0);
    };

    let mut index = old.clone();
    if changes.is_empty() {
        return Ok(index);
    }

    let changed_paths: BTreeSet<_> = changes.iter().map(|change| change.path.as_bstr()).collect();
    index.remove_entries(|_, path, _| changed_paths.contains(path));
    for change in changes {
        let Some(entry) = &change.new else { continue };
        let Some(mode) = mode(entry.mode) else {
            continue;
        };
        index.dangerously_push_entry(
            Stat::default(),
            entry.id,
            Flags::empty(),
            mode,
            change.path.as_bstr(),
        );
    }

    index.sort_entries();
    Ok(index)
}

/// Converts a mode; `None` for a tree.
pub(super) fn mode(mode: EntryMode) -> Option<IndexMode> {
    (mode != EntryMode::Tree).then(|| mode.into())
}

/// Writes the index of a complete worktree, and the note of its tree.
pub(super) fn write(repository: &Repository, index: State, tree: TreeId) -> anyhow::Result<()> {
    write_part(repository, index)?;
    // After the index, because the note identifies that very file.
    let Some(identity) = identity(repository) else {
        return Ok(());
    };
    let text = format!("{tree} {identity}\n");
    Ok(write_cache(&note(repository), text.as_bytes())?)
}

/// Writes the index of an incomplete worktree. The note must have been removed before.
pub(super) fn write_part(repository: &Repository, mut index: State) -> anyhow::Result<()> {
    // The cached trees do not match the changed entries.
    index.remove_tree();
    let length = BASE_SIZE + index.entries().len() * MAX_ENTRY_SIZE + index.path_backing().len();
    let mut bytes = Vec::with_capacity(length);
    let file = File::from_state(index, repository.gix.index_path());

    // git accepts a null checksum: always since 2.40, before that except in `fsck`.
    let options = gix::index::write::Options {
        skip_hash: true,
        ..Default::default()
    };
    file.write_to(&mut bytes, options)
        .during("writing the index of the worktree")?;
    Ok(write_cache(&repository.gix.index_path(), &bytes)?)
}

pub(super) fn forget_tree(repository: &Repository) {
    // If removal fails, the note does not match the index that is written next.
    let _ = std::fs::remove_file(note(repository));
}

/// Returns the noted tree if the index file is the one that we wrote.
fn noted(repository: &Repository) -> Option<TreeId> {
    let text = read_regular_text(&note(repository), MAX_NOTE).ok()?;
    let (tree, recorded) = text.trim_end().split_once(' ')?;
    (identity(repository)? == recorded).then(|| tree.parse().ok())?
}

/// Returns the identity of the index file: inode, size and times.
fn identity(repository: &Repository) -> Option<String> {
    let of = std::fs::symlink_metadata(repository.gix.index_path()).ok()?;
    Some(format!(
        "{} {} {}.{} {}.{}",
        of.ino(),
        of.len(),
        of.mtime(),
        of.mtime_nsec(),
        of.ctime(),
        of.ctime_nsec()
    ))
}

fn note(repository: &Repository) -> PathBuf {
    repository.gix.index_path().with_file_name(TREE_NOTE)
}

pub(super) const INDEX_MAGIC: &[u8] = b"DIRC";

/// Offset of the version.
pub(super) const VERSION_OFFSET: usize = 4;

/// Offset of the number of entries.
pub(super) const COUNT_OFFSET: usize = 8;

/// Offset of the first entry.
pub(super) const HEADER_LEN: usize = 12;

/// Bytes of an entry before its id.
pub(super) const STAT_LEN: usize = 40;

/// Length of the flags after the id.
pub(super) const FLAGS_LEN: usize = 2;

/// Flag: two more bytes of flags follow.
pub(super) const EXTENDED_FLAG: u16 = 0x4000;

/// Entries are padded with at least one NUL to a multiple of this, except in version 4.
pub(super) const ENTRY_ALIGNMENT: usize = 8;

/// Sets `skip-worktree` as in the user's index. Returns whether any entry changed.
pub(super) fn hide_sparse(user: &Repository, index: &mut State) -> anyhow::Result<bool> {
    let hidden = Hidden::of(user)?;
    let mut changed = false;
    for (entry, path) in index.entries_mut_with_paths() {
        let hide = hidden.has(path);
        if hide != entry.flags.contains(Flags::SKIP_WORKTREE) {
            entry
                .flags
                .set(Flags::SKIP_WORKTREE | Flags::EXTENDED, hide);
            changed = true;
        }
    }

    Ok(changed)
}

/// Returns the directories that exist in the user's sparse checkout.
pub(super) fn retain_visible_dirs(
    user: &Repository,
    mut dirs: Vec<Vec<u8>>,
) -> anyhow::Result<Vec<Vec<u8>>> {
    let hidden = Hidden::of(user)?;
    if hidden.is_empty() {
        return Ok(dirs);
    }

    let index = &user_index(user)?.state;
    dirs.retain(|dir| {
        let dir = [dir, b"/".as_slice()].concat();
        let entries = index.prefixed_entries(dir.as_bstr());
        let is_hidden = |entry: &Entry| entry.flags.contains(Flags::SKIP_WORKTREE);
        let all_hidden = entries.is_some_and(|entries| entries.iter().all(is_hidden));
        hidden.is_there(&dir) || !all_hidden && !hidden.has(&dir)
    });
    Ok(dirs)
}

// The index with which commands start in a layer: the user's files with their known stats.
//
// It is encoded directly from the private index of the last snapshot, in version 2, or in version
// 3 for a sparse checkout (`gitformat-index`).

/// Length in the flags of an entry with a longer name.
const LONG_NAME_LEN: usize = 0xfff;

/// Extended flag of a file that a sparse checkout leaves out.
const SKIP_WORKTREE: u16 = 0x4000;

const ENTRY_ESTIMATE: usize = 128;

#[derive(Debug)]
pub struct LayerIndex {
    pub(super) bytes: Vec<u8>,
    pub(super) repositories: Vec<Vec<u8>>,
    hash: gix::hash::Kind,
}

impl LayerIndex {
    /// Encodes the files of `start`. `private` is the private index of a snapshot with `tree`.
    pub(super) fn of(
        user: &Repository,
        tree: TreeId,
        start: TreeId,
        private: &Path,
    ) -> anyhow::Result<LayerIndex> {
        let hidden = Hidden::of(user)?;
        let mut index = LayerIndex::new(user, &hidden);
        let add = |file: KnownFile<'_>| index.add(&file, hidden.has(file.path));
        let known = match start == tree {
            true => each_known_file(user, private, tree, add),
            false => None,
        };
        if known.is_none() {
            index = LayerIndex::new(user, &hidden);
            let files = user.gix.index_from_tree(&start.0);
            let files = files.during("reading the files of a turn")?;
            for entry in files.entries() {
                let path = entry.path(&files).as_bytes();
                let (mode, id, stat) = (entry.mode, entry.id, Stat::default());
                let file = KnownFile {
                    path,
                    mode,
                    id,
                    stat,
                };
                index.add(&file, hidden.has(path));
            }
        }

        // git accepts a null checksum: always since 2.40, before that except in `fsck`.
        let none = ObjectId::null(index.hash);
        index.bytes.extend_from_slice(none.as_slice());
        Ok(index)
    }

    fn new(user: &Repository, hidden: &Hidden) -> LayerIndex {
        let version: u32 = if hidden.is_empty() { 2 } else { 3 };
        let metadata = user.gix.index_path().metadata();
        let length = metadata.map_or(0, |metadata| metadata.len() as usize);
        let mut bytes = Vec::with_capacity(length + ENTRY_ESTIMATE);
        bytes.extend_from_slice(INDEX_MAGIC);
        bytes.extend_from_slice(&version.to_be_bytes());
        bytes.extend_from_slice(&0_u32.to_be_bytes());
        LayerIndex {
            bytes,
            repositories: Vec::new(),
            hash: user.gix.object_hash(),
        }
    }

    /// Appends an entry. Entries must be added in order.
    fn add(&mut self, file: &KnownFile<'_>, is_hidden: bool) {
        if file.mode == IndexMode::COMMIT {
            self.repositories.push(file.path.to_vec());
        }

        let count = self.bytes[COUNT_OFFSET..COUNT_OFFSET + 4]
            .try_into()
            .map(u32::from_be_bytes);
        let count = count.unwrap_or_default() + 1;
        self.bytes[COUNT_OFFSET..COUNT_OFFSET + 4].copy_from_slice(&count.to_be_bytes());

        let (start, stat) = (self.bytes.len(), &file.stat);
        let numbers = [
            stat.ctime.secs,
            stat.ctime.nsecs,
            stat.mtime.secs,
            stat.mtime.nsecs,
            stat.dev,
            stat.ino,
            file.mode.bits(),
            stat.uid,
            stat.gid,
            stat.size,
        ];
        let mut fixed = [0; STAT_LEN];
        for (field, number) in fixed.chunks_exact_mut(4).zip(numbers) {
            field.copy_from_slice(&number.to_be_bytes());
        }
        self.bytes.extend_from_slice(&fixed);
        self.bytes.extend_from_slice(file.id.as_slice());

        let flags = file.path.len().min(LONG_NAME_LEN) as u16;
        let more = if is_hidden { EXTENDED_FLAG } else { 0 };
        self.bytes.extend_from_slice(&(flags | more).to_be_bytes());
        if is_hidden {
            self.bytes.extend_from_slice(&SKIP_WORKTREE.to_be_bytes());
        }
        self.bytes.extend_from_slice(file.path);
        let length = (self.bytes.len() - start) / ENTRY_ALIGNMENT + 1;
        self.bytes.resize(start + length * ENTRY_ALIGNMENT, 0);
    }

    pub(super) fn state(&self) -> anyhow::Result<State> {
        let options = gix::index::decode::Options::default();
        let time = State::new(self.hash).timestamp();
        let read = State::from_bytes(&self.bytes, time, self.hash, options);
        Ok(read.during("reading the index of a layer")?.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(index: &LayerIndex) -> Vec<(String, IndexMode, u32, bool)> {
        let state = index.state().unwrap();
        let entries = state.entries().iter();
        let entry = |entry: &gix::index::Entry| {
            let path = String::from_utf8_lossy(entry.path(&state)).into_owned();
            let is_hidden = entry.flags.contains(Flags::SKIP_WORKTREE);
            (path, entry.mode, entry.stat.size, is_hidden)
        };
        entries.map(entry).collect()
    }

    #[test]
    fn an_index_is_read_as_it_was_written_whatever_the_length_of_a_name() {
        let names: Vec<String> = (1..20).chain([300, 4094]).map(|n| "x".repeat(n)).collect();
        for version in [2_u32, 3] {
            let mut bytes = INDEX_MAGIC.to_vec();
            bytes.extend_from_slice(&version.to_be_bytes());
            bytes.extend_from_slice(&[0; 4]);
            let (repositories, hash) = (Vec::new(), gix::hash::Kind::Sha1);
            let mut index = LayerIndex {
                bytes,
                repositories,
                hash,
            };
            let mut expected = Vec::new();
            for (n, name) in names.iter().enumerate() {
                let mode = [
                    IndexMode::FILE,
                    IndexMode::SYMLINK,
                    IndexMode::COMMIT,
                    IndexMode::FILE_EXECUTABLE,
                ][n % 4];
                let stat = Stat {
                    size: n as u32,
                    ..Stat::default()
                };
                let (path, id) = (name.as_bytes(), ObjectId::null(hash));
                let is_hidden = version == 3 && n % 3 == 0;
                index.add(
                    &KnownFile {
                        path,
                        mode,
                        id,
                        stat,
                    },
                    is_hidden,
                );
                expected.push((name.clone(), mode, n as u32, is_hidden));
            }
            index
                .bytes
                .extend_from_slice(ObjectId::null(hash).as_slice());
            assert_eq!(read(&index), expected);
            assert_eq!(index.repositories.len(), names.len() / 4);
        }
    }
}
