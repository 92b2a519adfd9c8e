//! The private index: files and directories as the last snapshot saw them, so that the next one
//! reads only what changed.
//!
//! One file of fixed-size records that are decoded on access, so loading costs one read and one
//! checksum. A damaged or outdated file is treated as missing. It is replaced by rename, so several
//! processes can use it at the same time.

/// Flags of a directory.
pub(super) mod mark {
    /// Something in it was left out, so its names must be read each time.
    pub(in crate::git) const RELIST: u32 = 1;
    /// Not on disk. It only contains entries of the user's index.
    pub(in crate::git) const VIRTUAL: u32 = 2;
    /// A nested repository.
    pub(in crate::git) const EMBEDDED: u32 = 4;
    /// Contains `.gitignore` or `.gitattributes`.
    pub(in crate::git) const RULES: u32 = 8;
    /// Contains a name that is possibly included only because it was forced, although it is
    /// ignored.
    pub(in crate::git) const FORCED: u32 = 16;
}

use std::cmp::Ordering;
use std::io::{Read as _, Write as _};
use std::ops::Range;
use std::path::Path;

use gix::ObjectId;
use gix::index::entry::Stat;
use gix::index::entry::stat::Time;
use gix::objs::tree::EntryKind;

use crate::git::stat::Stamp;
use crate::host::file::open_regular;

/// Larger than an index of ten million files.
const MAX_BYTES: u64 = 4 << 30;

/// First bytes of the file. The number changes with the format.
const MAGIC: &[u8; 8] = b"TeDDyix5";

const HEADER: usize = 144;

/// Length of a directory's record without its tree id.
const DIR: usize = 44;

/// Length of an entry's record without its id.
const ENTRY: usize = 48;

/// Kinds of entries, by their number in the file.
const KINDS: [EntryKind; 5] = [
    EntryKind::Blob,
    EntryKind::BlobExecutable,
    EntryKind::Link,
    EntryKind::Commit,
    EntryKind::Tree,
];

/// Times of a directory. They change with its names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) mtime: Time,
    pub(super) ctime: Time,
    /// Low bits of the inode number.
    pub(super) ino: u32,
}

