//! The private index: what the last snapshot saw, folder by folder, so that the next one reads
//! only what has changed.
//!
//! One file of fixed-size records that are decoded where they are looked at: loading costs one
//! read and one pass of a checksum. It is only a cache: whatever is wrong with it, it is as if
//! there were none. It is replaced by rename, so that several programs may use it at once.

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
pub(super) use write::{Sizes, Writer};

/// An index of ten million files is smaller.
const MAX_BYTES: u64 = 4 << 30;

/// What opens the file; the number changes with the format.
const MAGIC: &[u8; 8] = b"TeDDyix5";
/// The length of the header.
const HEADER: usize = 144;
/// The length of a folder's record without its tree id.
const FOLDER: usize = 44;
/// The length of a folder's times, with which that ends.
const TIMES: usize = 20;
/// The length of an entry's record without its id.
const ENTRY: usize = 48;

/// The kinds of entries, by the number that the file has for them.
const KINDS: [EntryKind; 5] = [
    EntryKind::Blob,
    EntryKind::BlobExecutable,
    EntryKind::Link,
    EntryKind::Commit,
    EntryKind::Tree,
];

/// A folder's own times; they change with its names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Times {
    /// Of the last change of a name.
    pub(super) mtime: Time,
    /// Of the last change of the folder.
    pub(super) ctime: Time,
    /// The folder's number.
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

/// What is known of a folder beside its entries; bits.
pub(super) mod mark {
    /// Its names must be read again each time: something in it was left out.
    pub(in crate::git) const RELIST: u32 = 1;
    /// It is not on disk; only what the user's index holds still is below it.
    pub(in crate::git) const VIRTUAL: u32 = 2;
    /// It is a repository of its own.
    pub(in crate::git) const EMBEDDED: u32 = 4;
    /// It has rules of its own: `.gitignore` or `.gitattributes`.
    pub(in crate::git) const RULES: u32 = 8;
    /// Something in it may have been taken only because it was to be, even where it is ignored.
    pub(in crate::git) const FORCED: u32 = 16;
}

/// A folder.
#[derive(Debug, Clone)]
pub(super) struct CachedFolder<'a> {
    /// Its path.
    pub(super) path: &'a [u8],
    /// The record of its parent; its own for the root.
    pub(super) parent: u32,
    /// The records of its entries.
    pub(super) entries: std::ops::Range<usize>,
    /// Bits of [`mark`].
    pub(super) marks: u32,
    /// Its times.
    pub(super) times: Times,
    /// The tree; null where nothing is in it.
    pub(super) tree: ObjectId,
}

/// A folder and its entries, as they are stored.
struct RawFolder<'a> {
    /// The record of the folder.
    record: &'a [u8],
    /// The records of its entries.
    entries: &'a [u8],
    /// The names of these and the folder's path.
    names: &'a [u8],
    /// Where these begin among all names.
    names_at: u32,
}

/// What holds for the whole cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Basis {
    /// A hash of the settings that decide what a file becomes.
    pub(super) settings: u64,
    /// A hash of what else decides which names are taken.
    pub(super) choice: u64,
    /// A hash of what is taken even where it is ignored.
    pub(super) force: u64,
    /// The stat of the user's index.
    pub(super) index: Stat,
    /// A hash of what the user's index tracks; git writes it anew for other reasons, too.
    pub(super) tracking: u64,
    /// The time before the walk.
    pub(super) stamp: Stamp,
    /// The tree of the whole.
    pub(super) root: ObjectId,
}

