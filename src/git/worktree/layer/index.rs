//! The index with which commands start in a layer: the user's files with their known stats.
//!
//! It is encoded directly from the private index of the last snapshot, in version 2, or in version
//! 3 for a sparse checkout (`gitformat-index`).

use gix::ObjectId;
use gix::bstr::ByteSlice as _;
use gix::index::State;
use gix::index::entry::{Mode, Stat};

use super::LowerFiles;
use crate::git::During;
use crate::git::repository::Repository;
use crate::git::snapshot::known_files::{KnownFile, each_known_file};
use crate::git::sparse::Hidden;
use crate::git::worktree::index_form::{
    COUNT_OFFSET, ENTRY_ALIGNMENT, EXTENDED_FLAG, INDEX_MAGIC, STAT_LEN,
};

/// Length in the flags of an entry with a longer name.
const LONG_NAME_LEN: usize = 0xfff;
/// Extended flag of a file that a sparse checkout leaves out.
const SKIP_WORKTREE: u16 = 0x4000;
const ENTRY_ESTIMATE: usize = 128;

/// The index with which commands start.
#[derive(Debug)]
pub struct LayerIndex {
    pub(in crate::git::worktree) bytes: Vec<u8>,
    pub(in crate::git::worktree) repositories: Vec<Vec<u8>>,
    hash: gix::hash::Kind,
}

impl LayerIndex {
    pub(super) fn of(user: &Repository, lower: &LowerFiles<'_>) -> anyhow::Result<LayerIndex> {
        let hidden = Hidden::of(user)?;
        let mut index = LayerIndex::new(user, &hidden);
        let add = |file: KnownFile<'_>| index.add(&file, hidden.has(file.path));
        if each_known_file(user, lower.index, lower.tree, add).is_none() {
            index = LayerIndex::new(user, &hidden);
            let files = user.gix.index_from_tree(&lower.tree.0);
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
        if file.mode == Mode::COMMIT {
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

    pub(in crate::git::worktree) fn state(&self) -> anyhow::Result<State> {
        let options = gix::index::decode::Options::default();
        let time = State::new(self.hash).timestamp();
        let read = State::from_bytes(&self.bytes, time, self.hash, options);
        Ok(read.during("reading the index of a layer")?.0)
    }
}

#[cfg(test)]
mod tests {
    use gix::index::entry::Flags;

    use super::*;

    fn read(index: &LayerIndex) -> Vec<(String, Mode, u32, bool)> {
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
                    Mode::FILE,
                    Mode::SYMLINK,
                    Mode::COMMIT,
                    Mode::FILE_EXECUTABLE,
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