impl From<&Stat> for Times {
    fn from(stat: &Stat) -> Times {
        Times {
            mtime: stat.mtime,
            ctime: stat.ctime,
            ino: stat.ino,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct CachedDir<'a> {
    pub(super) path: &'a [u8],
    /// Number of the parent's record. The root has its own number.
    pub(super) parent: u32,
    pub(super) entries: Range<usize>,
    pub(super) marks: u32,
    pub(super) times: Times,
    /// Null if the directory contains nothing.
    pub(super) tree: ObjectId,
}

/// State that the whole cache depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Basis {
    /// Hash of the settings that decide which object a file becomes.
    pub(super) settings: u64,
    /// Hash of the other settings that decide which names are included.
    pub(super) choice: u64,
    /// Hash of the forced paths.
    pub(super) force: u64,
    /// Stat of the user's index.
    pub(super) index: Stat,
    /// Hash of the tracked paths. git also rewrites the index without changing these.
    pub(super) tracking: u64,
    /// Time before the walk.
    pub(super) stamp: Stamp,
    pub(super) root: ObjectId,
}

/// Reads a file if its header is valid and fits its length. Any other file is not read any further,
/// however large it is.
fn read_file(path: &Path) -> Option<Vec<u8>> {
    let mut file = open_regular(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut header = [0; HEADER];
    file.read_exact(&mut header).ok()?;
    let expected = length_of(&header, u32_at(&header, 68) as usize);
    if &header[..8] != MAGIC || length != expected || length > MAX_BYTES {
        return None;
    }

    let mut bytes = Vec::with_capacity(usize::try_from(length).ok()?);
    bytes.extend_from_slice(&header);
    let remaining = length - header.len() as u64;
    file.take(remaining).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns the length of the file according to its header, with ids of `hash` bytes.
fn length_of(header: &[u8], hash: usize) -> u64 {
    // For the offsets, see `CacheWriter::finish`.
    let [dirs, entries, names] = [72, 76, 80].map(|at| u64::from(u32_at(header, at)));
    let [dir, entry] = [DIR + hash, ENTRY + hash].map(|length| length as u64);
    let length = dirs
        .saturating_mul(dir)
        .saturating_add(entries.saturating_mul(entry));
    length.saturating_add(HEADER as u64 + names)
}

pub(super) struct Cache {
    bytes: Vec<u8>,
    pub(super) basis: Basis,
    dirs: usize,
    entries: usize,
    hash: usize,
    /// The children of directory `n` are `children[starts[n]..starts[n + 1]]`.
    starts: Vec<u32>,
    /// Numbers of directories, grouped by parent.
    children: Vec<u32>,
}

impl Cache {
    /// Loads a cache; `None` if it is missing, damaged, or uses another hash function.
    pub(super) fn load(path: &Path, hash: gix::hash::Kind) -> Option<Cache> {
        let bytes = read_file(path)?;
        let is_whole = u64_at(&bytes, 8) == checksum(&bytes[16..]);
        is_whole.then(|| Cache::read(bytes, hash.len_in_bytes()))?
    }

    fn read(bytes: Vec<u8>, hash: usize) -> Option<Cache> {
        let (dirs, entries) = (u32_at(&bytes, 72) as usize, u32_at(&bytes, 76) as usize);
        let expected = length_of(&bytes, hash);
        if u32_at(&bytes, 68) as usize != hash || bytes.len() as u64 != expected || dirs == 0 {
            return None;
        }

        let basis = Basis {
            settings: u64_at(&bytes, 16),
            choice: u64_at(&bytes, 116),
            force: u64_at(&bytes, 132),
            index: stat_at(&bytes, 24),
            tracking: u64_at(&bytes, 124),
            stamp: Stamp(time_at(&bytes, 60)),
            root: ObjectId::from_bytes_or_panic(&bytes[84..84 + hash]),
        };
        let mut cache = Cache {
            bytes,
            basis,
            dirs,
            entries,
            hash,
            starts: Vec::new(),
            children: Vec::new(),
        };

        cache.group();
        Some(cache)
    }

    fn group(&mut self) {
        let parents: Vec<u32> = (0..self.dirs)
            .map(|n| u32_at(&self.bytes, self.dir_at(n) + 8))
            .collect();
        let mut starts = vec![0u32; self.dirs + 1];
        parents
            .iter()
            .skip(1)
            .for_each(|&parent| starts[parent as usize + 1] += 1);
        (1..starts.len()).for_each(|n| starts[n] += starts[n - 1]);
        let mut next = starts.clone();

        self.children = vec![0; self.dirs.saturating_sub(1)];
        for (n, &parent) in parents.iter().enumerate().skip(1) {
            self.children[next[parent as usize] as usize] = n as u32;
            next[parent as usize] += 1;
        }

        self.starts = starts;
    }

    #[inline(always)]
    fn dir_at(&self, n: usize) -> usize {
        HEADER + n * (DIR + self.hash)
    }

    #[inline(always)]
    fn name(&self, offset: u32, len: usize) -> &[u8] {
        let start = HEADER
            + self.dirs * (DIR + self.hash)
            + self.entries * (ENTRY + self.hash)
            + offset as usize;
        &self.bytes[start..start + len]
    }

    pub(super) fn dir(&self, n: usize) -> CachedDir<'_> {
        let (at, b) = (self.dir_at(n), &self.bytes);
        let first = u32_at(b, at + 12) as usize;
        CachedDir {
            path: self.name(u32_at(b, at), u32_at(b, at + 4) as usize),
            parent: u32_at(b, at + 8),
            entries: first..first + u32_at(b, at + 16) as usize,
            marks: u32_at(b, at + 20),
            times: Times {
                mtime: time_at(b, at + 24),
                ctime: time_at(b, at + 32),
                ino: u32_at(b, at + 40),
            },
            tree: ObjectId::from_bytes_or_panic(&b[at + DIR..at + DIR + self.hash]),
        }
    }

    pub(super) fn entry(&self, n: usize) -> CachedName<&[u8]> {
        let (at, b) = (
            self.dir_at(self.dirs) + n * (ENTRY + self.hash),
            &self.bytes,
        );
        CachedName {
            name: self.entry_name(n),
            kind: KINDS[usize::from(b[at + 6]).min(4)],
            origin: [
                CacheOrigin::Scanned,
                CacheOrigin::Inherited,
                CacheOrigin::Watched,
            ][usize::from(b[at + 7]).min(2)],
            stat: stat_at(b, at + 8),
            basis: u32_at(b, at + 44),
            id: ObjectId::from_bytes_or_panic(&b[at + ENTRY..at + ENTRY + self.hash]),
        }
    }

    pub(super) fn find_dir(&self, path: &[u8]) -> Option<usize> {
        bisect(0..self.dirs, |n| self.dir(n).path.cmp(path))
    }

    #[inline(always)]
    fn entry_name(&self, n: usize) -> &[u8] {
        let (at, b) = (
            self.dir_at(self.dirs) + n * (ENTRY + self.hash),
            &self.bytes,
        );
        let len = u16::from_le_bytes([b[at + 4], b[at + 5]]);
        self.name(u32_at(b, at), usize::from(len))
    }

    pub(super) fn find_entry(&self, dir: &CachedDir<'_>, name: &[u8]) -> Option<CachedName<&[u8]>> {
        let at = bisect(dir.entries.clone(), |n| self.entry_name(n).cmp(name));
        at.map(|at| self.entry(at))
    }

    /// Like [`Cache::find_entry`], but faster if names are looked up in order. `next` is the
    /// position after the previous name.
    pub(super) fn find_next(
        &self,
        dir: &CachedDir<'_>,
        name: &[u8],
        next: &mut usize,
    ) -> Option<CachedName<&[u8]>> {
        let mut at = dir.entries.start + *next;
        while at < dir.entries.end && self.entry_name(at) < name {
            at += 1;
        }

        *next = at - dir.entries.start;
        let is_there = at < dir.entries.end && self.entry_name(at) == name;
        is_there.then(|| self.entry(at))
    }

    pub(super) fn dir_count(&self) -> usize {
        self.dirs
    }

    pub(super) fn entry_count(&self) -> usize {
        self.entries
    }

    pub(super) fn children(&self, n: usize) -> &[u32] {
        &self.children[self.starts[n] as usize..self.starts[n + 1] as usize]
    }
}

/// Returns the number whose record is equal, according to `order`, among sorted ones.
fn bisect(numbers: Range<usize>, order: impl Fn(usize) -> Ordering) -> Option<usize> {
    let Range {
        start: mut low,
        end: mut high,
    } = numbers;
    while low < high {
        let middle = low.midpoint(high);
        match order(middle) {
            Ordering::Equal => return Some(middle),
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
        }
    }

    None
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CacheOrigin {
    /// On disk, with this stat.
    Scanned,
    /// From the user's index, not compared with the disk.
    Inherited,
    /// Not in the tree, but changes matter: an ignored `.gitignore`.
    Watched,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CachedName<N = Vec<u8>> {
    pub(super) name: N,
    pub(super) kind: EntryKind,
    /// Null if the object is not written yet or not in the tree.
    pub(super) id: ObjectId,
    /// Stat when the file was read.
    pub(super) stat: Stat,
    /// First bytes of the id in the user's index, or 0: the conversion of line endings depends on
    /// it.
    pub(super) basis: u32,
    pub(super) origin: CacheOrigin,
}

/// A new or changed entry, with its position in the directory.
pub(super) type FreshName = (usize, CachedName);

impl CachedName {
    pub(super) fn borrowed(&self) -> CachedName<&[u8]> {
        self.with_name(&self.name)
    }
}

impl CachedName<&[u8]> {
    pub(super) fn into_owned(self) -> CachedName {
        self.with_name(self.name.to_vec())
    }
}

impl<N> CachedName<N> {
    fn with_name<M>(&self, name: M) -> CachedName<M> {
        CachedName {
            name,
            kind: self.kind,
            id: self.id,
            stat: self.stat,
            basis: self.basis,
            origin: self.origin,
        }
    }
}

/// A cache under construction. The directories must be added in order of their paths.
pub(super) struct CacheWriter {
    dirs: Vec<u8>,
    entries: Vec<u8>,
    names: Vec<u8>,
    hash: usize,
}

impl CacheWriter {
    /// Returns an empty cache with ids of `hash` bytes.
    pub(super) fn new(hash: usize) -> CacheWriter {
        CacheWriter {
            dirs: Vec::new(),
            entries: Vec::new(),
            names: Vec::new(),
            hash,
        }
    }

    fn entry_count(&self) -> usize {
        self.entries.len() / (ENTRY + self.hash)
    }

    /// Adds a directory. `add` adds its entries.
    pub(super) fn dir(&mut self, dir: &CachedDir<'_>, add: impl FnOnce(&mut CacheWriter)) {
        let first = self.entry_count();
        add(self);

        let numbers = [
            self.names.len() as u32,
            dir.path.len() as u32,
            dir.parent,
            first as u32,
            (self.entry_count() - first) as u32,
            dir.marks,
        ];
        numbers.iter().for_each(|&n| put_u32(&mut self.dirs, n));
        put_time(&mut self.dirs, dir.times.mtime);
        put_time(&mut self.dirs, dir.times.ctime);
        put_u32(&mut self.dirs, dir.times.ino);
        self.dirs.extend_from_slice(dir.tree.as_slice());
        self.names.extend_from_slice(dir.path);
    }

    pub(super) fn entry(&mut self, entry: &CachedName<&[u8]>) {
        let kind = KINDS.iter().position(|&kind| kind == entry.kind);
        put_u32(&mut self.entries, self.names.len() as u32);
        let length = entry.name.len() as u16;
        self.entries.extend_from_slice(&length.to_le_bytes());
        self.entries.push(kind.unwrap_or_default() as u8);
        self.entries.push(entry.origin as u8);
        put_stat(&mut self.entries, &entry.stat);
        put_u32(&mut self.entries, entry.basis);
        self.entries.extend_from_slice(entry.id.as_slice());
        self.names.extend_from_slice(entry.name);
    }

    /// Adds the header. `None` if there is no directory.
    pub(super) fn finish(mut self, basis: &Basis) -> Option<Cache> {
        let (dirs, entries) = (self.dirs.len() / (DIR + self.hash), self.entry_count());
        let length = HEADER + self.dirs.len() + self.entries.len() + self.names.len();
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&basis.settings.to_le_bytes());
        put_stat(&mut bytes, &basis.index);
        put_time(&mut bytes, basis.stamp.0);

        [self.hash, dirs, entries, self.names.len()]
            .iter()
            .for_each(|&n| put_u32(&mut bytes, n as u32));
        bytes.extend_from_slice(basis.root.as_slice());

        bytes.resize(116, 0);
        bytes.extend_from_slice(&basis.choice.to_le_bytes());
        bytes.extend_from_slice(&basis.tracking.to_le_bytes());
        bytes.extend_from_slice(&basis.force.to_le_bytes());
        bytes.resize(HEADER, 0);
        [&mut self.dirs, &mut self.entries, &mut self.names]
            .into_iter()
            .for_each(|part| bytes.append(part));

        let sum = checksum(&bytes[16..]);
        bytes[8..16].copy_from_slice(&sum.to_le_bytes());
        Cache::read(bytes, self.hash)
    }
}

impl Cache {
    pub(in crate::git) fn save(
        &self,
        mut file: tempfile::NamedTempFile,
        path: &Path,
    ) -> std::io::Result<()> {
        file.write_all(&self.bytes)?;
        // Not flushed: a torn file fails its checksum and counts as missing.
        file.persist(path)?;
        Ok(())
    }
}

// Fixed-size encoding of the private index: numbers, times, stats, and a checksum.
//
// The readers are `#[inline(always)]` because every snapshot decodes megabytes with them, also in
// debug builds.

pub(super) fn checksum(bytes: &[u8]) -> u64 {
    u64::from(crc32fast::hash(bytes))
}

pub(super) fn put_u32(to: &mut Vec<u8>, number: u32) {
    to.extend_from_slice(&number.to_le_bytes());
}

pub(super) fn put_time(to: &mut Vec<u8>, time: Time) {
    put_u32(to, time.secs);
    put_u32(to, time.nsecs);
}

pub(super) fn put_stat(to: &mut Vec<u8>, s: &Stat) {
    put_time(to, s.mtime);
    put_time(to, s.ctime);
    [s.dev, s.ino, s.uid, s.gid, s.size]
        .iter()
        .for_each(|&n| put_u32(to, n));
}

#[inline(always)]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(
        bytes[at..at + 4]
            .try_into()
            .expect("four bytes are four bytes"),
    )
}

#[inline(always)]
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(
        bytes[at..at + 8]
            .try_into()
            .expect("eight bytes are eight bytes"),
    )
}

#[inline(always)]
pub(super) fn time_at(bytes: &[u8], at: usize) -> Time {
    Time {
        secs: u32_at(bytes, at),
        nsecs: u32_at(bytes, at + 4),
    }
}

#[inline(always)]
pub(super) fn stat_at(bytes: &[u8], at: usize) -> Stat {
    let n = |offset| u32_at(bytes, at + offset);
    Stat {
        mtime: time_at(bytes, at),
        ctime: time_at(bytes, at + 8),
        dev: n(16),
        ino: n(20),
        uid: n(24),
        gid: n(28),
        size: n(32),
    }
}

#[cfg(test)]
mod tests;