/// Reads a file whose header says that it is a cache of this length. Any other, be it of gigabytes,
/// is not read beyond that.
fn whole_file(path: &Path) -> Option<Vec<u8>> {
    let mut file = open_regular(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut header = [0; HEADER];
    file.read_exact(&mut header).ok()?;
    let said = length_of(&header, u32_at(&header, 68) as usize);
    if &header[..8] != MAGIC || length != said || length > MAX_BYTES {
        return None;
    }

    let mut bytes = Vec::with_capacity(usize::try_from(length).ok()?);
    bytes.extend_from_slice(&header);
    let rest = length - header.len() as u64;
    file.take(rest).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns how long a file is by its header, with ids of so many bytes.
fn length_of(header: &[u8], hash: usize) -> u64 {
    let [folders, entries, names] = [72, 76, 80].map(|at| u64::from(u32_at(header, at)));
    let [folder, entry] = [FOLDER + hash, ENTRY + hash].map(|length| length as u64);
    let length = folders
        .saturating_mul(folder)
        .saturating_add(entries.saturating_mul(entry));
    length.saturating_add(HEADER as u64 + names)
}

/// The cache, loaded.
pub(super) struct Cache {
    /// The file.
    bytes: Vec<u8>,
    /// What holds for all of it.
    pub(super) basis: Basis,
    /// How many folders.
    folders: usize,
    /// How many entries.
    entries: usize,
    /// The length of an id.
    hash: usize,
    /// The children of each folder: `children[starts[n]..starts[n + 1]]`.
    starts: Vec<u32>,
    /// Folder numbers, grouped by parent.
    children: Vec<u32>,
}

impl Cache {
    /// Loads a cache; nothing if it is missing, damaged, or of another hash function.
    pub(super) fn load(path: &Path, hash: gix::hash::Kind) -> Option<Cache> {
        let bytes = whole_file(path)?;
        let is_whole = u64_at(&bytes, 8) == checksum(&bytes[16..]);
        is_whole.then(|| Cache::read(bytes, hash.len_in_bytes()))?
    }

    /// Takes the bytes of a file whose sum is right; nothing if they are of another hash function,
    /// or not as many as they say.
    fn read(bytes: Vec<u8>, hash: usize) -> Option<Cache> {
        let (folders, entries) = (u32_at(&bytes, 72) as usize, u32_at(&bytes, 76) as usize);
        let expected = length_of(&bytes, hash);
        if u32_at(&bytes, 68) as usize != hash || bytes.len() as u64 != expected || folders == 0 {
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
            folders,
            entries,
            hash,
            starts: Vec::new(),
            children: Vec::new(),
        };

        cache.group();
        Some(cache)
    }

    /// Groups folders by parent.
    fn group(&mut self) {
        let parents: Vec<u32> = (0..self.folders)
            .map(|n| u32_at(&self.bytes, self.folder_at(n) + 8))
            .collect();
        let mut starts = vec![0u32; self.folders + 1];
        parents
            .iter()
            .skip(1)
            .for_each(|&parent| starts[parent as usize + 1] += 1);
        (1..starts.len()).for_each(|n| starts[n] += starts[n - 1]);
        let mut next = starts.clone();

        self.children = vec![0; self.folders.saturating_sub(1)];
        for (n, &parent) in parents.iter().enumerate().skip(1) {
            self.children[next[parent as usize] as usize] = n as u32;
            next[parent as usize] += 1;
        }

        self.starts = starts;
    }

    /// Returns where a folder's record starts.
    #[inline(always)]
    fn folder_at(&self, n: usize) -> usize {
        HEADER + n * (FOLDER + self.hash)
    }

    /// Returns the bytes of a name or path.
    #[inline(always)]
    fn name(&self, offset: u32, len: usize) -> &[u8] {
        let start = HEADER
            + self.folders * (FOLDER + self.hash)
            + self.entries * (ENTRY + self.hash)
            + offset as usize;
        &self.bytes[start..start + len]
    }

    /// Returns a folder.
    pub(super) fn folder(&self, n: usize) -> CachedFolder<'_> {
        let (at, b) = (self.folder_at(n), &self.bytes);
        let first = u32_at(b, at + 12) as usize;
        CachedFolder {
            path: self.name(u32_at(b, at), u32_at(b, at + 4) as usize),
            parent: u32_at(b, at + 8),
            entries: first..first + u32_at(b, at + 16) as usize,
            marks: u32_at(b, at + 20),
            times: Times {
                mtime: time_at(b, at + 24),
                ctime: time_at(b, at + 32),
                ino: u32_at(b, at + 40),
            },
            tree: ObjectId::from_bytes_or_panic(&b[at + FOLDER..at + FOLDER + self.hash]),
        }
    }

    /// Returns an entry.
    pub(super) fn entry(&self, n: usize) -> CachedName<&[u8]> {
        let (at, b) = (
            self.folder_at(self.folders) + n * (ENTRY + self.hash),
            &self.bytes,
        );
        CachedName {
            name: self.entry_name(n),
            kind: KINDS[usize::from(b[at + 6]).min(4)],
            standing: [
                CacheOrigin::Seen,
                CacheOrigin::Inherited,
                CacheOrigin::Watched,
            ][usize::from(b[at + 7]).min(2)],
            stat: stat_at(b, at + 8),
            basis: u32_at(b, at + 44),
            id: ObjectId::from_bytes_or_panic(&b[at + ENTRY..at + ENTRY + self.hash]),
        }
    }

    /// Returns a folder and its entries as they are stored. A folder's names, and its path behind
    /// them, stand together.
    fn raw(&self, n: usize) -> RawFolder<'_> {
        let (at, folder) = (self.folder_at(n), self.folder(n));
        let (entries, length) = (self.folder_at(self.folders), ENTRY + self.hash);
        let names = u32_at(&self.bytes, at);
        let names_at = match folder.entries.is_empty() {
            true => names,
            false => u32_at(&self.bytes, entries + folder.entries.start * length),
        };
        RawFolder {
            record: &self.bytes[at..at + FOLDER + self.hash],
            entries: &self.bytes
                [entries + folder.entries.start * length..entries + folder.entries.end * length],
            names: self.name(names_at, (names - names_at) as usize + folder.path.len()),
            names_at,
        }
    }

    /// Returns how much a folder takes in a cache.
    pub(super) fn sizes(&self, n: usize) -> Sizes {
        let raw = self.raw(n);
        Sizes {
            folders: 1,
            entries: raw.entries.len() / (ENTRY + self.hash),
            names: raw.names.len(),
        }
    }

    /// Returns the paths and times of the folders that changed last.
    pub(super) fn newest_folders(&self, count: usize) -> Vec<(&[u8], Times)> {
        let folders = (0..self.folders).map(|n| self.folder(n));
        let mut newest: Vec<_> = folders.map(|f| (f.times, f.path)).collect();
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

    /// Returns the number of the folder at a path.
    pub(super) fn find_folder(&self, path: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.folders);
        while low < high {
            let middle = low.midpoint(high);
            match self.folder(middle).path.cmp(path) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }

        None
    }

    /// Returns the name of an entry.
    #[inline(always)]
    fn entry_name(&self, n: usize) -> &[u8] {
        let (at, b) = (
            self.folder_at(self.folders) + n * (ENTRY + self.hash),
            &self.bytes,
        );
        let len = u16::from_le_bytes([b[at + 4], b[at + 5]]);
        self.name(u32_at(b, at), usize::from(len))
    }

    /// Returns the entry of a name in a folder.
    pub(super) fn find_entry(
        &self,
        folder: &CachedFolder<'_>,
        name: &[u8],
    ) -> Option<CachedName<&[u8]>> {
        let (mut low, mut high) = (folder.entries.start, folder.entries.end);
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

    /// As [`Cache::find_entry`], for names that are asked for in their order: `next` says how many
    /// of the folder's entries come before what is asked for.
    pub(super) fn find_next(
        &self,
        folder: &CachedFolder<'_>,
        name: &[u8],
        next: &mut usize,
    ) -> Option<CachedName<&[u8]>> {
        let mut at = folder.entries.start + *next;
        while at < folder.entries.end && self.entry_name(at) < name {
            at += 1;
        }

        *next = at - folder.entries.start;
        let is_there = at < folder.entries.end && self.entry_name(at) == name;
        is_there.then(|| self.entry(at))
    }

    /// Returns how many folders there are.
    pub(super) fn folder_count(&self) -> usize {
        self.folders
    }

    /// Returns how many entries all folders have.
    pub(super) fn entry_count(&self) -> usize {
        self.entries
    }

    /// Returns the numbers of a folder's sub-folders.
    pub(super) fn children(&self, n: usize) -> &[u32] {
        &self.children[self.starts[n] as usize..self.starts[n + 1] as usize]
    }
}

#[cfg(test)]
mod tests;
