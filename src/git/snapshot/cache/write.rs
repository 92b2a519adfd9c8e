//! Encodes the private index into one buffer of the final size.

use std::io::Write as _;
use std::path::Path;

use super::{
    Basis, Cache, CachedDir, CachedName, DIR, ENTRY, FreshName, HEADER, KINDS, MAGIC, TIMES, Times,
};
use crate::git::snapshot::bytes::{checksum, put_stat, put_time, put_u32, u32_at};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::git) struct CacheSizes {
    pub(in crate::git) dirs: usize,
    pub(in crate::git) entries: usize,
    pub(in crate::git) names: usize,
}

/// A cache under construction. The directories must be added in order of their paths, each followed
/// by its entries.
///
/// A cache can be large, so each record is written to its final position instead of being assembled
/// from parts.
pub(in crate::git) struct CacheWriter {
    bytes: Vec<u8>,
    sizes: CacheSizes,
    written: CacheSizes,
    hash: usize,
}

impl CacheWriter {
    /// Returns an empty cache of this size, with ids of `hash` bytes.
    pub(in crate::git) fn new(sizes: CacheSizes, hash: usize) -> CacheWriter {
        let length =
            HEADER + sizes.dirs * (DIR + hash) + sizes.entries * (ENTRY + hash) + sizes.names;
        CacheWriter {
            bytes: vec![0; length],
            sizes,
            written: CacheSizes::default(),
            hash,
        }
    }

    fn dir_at(&self) -> usize {
        HEADER + self.written.dirs * (DIR + self.hash)
    }

    fn entry_at(&self) -> usize {
        let dirs = self.sizes.dirs * (DIR + self.hash);
        HEADER + dirs + self.written.entries * (ENTRY + self.hash)
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn name(&mut self, name: &[u8]) {
        let entries = self.sizes.entries * (ENTRY + self.hash);
        let at = HEADER + self.sizes.dirs * (DIR + self.hash) + entries + self.written.names;
        self.write(at, name);
        self.written.names += name.len();
    }

    /// Adds a directory. `add` adds its entries.
    pub(in crate::git) fn dir(&mut self, dir: &CachedDir<'_>, add: impl FnOnce(&mut CacheWriter)) {
        let first = self.written.entries;
        add(self);

        let mut record = Vec::with_capacity(DIR + self.hash);
        let numbers = [
            self.written.names as u32,
            dir.path.len() as u32,
            dir.parent,
            first as u32,
            (self.written.entries - first) as u32,
            dir.marks,
        ];
        numbers.iter().for_each(|&n| put_u32(&mut record, n));
        let mut record = encode_times(record, &dir.times);
        record.extend_from_slice(dir.tree.as_slice());

        self.name(dir.path);
        self.write(self.dir_at(), &record);
        self.written.dirs += 1;
    }

    /// Copies a directory and its entries from an earlier cache, except for the `fresh` entries and
    /// the flags, times and tree of `now`. If nothing changed, a save costs little more than this.
    pub(in crate::git) fn copy_cached(
        &mut self,
        cache: &Cache,
        number: usize,
        now: &CachedDir<'_>,
        fresh: &[FreshName],
    ) {
        let raw = cache.raw(number);
        let names = self.written.names as u32;
        let moved = |name: u32| name - raw.names_at + names;

        let (at, length) = (self.entry_at(), ENTRY + self.hash);
        self.write(at, raw.entries);
        for entry in self.bytes[at..at + raw.entries.len()].chunks_exact_mut(length) {
            let name = moved(u32_at(entry, 0));
            entry[..4].copy_from_slice(&name.to_le_bytes());
        }
        for (position, entry) in fresh {
            let at = at + position * length;
            let name = u32_at(&self.bytes, at);
            self.write(at, &self.record(name, &entry.borrowed()));
        }

        let at = self.dir_at();
        self.write(at, raw.record);
        let first = self.written.entries as u32;
        let (path, times) = (moved(u32_at(raw.record, 0)), Vec::with_capacity(TIMES));
        for (field, number) in [(0, path), (8, now.parent), (12, first), (20, now.marks)] {
            self.write(at + field, &number.to_le_bytes());
        }
        self.write(at + DIR - TIMES, &encode_times(times, &now.times));
        self.write(at + DIR, now.tree.as_slice());

        self.name(raw.names);
        self.written.dirs += 1;
        self.written.entries += raw.entries.len() / length;
    }

    pub(in crate::git) fn entry(&mut self, entry: &CachedName<&[u8]>) {
        let record = self.record(self.written.names as u32, entry);
        self.name(entry.name);
        self.write(self.entry_at(), &record);
        self.written.entries += 1;
    }

    fn record(&self, name: u32, entry: &CachedName<&[u8]>) -> Vec<u8> {
        let kind = KINDS.iter().position(|&kind| kind == entry.kind);
        let mut record = Vec::with_capacity(ENTRY + self.hash);
        put_u32(&mut record, name);
        record.extend_from_slice(&(entry.name.len() as u16).to_le_bytes());
        record.push(kind.unwrap_or_default() as u8);
        record.push(entry.origin as u8);
        put_stat(&mut record, &entry.stat);
        put_u32(&mut record, entry.basis);
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

        let CacheSizes {
            dirs,
            entries,
            names,
        } = self.written;
        [self.hash, dirs, entries, names]
            .iter()
            .for_each(|&n| put_u32(&mut head, n as u32));
        head.extend_from_slice(basis.root.as_slice());

        head.resize(116, 0);
        head.extend_from_slice(&basis.choice.to_le_bytes());
        head.extend_from_slice(&basis.tracking.to_le_bytes());
        head.extend_from_slice(&basis.force.to_le_bytes());
        self.write(0, &head);

        let sum = checksum(&self.bytes[16..]);
        self.write(8, &sum.to_le_bytes());
        (self.written == self.sizes).then(|| Cache::read(self.bytes, self.hash))?
    }
}

fn encode_times(mut record: Vec<u8>, times: &Times) -> Vec<u8> {
    put_time(&mut record, times.mtime);
    put_time(&mut record, times.ctime);
    put_u32(&mut record, times.ino);
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
