//! Reads large blobs and files in blocks, so memory use does not depend on their size.
//!
//! gix reads a blob into memory. Large ones are found here as a loose object or as an undeltified
//! entry of a pack, and inflated while they are read. Deltified and small blobs are left to gix.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::ObjectId;
use gix::hash::Hasher;
use gix::objs::{Kind, encode};
use gix::prelude::HeaderExt as _;
use gix::zlib::stream::inflate;
use gix::zlib::{Decompress, FlushDecompress};
use gix_pack::data::entry::Header;

use crate::git::repository::Repository;
use crate::host::file::{open_regular, uninterrupted};

/// Blobs and files above this size in bytes are read in blocks.
pub(in crate::git) const LARGE: u64 = 16 << 20;
const BLOCK: usize = 64 << 10;
/// Upper bound for the header of a loose object or of an entry of a pack.
const MAX_HEAD: usize = 64;

#[derive(Debug, Clone)]
pub(in crate::git) struct Stored {
    pub(in crate::git) id: ObjectId,
    pub(in crate::git) size: u64,
    /// The loose object or pack. Stays open, so a repack cannot remove it.
    file: Arc<File>,
    at: u64,
    /// Length of the inflated header before the content.
    head: usize,
}

/// Finds a large blob. `None` if it is not large or is stored as a delta.
pub(in crate::git) fn find_large(repository: &Repository, id: ObjectId) -> Option<Stored> {
    let header = repository.gix.objects.header(id).ok()?;
    if header.kind() != Kind::Blob || header.size() <= LARGE {
        return None;
    }

    let store = repository.gix.objects.store_ref();
    let mut dirs = vec![store.path().to_owned()];
    dirs.extend(store.alternate_db_paths().unwrap_or_default());
    let stored = dirs
        .iter()
        .find_map(|dir| loose(dir, id).or_else(|| packed(dir, id)))?;

    (stored.size == header.size()).then_some(stored)
}

/// Returns the blob id of a file. `None` if its length is not `size`. Fails if the hash function
/// detects a collision attack.
pub(in crate::git) fn id_of(
    repository: &Repository,
    file: &File,
    size: u64,
) -> io::Result<Option<ObjectId>> {
    hash_of(repository.gix.object_hash(), FileReader::start(file), size)
}

/// Returns the blob id of a source. `None` if its length is not `size`.
pub(in crate::git) fn hash_of(
    hash: gix::hash::Kind,
    source: impl Read,
    size: u64,
) -> io::Result<Option<ObjectId>> {
    let mut hashed = Hashed::new(source, hash, size);
    let length = hashed.drain()?;
    let id = hashed.id()?;
    Ok((length == size).then_some(id))
}

fn loose(dir: &Path, id: ObjectId) -> Option<Stored> {
    let hex = id.to_hex().to_string();
    let file = open_regular(&dir.join(&hex[..2]).join(&hex[2..])).ok()?;

    let (mut head, mut packed) = ([0; MAX_HEAD], [0; MAX_HEAD]);
    let read = file.read_at(&mut packed, 0).ok()?;
    let mut inflate = Decompress::new();
    inflate
        .decompress(&packed[..read], &mut head, FlushDecompress::None)
        .ok()?;
    let (kind, size, head) = gix::objs::decode::loose_header(&head).ok()?;
    (kind == Kind::Blob).then(|| Stored {
        id,
        size,
        file: Arc::new(file),
        at: 0,
        head,
    })
}

fn packed(dir: &Path, id: ObjectId) -> Option<Stored> {
    let names = std::fs::read_dir(dir.join("pack")).ok()?;
    let indexes = names
        .filter_map(|name| Some(name.ok()?.path()))
        .filter(|path: &PathBuf| path.extension().is_some_and(|ending| ending == "idx"));
    for path in indexes {
        // A repack can have removed the pack; the new one contains the blob.
        let Ok(index) = gix_pack::index::File::at(&path, id.kind()) else {
            continue;
        };
        let Some(number) = index.lookup(id) else {
            continue;
        };
        let stored = entry(&path, index.pack_offset_at_index(number), id);
        if stored.is_some() {
            return stored;
        }
    }

    None
}

/// Returns the blob at an offset of a pack, if it is not a delta.
fn entry(index: &Path, offset: u64, id: ObjectId) -> Option<Stored> {
    let file = open_regular(&index.with_extension("pack")).ok()?;
    let mut head = [0; MAX_HEAD];
    let read = file.read_at(&mut head, offset).ok()?;
    let entry = gix_pack::data::Entry::from_bytes(&head[..read], offset, id.kind()).ok()?;
    matches!(entry.header, Header::Blob).then(|| Stored {
        id,
        size: entry.decompressed_size,
        file: Arc::new(file),
        at: entry.data_offset,
        head: 0,
    })
}

