//! Writes packs of whole objects, and of older trees as deltas of newer ones.
//!
//! A pack is written under a temporary name and indexed. Then its `.keep` file is created, so git
//! never repacks it, then the pack gets its name, then the index. Without an index, git does not
//! see a pack. [`keep::release`] removes the `.keep` file once a ref reaches the objects.

pub mod keep;
pub(in crate::git) mod old;
pub(in crate::git) mod own;
pub(in crate::git) mod permissions;
pub(in crate::git) mod private_blobs;

use std::cell::RefCell;
use std::fs::Permissions;
use std::io::{BufWriter, Read, Seek as _, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use gix::ObjectId;
use gix::objs::Kind;
use gix::zlib::stream::deflate::{self, Compress, FlushCompress};
use gix::zlib::{Compression, Status};
use gix_pack::data::entry::Header;
use memchr::memmem;
use tempfile::NamedTempFile;

pub(in crate::git) use own::is_own;

use crate::git::During as _;
use crate::git::keep::durable;
use crate::git::object::large::Hashed;
use crate::git::repository::Repository;
use crate::host::file::{make_shared_dirs, open_regular};

/// File below `teddy/` that lists our packs, one per line.
pub(in crate::git) const LIST: &str = "own-packs";

/// Header of a pack: version 2, no objects yet.
const PACK_HEADER: &[u8; 12] = b"PACK\0\0\0\x02\0\0\0\0";

/// Prefix of temporary files; the process id and `-` follow.
const TEMPORARY: &str = ".teddy-";

const COUNT_OFFSET: u64 = 8;

/// Mode of packs, as in git.
const READ_ONLY: u32 = 0o444;

pub(in crate::git) struct Pack {
    file: BufWriter<NamedTempFile>,
    dir: PathBuf,
    entries: Vec<PackedObject>,
    length: u64,
    readers: Readers,
}

enum Readers {
    /// Those of git's own packs. Private blobs go to another pack.
    Others(Option<Box<Pack>>),
    /// The same, whatever is in the pack.
    Everybody,
    Owner,
}

/// A complete pack with its index, still under temporary names.
pub(in crate::git) struct Sealed {
    name: ObjectId,
    stream: NamedTempFile,
    index: NamedTempFile,
    dir: PathBuf,
}

thread_local! {
    /// Compressor of this thread, reused because its setup takes longer than a small object.
    static DEFLATE: RefCell<Compress> = RefCell::new(Compress::new(Compression::BEST_SPEED));
}

/// Encodes an object for a pack as stored zlib blocks, without compression.
pub(in crate::git) fn uncompressed(kind: Kind, data: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut entry = head(header_of(kind), data.len() as u64);
    // Each stored block adds five bytes.
    entry.reserve(data.len() + data.len() / 4096 + 64);
    let mut zlib = deflate::Write::new(&mut entry, Compression::NONE);
    zlib.write_all(data).context("storing an object")?;
    zlib.flush().context("storing an object")?;
    drop(zlib);
    Ok(entry)
}

pub(in crate::git) fn deflated(kind: Kind, data: &[u8]) -> anyhow::Result<Vec<u8>> {
    compressed(head(header_of(kind), data.len() as u64), data)
}

/// Encodes an object as a delta of a base that must be in the same pack.
pub(in crate::git) fn deflated_delta(
    base: ObjectId,
    base_data: &[u8],
    data: &[u8],
) -> anyhow::Result<Vec<u8>> {
    let delta = encode_delta(base_data, data);
    let header = Header::RefDelta { base_id: base };
    compressed(head(header, delta.len() as u64), &delta)
}

fn compressed(mut entry: Vec<u8>, data: &[u8]) -> anyhow::Result<Vec<u8>> {
    entry.reserve(data.len() / 2 + 64);
    DEFLATE.with_borrow_mut(|zlib| {
        zlib.reset();
        let mut remaining = data;
        loop {
            let (start, read) = (entry.len(), zlib.total_in());
            entry.resize(start + (remaining.len() / 2).max(64), 0);
            let written = zlib.total_out();
            let status = zlib.compress(remaining, &mut entry[start..], FlushCompress::Finish);
            let status = status.during("compressing an object")?;
            entry.truncate(start + usize::try_from(zlib.total_out() - written)?);
            remaining = &remaining[usize::try_from(zlib.total_in() - read)?..];
            if status == Status::StreamEnd {
                return Ok(entry);
            }
        }
    })
}

fn header_of(kind: Kind) -> Header {
    match kind {
        Kind::Commit => Header::Commit,
        Kind::Tree => Header::Tree,
        Kind::Blob => Header::Blob,
        Kind::Tag => Header::Tag,
    }
}

fn head(header: Header, size: u64) -> Vec<u8> {
    let mut entry = Vec::new();
    let written = header.write_to(size, &mut entry);
    written.expect("a vector takes all bytes");
    entry
}

struct Counted<'a> {
    file: &'a mut BufWriter<NamedTempFile>,
    crc: crc32fast::Hasher,
    length: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.crc.update(&bytes[..written]);
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Copies in blocks and returns the length. A read error counts as the end; the caller compares the
/// length.
fn copy(source: &mut dyn Read, out: &mut dyn Write) -> std::io::Result<u64> {
    let (mut block, mut length) = (vec![0; 1 << 16], 0);
    loop {
        match source.read(&mut block) {
            Ok(0) => return Ok(length),
            Ok(read) => {
                out.write_all(&block[..read])?;
                length += read as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return Ok(length),
        }
    }
}

impl Pack {
    pub(in crate::git) fn new(dir: &Path) -> anyhow::Result<Pack> {
        make_shared_dirs(dir).context("making the folder of packs")?;
        let mut file = BufWriter::new(temporary(dir).context("starting a pack")?);
        file.write_all(PACK_HEADER).context("starting a pack")?;
        Ok(Pack {
            file,
            dir: dir.to_owned(),
            entries: Vec::new(),
            length: PACK_HEADER.len() as u64,
            readers: Readers::Others(None),
        })
    }

    /// Makes the pack readable like git's own, even if it contains private blobs.
    pub(in crate::git) fn for_everybody(self) -> Pack {
        let readers = Readers::Everybody;
        Pack { readers, ..self }
    }

    /// Returns the pack for private blobs if the object is one and this is another pack.
    fn private_pack(&mut self, id: &ObjectId) -> anyhow::Result<Option<&mut Pack>> {
        let Readers::Others(private) = &mut self.readers else {
            return Ok(None);
        };
        if !private_blobs::is_noted(&self.dir, *id) {
            return Ok(None);
        }
        if private.is_none() {
            let readers = Readers::Owner;
            let pack = Pack::new(&self.dir)?;
            *private = Some(Box::new(Pack { readers, ..pack }));
        }
        Ok(private.as_deref_mut())
    }

    /// Adds an encoded object that is not in the pack yet.
    pub(in crate::git) fn push(&mut self, id: ObjectId, entry: &[u8]) -> anyhow::Result<()> {
        if let Some(private) = self.private_pack(&id)? {
            return private.push(id, entry);
        }
        self.file.write_all(entry).context("writing a pack")?;
        self.entries.push(PackedObject {
            id,
            crc: crc32fast::hash(entry),
            offset: self.length,
        });
        self.length += entry.len() as u64;

        Ok(())
    }

    /// Adds a blob that is not in the pack yet, read in blocks. `false` if the content does not
    /// match the id; the pack is unchanged then.
    pub(in crate::git) fn push_blob(
        &mut self,
        id: ObjectId,
        size: u64,
        source: &mut dyn Read,
    ) -> anyhow::Result<bool> {
        if let Some(private) = self.private_pack(&id)? {
            return private.push_blob(id, size, source);
        }
        let mut hashed = Hashed::new(source, id.kind(), size);
        let is_complete = self
            .stream(id, size, &mut hashed)
            .context("writing a pack")?;
        let is_same = is_complete && hashed.id().is_ok_and(|computed| computed == id);
        if !is_same {
            self.undo_push(id).context("writing a pack")?;
        }

        Ok(is_same)
    }

    /// Writes a blob. Returns whether the source has the announced size.
    fn stream(&mut self, id: ObjectId, size: u64, source: &mut dyn Read) -> std::io::Result<bool> {
        let mut out = Counted {
            file: &mut self.file,
            crc: crc32fast::Hasher::new(),
            length: 0,
        };
        out.write_all(&head(Header::Blob, size))?;
        let mut zlib = deflate::Write::new(&mut out, Compression::BEST_SPEED);
        let copied = copy(source, &mut zlib)?;

        zlib.flush()?;
        drop(zlib);
        let (crc, length) = (out.crc.finalize(), out.length);
        self.entries.push(PackedObject {
            id,
            crc,
            offset: self.length,
        });

        self.length += length;
        Ok(copied == size)
    }

    fn undo_push(&mut self, id: ObjectId) -> std::io::Result<()> {
        if let Some(entry) = self.entries.pop_if(|entry| entry.id == id) {
            self.length = entry.offset;
            self.file.flush()?;
            self.file.get_mut().as_file().set_len(self.length)?;
            self.file.seek(SeekFrom::Start(self.length))?;
        }
        Ok(())
    }

    /// Completes the pack and renames it into place; returns its `.keep` file.
    pub(in crate::git) fn finish(mut self, repository: &Repository) -> anyhow::Result<PathBuf> {
        let private = match &mut self.readers {
            Readers::Others(private) => private.take(),
            Readers::Everybody | Readers::Owner => None,
        };
        let Some(private) = private else {
            return self.seal(repository)?.finish(repository);
        };

        // First, because trees of the other pack refer to its blobs.
        let private_keep = private.seal(repository)?.finish(repository)?;
        keep::list_pack(repository, private_blobs::LIST, &private_keep)
            .context("listing a pack")?;
        if self.entries.is_empty() {
            return Ok(private_keep);
        }
        let keep = self.seal(repository)?.finish(repository)?;
        own::tie(&keep, private_keep);
        Ok(keep)
    }

    /// Completes the pack and its index under temporary names.
    pub(in crate::git) fn seal(mut self, repository: &Repository) -> anyhow::Result<Sealed> {
        durable::note_written();
        let hash = repository.gix.object_hash();
        let sum = self.complete(hash).context("finishing a pack")?;
        let mut index = temporary(&self.dir).context("indexing a pack")?;
        index
            .write_all(&encode_index(self.entries, sum, hash)?)
            .context("indexing a pack")?;

        let stream = self.file.into_inner().context("finishing a pack")?;
        for file in [&stream, &index] {
            let set = match self.readers {
                Readers::Owner => permissions::close(file.as_file()),
                _ => permissions::share(repository, file.as_file()),
            };
            set.context("finishing a pack")?;
        }
        Ok(Sealed {
            name: unique(sum)?,
            stream,
            index,
            dir: self.dir,
        })
    }

    fn complete(&mut self, hash: gix::hash::Kind) -> anyhow::Result<ObjectId> {
        let count = u32::try_from(self.entries.len()).context("too many objects for one pack")?;
        self.file.seek(SeekFrom::Start(COUNT_OFFSET))?;
        self.file.write_all(&count.to_be_bytes())?;
        self.file.seek(SeekFrom::Start(0))?;
        let mut hasher = gix::hash::hasher(hash);
        let mut buffer = vec![0; 1 << 16];

        loop {
            let read = self.file.get_mut().read(&mut buffer)?;
            if read == 0 {
                break;
            }
            hasher.update(&buffer[..read]);
        }

        let sum = hasher.try_finalize().during("hashing")?;
        self.file.write_all(sum.as_slice())?;
        self.file.flush()?;
        Ok(sum)
    }
}

impl Sealed {
    /// Copies a pack and index that git wrote elsewhere to temporary names.
    pub(in crate::git) fn copied(repository: &Repository, pack: &Path) -> anyhow::Result<Sealed> {
        durable::note_written();
        let dir = keep::pack_dir(repository);
        make_shared_dirs(&dir)?;
        let copy = |ending: &str| {
            let mut file = temporary(&dir)?;
            std::io::copy(&mut open_regular(&pack.with_extension(ending))?, &mut file)?;
            permissions::share(repository, file.as_file())?;
            Ok::<_, std::io::Error>(file)
        };

        let [stream, index] = ["pack", "idx"].map(|ending| copy(ending).context("copying a pack"));
        let hash = repository.gix.object_hash();
        let index_file = gix_pack::index::File::at(pack.with_extension("idx"), hash);
        let sum = index_file
            .during("reading the index of a pack")?
            .pack_checksum();
        Ok(Sealed {
            name: unique(sum)?,
            stream: stream?,
            index: index?,
            dir,
        })
    }

    /// Returns the future name of the pack, without prefix and extension.
    pub(in crate::git) fn name(&self) -> ObjectId {
        self.name
    }

    pub(in crate::git) fn stream(&self) -> &Path {
        self.stream.path()
    }

    pub(in crate::git) fn index(&self) -> &Path {
        self.index.path()
    }

    /// Renames the pack and then its index into place; returns the `.keep` file.
    pub(in crate::git) fn finish(self, repository: &Repository) -> anyhow::Result<PathBuf> {
        let keep = self.dir.join(format!("pack-{}.keep", self.name));
        // Before the pack has its name, so no repack ever sees it without a `.keep` file.
        keep::claim(repository, &keep)?;
        if let Err(error) = persist(self.stream, self.index, &keep) {
            let _ = keep::release(&keep);
            return Err(error);
        }

        durable::note_pack(&keep);
        // A pack that is not on the list is just never absorbed.
        let _ = keep::list_pack(repository, LIST, &keep);
        Ok(keep)
    }
}

/// Creates a temporary file next to the packs. git's own prefix `tmp_` is avoided, because `git
/// prune` deletes such files.
fn temporary(dir: &Path) -> std::io::Result<NamedTempFile> {
    let prefix = format!("{TEMPORARY}{}-", std::process::id());
    let file = tempfile::Builder::new()
        .prefix(&prefix)
        .permissions(Permissions::from_mode(READ_ONLY))
        .tempfile_in(dir)?;
    // The lock tells this file from a leftover of a crash.
    keep::lock(file.as_file())?;
    Ok(file)
}

/// Returns a name that no other pack has had.
///
/// git names a pack by its checksum. A pack with the same objects can already exist without `.keep`
/// file, and a running `git repack` that has listed it deletes that name at its end, even if a
/// `.keep` file exists by then. Our pack must not have that name.
fn unique(sum: ObjectId) -> anyhow::Result<ObjectId> {
    let mut hasher = gix::hash::hasher(sum.kind());
    hasher.update(sum.as_slice());
    hasher.update(uuid::Uuid::now_v7().as_bytes());
    hasher.try_finalize().during("hashing")
}

fn persist(stream: NamedTempFile, index: NamedTempFile, keep: &Path) -> anyhow::Result<()> {
    let [pack, idx] = ["pack", "idx"].map(|ending| keep.with_extension(ending));
    stream.persist(&pack).context("naming a pack")?;
    // The index comes last: without it git ignores the pack.
    if let Err(error) = index.persist(&idx) {
        let _ = std::fs::remove_file(&pack);
        return Err(error).context("naming the index of a pack");
    }
    Ok(())
}

// Deltas in git's format (`gitformat-pack`, "Deltified representation"): both sizes, then pieces
// that are copied from the base or inserted.
//
// The algorithm is for objects that are nearly equal, such as trees of the same directory with a
// few changed files.

/// Length from which equal bytes count as a match.
const DELTA_ANCHOR: usize = 32;

/// Distance within which the next match is searched.
const DELTA_WINDOW: usize = 16 << 10;

/// Maximum length of one copy instruction.
const MAX_COPY: usize = 0xff_ffff;

/// Maximum length of one insert instruction.
const MAX_INSERT: usize = 0x7f;

/// Returns the delta from `base` to `target`. It can be longer than the target if they have little
/// in common.
fn encode_delta(base: &[u8], target: &[u8]) -> Vec<u8> {
    let mut delta = Vec::new();
    put_size(&mut delta, base.len());
    put_size(&mut delta, target.len());

    let (mut old, mut new) = (0, 0);
    while new < target.len() {
        let same = common_prefix_len(&base[old..], &target[new..]);
        put_copy(&mut delta, old, same);
        (old, new) = (old + same, new + same);

        let [passed, inserted] = next_match(&base[old..], &target[new..]);
        put_insert(&mut delta, &target[new..new + inserted]);
        (old, new) = (old + passed, new + inserted);
    }
    delta
}

fn common_prefix_len(one: &[u8], other: &[u8]) -> usize {
    const BLOCK: usize = 1024;
    let blocks = one.chunks_exact(BLOCK).zip(other.chunks_exact(BLOCK));
    let block_bytes = BLOCK * blocks.take_while(|(one, other)| one == other).count();
    let tail = one[block_bytes..].iter().zip(&other[block_bytes..]);
    block_bytes + tail.take_while(|(one, other)| one == other).count()
}

/// Returns how many bytes to skip in each until they match again, at most the search distance.
fn next_match(old: &[u8], new: &[u8]) -> [usize; 2] {
    let [near_old, near_new] = [old, new].map(|text| &text[..text.len().min(DELTA_WINDOW)]);
    let anchor = |text: &[u8], near: &[u8]| {
        let position = memmem::find(near, text.get(..DELTA_ANCHOR)?)?;
        Some(position)
    };

    let changed = same_offset(near_old, near_new).map(|at| [at, at]);
    let added = anchor(old, near_new).map(|at| [0, at]);
    let removed = anchor(new, near_old).map(|at| [at, 0]);
    let nearest = [changed, added, removed].into_iter().flatten();
    let nearest = nearest.min_by_key(|[passed, inserted]| passed + inserted);
    nearest.unwrap_or([near_old.len(), near_new.len()])
}

fn same_offset(one: &[u8], other: &[u8]) -> Option<usize> {
    let mut run = 0;
    for (at, (one, other)) in one.iter().zip(other).enumerate() {
        run = if one == other { run + 1 } else { 0 };
        if run == DELTA_ANCHOR {
            return Some(at + 1 - DELTA_ANCHOR);
        }
    }
    None
}

fn put_size(delta: &mut Vec<u8>, mut size: usize) {
    while size > 0x7f {
        delta.push(size as u8 | 0x80);
        size >>= 7;
    }
    delta.push(size as u8);
}

fn put_copy(delta: &mut Vec<u8>, mut start: usize, mut length: usize) {
    while length > 0 {
        let piece = length.min(MAX_COPY);
        let op_at = delta.len();
        delta.push(0x80);
        let [start_bytes, length_bytes] =
            [start, piece].map(|number| (number as u32).to_le_bytes());
        // Zero bytes are omitted; a bit mask tells which bytes follow.
        for (bit, byte) in start_bytes.into_iter().chain(length_bytes).enumerate() {
            if byte != 0 {
                delta.push(byte);
                delta[op_at] |= 1 << bit;
            }
        }
        (start, length) = (start + piece, length - piece);
    }
}

fn put_insert(delta: &mut Vec<u8>, bytes: &[u8]) {
    for piece in bytes.chunks(MAX_INSERT) {
        delta.push(piece.len() as u8);
        delta.extend_from_slice(piece);
    }
}

const INDEX_HEADER: &[u8; 8] = b"\xfftOc\0\0\0\x02";

/// Flag: the offset is in the table of 64-bit offsets.
const LARGE_OFFSET: u32 = 1 << 31;

struct PackedObject {
    id: ObjectId,
    /// CRC-32 of the encoded entry.
    crc: u32,
    offset: u64,
}

fn encode_index(
    mut entries: Vec<PackedObject>,
    pack: ObjectId,
    hash: gix::hash::Kind,
) -> anyhow::Result<Vec<u8>> {
    entries.sort_unstable_by_key(|entry| entry.id);
    let length = INDEX_HEADER.len() + 256 * 4 + entries.len() * (hash.len_in_bytes() + 8);
    let mut index = Vec::with_capacity(length + 2 * hash.len_in_bytes());
    let number = |number: usize| u32::try_from(number).context("too many objects for one pack");
    index.extend_from_slice(INDEX_HEADER);
    let mut at = 0;

    // Fan-out: the number of ids up to each first byte.
    for first in 0..=u8::MAX {
        let tail = entries[at..].iter();
        at += tail
            .take_while(|entry| entry.id.first_byte() == first)
            .count();
        index.extend_from_slice(&number(at)?.to_be_bytes());
    }

    for entry in &entries {
        index.extend_from_slice(entry.id.as_slice());
    }
    for entry in &entries {
        index.extend_from_slice(&entry.crc.to_be_bytes());
    }
    let mut large = Vec::new();
    for entry in &entries {
        let offset = match u32::try_from(entry.offset) {
            Ok(offset) if offset < LARGE_OFFSET => offset,
            _ => {
                large.extend_from_slice(&entry.offset.to_be_bytes());
                LARGE_OFFSET | number(large.len() / 8 - 1)?
            }
        };
        index.extend_from_slice(&offset.to_be_bytes());
    }

    index.append(&mut large);
    index.extend_from_slice(pack.as_slice());
    let mut hasher = gix::hash::hasher(hash);
    hasher.update(&index);
    index.extend_from_slice(hasher.try_finalize().during("hashing")?.as_slice());
    Ok(index)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn size(delta: &mut &[u8]) -> usize {
        let (mut size, mut shift) = (0, 0);
        loop {
            let byte = delta[0];
            *delta = &delta[1..];
            size |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return size;
            }
        }
    }

    fn apply(base: &[u8], mut delta: &[u8]) -> Vec<u8> {
        assert_eq!(size(&mut delta), base.len());
        let length = size(&mut delta);
        let mut target = Vec::new();
        while let Some((&code, tail)) = delta.split_first() {
            delta = tail;
            if code & 0x80 == 0 {
                assert_ne!(code, 0, "reserved");
                target.extend_from_slice(&delta[..code.into()]);
                delta = &delta[code.into()..];
                continue;
            }

            let mut number = |bits: std::ops::Range<u8>| {
                let mut number = 0;
                for (shift, bit) in bits.enumerate() {
                    if code & (1 << bit) != 0 {
                        number |= usize::from(delta[0]) << (8 * shift);
                        delta = &delta[1..];
                    }
                }
                number
            };
            let (start, length) = (number(0..4), number(4..7));
            assert_ne!(length, 0, "git takes it for 65536");
            target.extend_from_slice(&base[start..start + length]);
        }
        assert_eq!(target.len(), length);
        target
    }

    fn check(base: &[u8], target: &[u8], expected: usize) {
        let delta = encode_delta(base, target);
        assert!(apply(base, &delta) == target, "{base:?} {target:?}");
        assert!(delta.len() <= expected, "{} bytes", delta.len());
    }

    fn tree(files: usize, id: impl Fn(usize) -> usize) -> Vec<u8> {
        let mut data = Vec::new();
        for file in 0..files {
            data.extend_from_slice(format!("100644 file_{file:06}.rs\0").as_bytes());
            let id = (id(file) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            for turn in 0..20 {
                data.push((id >> (turn * 3)) as u8);
            }
        }
        data
    }

    #[test]
    fn what_is_alike_is_copied() {
        check(b"", b"", 2);
        check(b"abc", b"", 2);
        check(b"", b"abc", 6);
        check(&[7; 200], &[7; 200], 6);

        let base = tree(5000, |file| file);
        check(&base, &base, 13);
        let changed = tree(5000, |file| if file % 1000 == 7 { 1 } else { file });
        check(&base, &changed, 300);
        check(&base, &tree(4990, |file| file), 20);
        check(&base, &tree(5010, |file| file), 500);
        // One file is added at the start, one is removed there.
        check(&base[41..], &base, 70);
        check(&base, &base[41..], 20);
    }

    #[test]
    fn pieces_of_any_length_are_copied() {
        let long: Vec<u8> = (0..MAX_COPY * 2 + 70_000)
            .map(|at| (at >> 8) as u8)
            .collect();
        check(&long, &long, 40);
        for length in [255, 256, 65_535, 65_536, 65_537] {
            check(&long[..length], &long[..length], 15);
        }
    }

    proptest! {
        #[test]
        fn a_delta_makes_what_it_was_made_of(
            base in prop::collection::vec(0_u8..3, 0..300),
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..50, prop::collection::vec(0_u8..3, 0..50)), 0..6),
            repeat in 1_usize..200,
        ) {
            let base = base.repeat(repeat);
            let mut target = base.clone();
            for (at, removed, added) in edits {
                let start = at.index(target.len() + 1);
                let end = (start + removed).min(target.len());
                target.splice(start..end, added);
            }
            check(&base, &target, usize::MAX);
            check(&target, &base, usize::MAX);
        }
    }
}

