//! Writes packs of whole objects, and of older trees as deltas of newer ones.
//!
//! A pack is written under a temporary name and indexed. Then its `.keep` file is created, so git
//! never repacks it, then the pack gets its name, then the index. Without an index, git does not
//! see a pack. [`keep::release`] removes the `.keep` file once a ref reaches the objects.

mod delta;
mod index;
pub mod keep;
pub(in crate::git) mod old;
pub(in crate::git) mod own;
mod permissions;
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
use tempfile::NamedTempFile;

use crate::git::During as _;
use crate::git::keep::durable;
use crate::git::keep::fresh;
use crate::git::object::large::Hashed;
use crate::git::repository::Repository;
use crate::host::file::{make_shared_dirs, open_regular};
use index::PackedObject;
pub(in crate::git) use own::is_own;

/// File below `teddy/` that lists our packs, one per line.
pub(in crate::git) const LIST: &str = "own-packs";
/// Header of a pack: version 2, no objects yet.
const PACK_HEADER: &[u8; 12] = b"PACK\0\0\0\x02\0\0\0\0";
/// Prefix of temporary files; the process id and `-` follow.
const TEMPORARY: &str = ".teddy-";
/// Entry kind `OBJ_REF_DELTA`.
const DELTA: u8 = 7;
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
    let mut entry = head(number_of(kind), data.len() as u64);
    // Each stored block adds five bytes.
    entry.reserve(data.len() + data.len() / 4096 + 64);
    let mut zlib = deflate::Write::new(&mut entry, Compression::NONE);
    zlib.write_all(data).context("storing an object")?;
    zlib.flush().context("storing an object")?;
    drop(zlib);
    Ok(entry)
}

pub(in crate::git) fn deflated(kind: Kind, data: &[u8]) -> anyhow::Result<Vec<u8>> {
    compressed(head(number_of(kind), data.len() as u64), data)
}

/// Encodes an object as a delta of a base that must be in the same pack.
pub(in crate::git) fn deflated_delta(
    (base, base_data): (ObjectId, &[u8]),
    data: &[u8],
) -> anyhow::Result<Vec<u8>> {
    let delta = delta::encode_delta(base_data, data);
    let mut entry = head(DELTA, delta.len() as u64);
    entry.extend_from_slice(base.as_slice());
    compressed(entry, &delta)
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

fn number_of(kind: Kind) -> u8 {
    match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    }
}

fn head(number: u8, mut size: u64) -> Vec<u8> {
    let mut entry = Vec::new();
    let mut byte = (number << 4) | (size & 15) as u8;
    size >>= 4;

    while size != 0 {
        entry.push(byte | 0x80);
        byte = (size & 0x7f) as u8;
        size >>= 7;
    }

    entry.push(byte);
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

    /// Takes private blobs, too.
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

    /// Adds an object that is not in the pack yet, compressing it straight to the file.
    pub(in crate::git) fn push_large(
        &mut self,
        id: ObjectId,
        kind: Kind,
        data: &[u8],
    ) -> anyhow::Result<()> {
        if let Some(private) = self.private_pack(&id)? {
            return private.push_large(id, kind, data);
        }
        let size = data.len() as u64;
        let added = self.stream((id, kind), size, &mut &*data);
        anyhow::ensure!(added.context("writing a pack")?, "object {id} changed");
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
            .stream((id, Kind::Blob), size, &mut hashed)
            .context("writing a pack")?;
        let is_same = is_complete && hashed.id().is_ok_and(|computed| computed == id);
        if !is_same {
            self.undo_push(id).context("writing a pack")?;
        }

        Ok(is_same)
    }

    /// Writes an entry. Returns whether the source has the announced size.
    fn stream(
        &mut self,
        (id, kind): (ObjectId, Kind),
        size: u64,
        source: &mut dyn Read,
    ) -> std::io::Result<bool> {
        let mut out = Counted {
            file: &mut self.file,
            crc: crc32fast::Hasher::new(),
            length: 0,
        };
        out.write_all(&head(number_of(kind), size))?;
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
        private_blobs::list_pack(repository, &private_keep).context("listing a pack")?;
        if self.entries.is_empty() {
            return Ok(private_keep);
        }
        let keep = self.seal(repository)?.finish(repository)?;
        own::tie(&keep, &private_keep);
        Ok(keep)
    }

    /// Completes the pack and its index under temporary names.
    pub(in crate::git) fn seal(mut self, repository: &Repository) -> anyhow::Result<Sealed> {
        durable::note_written();
        let hash = repository.gix.object_hash();
        let sum = self.complete(hash).context("finishing a pack")?;
        let mut index = temporary(&self.dir).context("indexing a pack")?;
        index
            .write_all(&index::encode_index(self.entries, sum, hash)?)
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

        let sum = hasher.try_finalize().map_err(|e| anyhow::anyhow!("{e}"))?;
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

        fresh::note_pack(&keep);
        // A pack that is not on the list is just never absorbed.
        let _ = keep::list_pack(repository, &keep);
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
    hasher.try_finalize().map_err(|e| anyhow::anyhow!("{e}"))
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
