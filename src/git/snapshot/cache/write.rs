//! Encodes the private index into one buffer of the final size.

use std::io::Write as _;
use std::path::Path;

use super::{
    Basis, Cache, CachedFolder, CachedName, ENTRY, FOLDER, FreshName, HEADER, KINDS, MAGIC, TIMES,
    Times,
};
use crate::git::snapshot::bytes::{checksum, put, put_stat, put_time, u32_at};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::git) struct Sizes {
    pub(in crate::git) folders: usize,
    pub(in crate::git) entries: usize,
    pub(in crate::git) names: usize,
}

/// A cache under construction. The directories must be added in order of their paths, each followed
/// by its entries.
///
/// A cache can be large, so each record is written to its final position instead of being assembled
/// from parts.
pub(in crate::git) struct Writer {
    bytes: Vec<u8>,
    sizes: Sizes,
    done: Sizes,
    hash: usize,
}

impl Writer {
    /// Returns an empty cache of this size, with ids of `hash` bytes.
    pub(in crate::git) fn new(sizes: Sizes, hash: usize) -> Writer {
        let length =
            HEADER + sizes.folders * (FOLDER + hash) + sizes.entries * (ENTRY + hash) + sizes.names;
        Writer {
            bytes: vec![0; length],
            sizes,
            done: Sizes::default(),
            hash,
        }
    }

    fn folder_at(&self) -> usize {
        HEADER + self.done.folders * (FOLDER + self.hash)
    }

    fn entry_at(&self) -> usize {
        let folders = self.sizes.folders * (FOLDER + self.hash);
        HEADER + folders + self.done.entries * (ENTRY + self.hash)
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn name(&mut self, name: &[u8]) {
        let entries = self.sizes.entries * (ENTRY + self.hash);
        let at = HEADER + self.sizes.folders * (FOLDER + self.hash) + entries + self.done.names;
        self.write(at, name);
        self.done.names += name.len();
    }

    /// Adds a directory. `add` adds its entries.
    pub(in crate::git) fn folder(
        &mut self,
        folder: &CachedFolder<'_>,
        add: impl FnOnce(&mut Writer),
    ) {
        let first = self.done.entries;
        add(self);

        let mut record = Vec::with_capacity(FOLDER + self.hash);
        let numbers = [
            self.done.names as u32,
            folder.path.len() as u32,
            folder.parent,
            first as u32,
            (self.done.entries - first) as u32,
            folder.marks,
        ];
        numbers.iter().for_each(|&n| put(&mut record, n));
        let mut record = with_times(record, &folder.times);
        record.extend_from_slice(folder.tree.as_slice());

        self.name(folder.path);
        self.write(self.folder_at(), &record);
        self.done.folders += 1;
    }

    /// Copies a directory and its entries from an earlier cache, except for the `fresh` entries and
    /// the flags, times and tree of `now`. If nothing changed, a save costs little more than this.
    pub(in crate::git) fn kept(
        &mut self,
        cache: &Cache,
        number: usize,
        now: &CachedFolder<'_>,
        fresh: &[FreshName],
    ) {
        let raw = cache.raw(number);
        let names = self.done.names as u32;
        let moved = |name: u32| name - raw.names_at + names;

        let (at, length) = (self.entry_at(), ENTRY + self.hash);
        self.write(at, raw.entries);
        for entry in self.bytes[at..at + raw.entries.len()].chunks_exact_mut(length) {
            let name = moved(u32_at(entry, 0));
            entry[..4].copy_from_slice(&name.to_le_bytes());
        }
        for (place, entry) in fresh {
            let at = at + place * length;
            let name = u32_at(&self.bytes, at);
            self.write(at, &self.record(name, &entry.borrowed()));
        }

        let at = self.folder_at();
        self.write(at, raw.record);
        let first = self.done.entries as u32;
        let (path, times) = (moved(u32_at(raw.record, 0)), Vec::with_capacity(TIMES));
        for (field, number) in [(0, path), (8, now.parent), (12, first), (20, now.marks)] {
            self.write(at + field, &number.to_le_bytes());
        }
        self.write(at + FOLDER - TIMES, &with_times(times, &now.times));
        self.write(at + FOLDER, now.tree.as_slice());

        self.name(raw.names);
        self.done.folders += 1;
        self.done.entries += raw.entries.len() / length;
    }

    pub(in crate::git) fn entry(&mut self, entry: &CachedName<&[u8]>) {
        let record = self.record(self.done.names as u32, entry);
        self.name(entry.name);
        self.write(self.entry_at(), &record);
        self.done.entries += 1;
    }

    fn record(&self, name: u32, entry: &CachedName<&[u8]>) -> Vec<u8> {
        let kind = KINDS.iter().position(|&kind| kind == entry.kind);
        let mut record = Vec::with_capacity(ENTRY + self.hash);
        put(&mut record, name);
        record.extend_from_slice(&(entry.name.len() as u16).to_le_bytes());
        record.push(kind.unwrap_or_default() as u8);
        record.push(entry.standing as u8);
        put_stat(&mut record, &entry.stat);
        put(&mut record, entry.basis);
        record.extend_from_slice(entry.id.as_slice());
        record
    }

    /// Adds the header. `None` if the contents don't have the announced sizes.
    pub(in crate::git) fn finish(mut self, basis: &Basis) -> Option<Cache> {
        let mut head = Vec::with_capacity(HEADER);
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&[0; 8]);
        head.extend_from_slice(&basis.settings.to_le_bytes());
        put_stat(&mut head, &basis.index);
        put_time(&mut head, basis.stamp.0);

        let Sizes {
            folders,
            entries,
            names,
        } = self.done;
        [self.hash, folders, entries, names]
            .iter()
            .for_each(|&n| put(&mut head, n as u32));
        head.extend_from_slice(basis.root.as_slice());

        head.resize(116, 0);
        head.extend_from_slice(&basis.choice.to_le_bytes());
        head.extend_from_slice(&basis.tracking.to_le_bytes());
        head.extend_from_slice(&basis.force.to_le_bytes());
        self.write(0, &head);

        let sum = checksum(&self.bytes[16..]);
        self.write(8, &sum.to_le_bytes());
        (self.done == self.sizes).then(|| Cache::read(self.bytes, self.hash))?
    }
}

fn with_times(mut record: Vec<u8>, times: &Times) -> Vec<u8> {
    put_time(&mut record, times.mtime);
    put_time(&mut record, times.ctime);
    put(&mut record, times.ino);
    record
}

impl Cache {
    pub(in crate::git) fn save(
        &self,
        mut file: tempfile::NamedTempFile,
        path: &Path,
    ) -> std::io::Result<()> {
        file.write_all(&self.bytes)?;
        file.persist(path)?;
        Ok(())
    }
}