#[cfg(test)]
mod index_tests {
    use super::*;

    fn check(offsets: &[(u8, u64)]) {
        let hash = gix::hash::Kind::Sha1;
        let id = |n: u8| ObjectId::from_bytes_or_panic(&[n; 20]);
        let entries = offsets
            .iter()
            .map(|&(n, offset)| PackedObject {
                id: id(n),
                crc: u32::from(n),
                offset,
            })
            .collect();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pack-1.idx");
        std::fs::write(&path, encode_index(entries, id(7), hash).unwrap()).unwrap();
        let index = gix_pack::index::File::at(&path, hash).unwrap();
        assert_eq!(
            (index.num_objects() as usize, index.pack_checksum()),
            (offsets.len(), id(7))
        );
        assert!(
            index
                .verify_checksum(
                    &mut gix::progress::Discard,
                    &std::sync::atomic::AtomicBool::new(false)
                )
                .is_ok()
        );
        for &(n, offset) in offsets {
            let at = index.lookup(id(n)).unwrap();
            assert_eq!(
                (index.pack_offset_at_index(at), index.crc32_at_index(at)),
                (offset, Some(u32::from(n)))
            );
        }
        assert_eq!(index.lookup(id(6)), None);
    }

    #[test]
    fn objects_are_found_in_any_order_and_at_any_offset() {
        check(&[]);
        check(&[(5, 12)]);
        check(&[(255, 12), (0, 90), (128, 50)]);
        check(&[
            (1, 1 << 31),
            (9, (1 << 31) - 1),
            (2, 1 << 40),
            (3, u64::from(u32::MAX)),
        ]);
    }
}