impl Stored {
    pub(in crate::git) fn reader(&self) -> LargeReader<'_> {
        LargeReader {
            stored: self,
            source: BufReader::with_capacity(
                BLOCK,
                FileReader {
                    file: &self.file,
                    at: self.at,
                    end: u64::MAX,
                },
            ),
            inflate: Decompress::new(),
            hasher: hasher(self.id.kind(), self.size),
            remaining: self.size,
            is_checked: false,
        }
    }

    /// Writes the content. Fails if it does not match the id.
    pub(in crate::git) fn copy_to(&self, out: &mut dyn Write) -> io::Result<()> {
        io::copy(&mut BufReader::with_capacity(BLOCK, self.reader()), out).map(drop)
    }
}

/// Reads a large blob. Reading to the end verifies the content against the id.
pub(in crate::git) struct LargeReader<'a> {
    stored: &'a Stored,
    source: BufReader<FileReader<'a>>,
    inflate: Decompress,
    hasher: Hasher,
    remaining: u64,
    is_checked: bool,
}

impl LargeReader<'_> {
    fn inflate(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = inflate::read(&mut self.source, &mut self.inflate, out);
        read.map_err(|error| match error.raw_os_error() {
            // An I/O error proves nothing about the content.
            Some(_) => error,
            None => self.damaged(),
        })
    }

    fn check(&mut self) -> io::Result<()> {
        if self.is_checked {
            return Ok(());
        }
        let hasher = std::mem::replace(&mut self.hasher, hasher(self.stored.id.kind(), 0));
        let is_same = hasher.try_finalize().is_ok_and(|id| id == self.stored.id);
        self.is_checked = is_same;
        if is_same { Ok(()) } else { Err(self.damaged()) }
    }

    fn damaged(&self) -> io::Error {
        let message = format!("blob {} is damaged", self.stored.id);
        io::Error::new(io::ErrorKind::InvalidData, message)
    }
}

impl Read for LargeReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.inflate.total_out() == 0 && self.stored.head > 0 {
            let mut head = [0; MAX_HEAD];
            if self.inflate(&mut head[..self.stored.head])? < self.stored.head {
                return Err(self.damaged());
            }
        }

        let limit =
            usize::try_from(self.remaining).map_or(out.len(), |remaining| remaining.min(out.len()));
        if limit == 0 {
            return if self.remaining == 0 {
                self.check().map(|()| 0)
            } else {
                Ok(0)
            };
        }

        match self.inflate(&mut out[..limit])? {
            0 => Err(self.damaged()),
            produced => {
                self.hasher.update(&out[..produced]);
                self.remaining -= produced as u64;
                Ok(produced)
            }
        }
    }
}

/// Reads a file from an offset with `pread`, independently of its shared file position.
#[derive(Debug, Clone, Copy)]
pub(in crate::git) struct FileReader<'a> {
    file: &'a File,
    at: u64,
    /// Upper bound, because a file that grows while it is read has no end.
    end: u64,
}

impl<'a> FileReader<'a> {
    /// Reads the current content. One byte beyond its length shows whether the file has grown.
    pub(in crate::git) fn start(file: &'a File) -> FileReader<'a> {
        let length = file.metadata().map_or(u64::MAX, |file| file.len());
        FileReader {
            file,
            at: 0,
            end: length.saturating_add(1),
        }
    }
}

impl Read for FileReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let remaining = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let limit = out.len().min(remaining);
        let out = &mut out[..limit];
        let read = uninterrupted(|| self.file.read_at(out, self.at))?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Hashes what is read through it as a blob.
pub(in crate::git) struct Hashed<R> {
    source: R,
    hasher: Hasher,
    /// Number of bytes still to hash, because a file that grows has no end.
    remaining: u64,
}

impl<R: Read> Hashed<R> {
    pub(in crate::git) fn new(source: R, hash: gix::hash::Kind, size: u64) -> Hashed<R> {
        Hashed {
            source,
            hasher: hasher(hash, size),
            // One more byte shows whether the source is longer.
            remaining: size.saturating_add(1),
        }
    }

    pub(in crate::git) fn drain(&mut self) -> io::Result<u64> {
        let mut blocks = BufReader::with_capacity(BLOCK, self);
        io::copy(&mut blocks, &mut io::sink())
    }

    pub(in crate::git) fn id(self) -> io::Result<ObjectId> {
        self.hasher.try_finalize().map_err(io::Error::other)
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let limit =
            usize::try_from(self.remaining).map_or(out.len(), |remaining| remaining.min(out.len()));
        let read = self.source.read(&mut out[..limit])?;
        self.hasher.update(&out[..read]);
        self.remaining -= read as u64;

        Ok(read)
    }
}

fn hasher(hash: gix::hash::Kind, size: u64) -> Hasher {
    let mut hasher = gix::hash::hasher(hash);
    hasher.update(&encode::loose_header(Kind::Blob, size));
    hasher
}
