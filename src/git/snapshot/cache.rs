//! The private index: files and directories as the last snapshot saw them, so that the next one
//! reads only what changed.
//!
//! One file of fixed-size records that are decoded on access, so loading costs one read and one
//! checksum. A damaged or outdated file is treated as missing. It is replaced by rename, so several
//! processes can use it at the same time.

mod name;
mod write;

use std::cmp::Reverse;
use std::io::Read as _;
use std::path::Path;

use gix::ObjectId;
use gix::index::entry::Stat;
use gix::index::entry::stat::Time;
use gix::objs::tree::EntryKind;

use super::bytes::{checksum, stat_at, time_at, u32_at, u64_at};
use crate::git::stat::Stamp;
use crate::host::file::open_regular;

pub(super) use name::{CacheOrigin, CachedName, FreshName};
pub(super) use write::{CacheSizes, CacheWriter};

/// Larger than an index of ten million files.
const MAX_BYTES: u64 = 4 << 30;

/// First bytes of the file. The number changes with the format.
const MAGIC: &[u8; 8] = b"TeDDyix5";
const HEADER: usize = 144;
/// Length of a directory's record without its tree id.
const DIR: usize = 44;
/// Length of the times at the end of a directory's record.
const TIMES: usize = 20;
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

#[derive(Debug, Clone)]
pub(super) struct CachedDir<'a> {
    pub(super) path: &'a [u8],
    /// Number of the parent's record. The root has its own number.
    pub(super) parent: u32,
    pub(super) entries: std::ops::Range<usize>,
    /// Flags, see [`mark`].
    pub(super) marks: u32,
    pub(super) times: Times,
    /// Null if the directory contains nothing.
    pub(super) tree: ObjectId,
}

struct RawDir<'a> {
    record: &'a [u8],
    entries: &'a [u8],
    /// Names of the entries, then the path of the directory.
    names: &'a [u8],
    /// Offset of `names` among all names.
    names_at: u32,
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

    /// Returns the encoded directory. Its names and its path are adjacent.
    fn raw(&self, n: usize) -> RawDir<'_> {
        let (at, dir) = (self.dir_at(n), self.dir(n));
        let (entries, length) = (self.dir_at(self.dirs), ENTRY + self.hash);
        let names = u32_at(&self.bytes, at);
        let names_at = match dir.entries.is_empty() {
            true => names,
            false => u32_at(&self.bytes, entries + dir.entries.start * length),
        };
        RawDir {
            record: &self.bytes[at..at + DIR + self.hash],
            entries: &self.bytes
                [entries + dir.entries.start * length..entries + dir.entries.end * length],
            names: self.name(names_at, (names - names_at) as usize + dir.path.len()),
            names_at,
        }
    }

    pub(super) fn sizes(&self, n: usize) -> CacheSizes {
        let raw = self.raw(n);
        CacheSizes {
            dirs: 1,
            entries: raw.entries.len() / (ENTRY + self.hash),
            names: raw.names.len(),
        }
    }

    /// Returns paths and times of the `count` directories with the newest mtime.
    pub(super) fn newest_dirs(&self, count: usize) -> Vec<(&[u8], Times)> {
        let dirs = (0..self.dirs).map(|n| self.dir(n));
        let mut newest: Vec<_> = dirs.map(|f| (f.times, f.path)).collect();
        let count = count.min(newest.len());
        if count < newest.len() {
            newest.select_nth_unstable_by_key(count, |(times, _)| Reverse(times.mtime));
        }
        newest.truncate(count);
        newest
            .into_iter()
            .map(|(times, path)| (path, times))
            .collect()
    }

    pub(super) fn find_dir(&self, path: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.dirs);
        while low < high {
            let middle = low.midpoint(high);
            match self.dir(middle).path.cmp(path) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }

        None
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
        let (mut low, mut high) = (dir.entries.start, dir.entries.end);
        while low < high {
            let middle = low.midpoint(high);
            match self.entry_name(middle).cmp(name) {
                std::cmp::Ordering::Equal => return Some(self.entry(middle)),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }

        None
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

#[cfg(test)]
mod tests;
