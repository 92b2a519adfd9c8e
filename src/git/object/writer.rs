//! Collects new objects, then stages them or writes them as one pack.
//!
//! An object that is already in a pack is not written again. A loose one is, because the next `git
//! gc --prune=now` can delete it if no ref reaches it yet.

use std::collections::HashSet;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use anyhow::Context as _;
use gix::ObjectId;
use gix::objs::{Exists as _, Kind, Write as _};

use crate::git::During as _;
use crate::git::keep::pack::permissions::readers_of_packs;
use crate::git::keep::pack::{Pack, deflated, private_blobs, uncompressed};
use crate::git::object::id::CommitId;
use crate::git::object::large::{Hashed, LARGE};
use crate::git::object::tree::ObjectMemory;
use crate::git::repository::Repository;

/// Above this number of objects, they are written instead of kept in memory.
const MAX_STAGED_OBJECTS: usize = 500;

/// Above this size in bytes, waiting objects are written to the pack.
const MAX_WAITING_BYTES: usize = 64 * 1024 * 1024;

/// Above this size in bytes, objects are written instead of staged, because each thread copies the
/// staged ones. The tree of a directory with 50,000 files has half this size.
const MAX_STAGED_BYTES: usize = 4 * 1024 * 1024;

pub(in crate::git) struct Sink {
    waiting: Mutex<Waiting>,
    /// Packs as of the creation of the sink. Searching for newer packs for each object would be
    /// slow, and writing an object twice is harmless.
    packed: Mutex<gix::OdbHandle>,
    objects: PathBuf,
    hash: gix::hash::Kind,
    read_only: bool,
    /// Permissions of group and others to read new packs.
    readers: u32,
}

#[derive(Default)]
struct Waiting {
    added: HashSet<ObjectId>,
    new: Vec<(ObjectId, Kind, Vec<u8>)>,
    bytes: usize,
    pack: Option<Pack>,
}

impl Sink {
    pub(in crate::git) fn new(repository: &Repository) -> Sink {
        let gix = &repository.gix;
        let mut packed = gix.objects.clone();
        packed.refresh_never();
        Sink {
            waiting: Mutex::default(),
            packed: Mutex::new(packed),
            objects: gix.objects.store_ref().path().to_owned(),
            hash: gix.object_hash(),
            read_only: repository.read_only,
            readers: readers_of_packs(repository),
        }
    }

    /// Returns a sink that writes nothing: its objects are staged in memory, however many.
    pub(in crate::git) fn in_memory(repository: &Repository) -> Sink {
        Sink {
            read_only: true,
            ..Sink::new(repository)
        }
    }

    pub(in crate::git) fn add(&self, kind: Kind, data: Vec<u8>) -> anyhow::Result<ObjectId> {
        self.add_unless(None, kind, data)
    }

    /// Like [`Sink::add`], for a file with these permissions that git does not track.
    pub(in crate::git) fn add_untracked(
        &self,
        data: Vec<u8>,
        mode: u32,
    ) -> anyhow::Result<ObjectId> {
        if self.is_private(mode) {
            let id = gix::objs::compute_hash(self.hash, Kind::Blob, &data);
            self.note_private(id.during("hashing")?);
        }
        self.add(Kind::Blob, data)
    }

    /// Returns whether a file with these permissions is closed to readers of ordinary packs.
    pub(in crate::git) fn is_private(&self, mode: u32) -> bool {
        self.readers & !mode != 0
    }

    /// Notes a blob that is not stored yet as one that only the user can read.
    pub(in crate::git) fn note_private(&self, id: ObjectId) {
        let stored = || self.packed.lock().expect("no thread panics with the lock");
        if !self.is_loose(&id) && !stored().exists(&id) && !self.waiting().added.contains(&id) {
            private_blobs::note(&self.objects.join("pack"), id);
        }
    }

    /// Like [`Sink::add`], but returns immediately if the id is `existing`, an intact object.
    pub(in crate::git) fn add_unless(
        &self,
        existing: Option<ObjectId>,
        kind: Kind,
        data: Vec<u8>,
    ) -> anyhow::Result<ObjectId> {
        let id = gix::objs::compute_hash(self.hash, kind, &data).during("hashing")?;
        if existing == Some(id) {
            return Ok(id);
        }

        let lock = || self.waiting();
        if !lock().added.insert(id) || self.is_packed(&id) {
            return Ok(id);
        }

        // Not kept in memory. The lock means that one large object is compressed at a time.
        let size = data.len() as u64;
        if kind == Kind::Blob && size > LARGE && !self.read_only {
            let mut waiting = lock();
            let pack = self.pack_of(&mut waiting)?;
            let added = pack.push_blob(id, size, &mut &*data)?;
            anyhow::ensure!(added, "object {id} changed");
            return Ok(id);
        }

        // Compressed outside of the lock, so several threads can do it at the same time.
        let packed = if lock().pack.is_some() {
            Some(deflated(kind, &data)?)
        } else {
            None
        };

        let mut waiting = lock();
        if let (Some(pack), Some(packed)) = (&mut waiting.pack, packed) {
            pack.push(id, &packed)?;
            return Ok(id);
        }

        waiting.bytes += data.len();
        waiting.new.push((id, kind, data));
        if !self.read_only
            && (waiting.new.len() > MAX_STAGED_OBJECTS || waiting.bytes > MAX_WAITING_BYTES)
        {
            self.spill(&mut waiting)?;
        }

        Ok(id)
    }

    /// Like [`Sink::add_unless`], for a tree. A large one is cached in `memory`.
    pub(in crate::git) fn add_tree(
        &self,
        memory: &ObjectMemory,
        existing: Option<ObjectId>,
        data: Vec<u8>,
    ) -> anyhow::Result<ObjectId> {
        let large = memory.trees.keeps(&data).then(|| data.clone());
        let id = self.add_unless(existing, Kind::Tree, data)?;
        if let Some(data) = large {
            memory.keep_tree(id, data);
        }
        Ok(id)
    }

    /// Adds a large blob, which is read twice, in blocks. `None` if it changed in between or its
    /// length is not `size`.
    pub(in crate::git) fn add_large<R: Read>(
        &self,
        size: u64,
        open: impl Fn() -> R,
    ) -> anyhow::Result<Option<ObjectId>> {
        let mut first = Hashed::new(open(), self.hash, size);
        // The caller reports read errors.
        let Ok(length) = first.drain() else {
            return Ok(None);
        };
        if length != size {
            return Ok(None);
        }

        let id = first.id().context("hashing")?;

        // One large blob is compressed at a time.
        let mut waiting = self.waiting();
        if waiting.added.contains(&id) || self.is_packed(&id) {
            return Ok(Some(id));
        }

        let added = self
            .pack_of(&mut waiting)?
            .push_blob(id, size, &mut open())?;
        if added {
            waiting.added.insert(id);
        }

        Ok(added.then_some(id))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("no thread panics with the lock")
    }

    fn pack_of<'w>(&self, waiting: &'w mut Waiting) -> anyhow::Result<&'w mut Pack> {
        match &mut waiting.pack {
            Some(pack) => Ok(pack),
            none => Ok(none.insert(Pack::new(&self.objects.join("pack"))?)),
        }
    }

    /// Returns whether an object is staged or packed, and not loose.
    fn is_packed(&self, id: &ObjectId) -> bool {
        let packed = || self.packed.lock().expect("no thread panics with the lock");
        !self.is_loose(id) && packed().exists(id)
    }

    pub(in crate::git) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Returns whether a loose object exists. It can be empty after a power cut.
    fn is_loose(&self, id: &ObjectId) -> bool {
        let hex = id.to_hex().to_string();
        self.objects.join(&hex[..2]).join(&hex[2..]).exists()
    }

    fn spill(&self, waiting: &mut Waiting) -> anyhow::Result<()> {
        let new = std::mem::take(&mut waiting.new);
        waiting.bytes = 0;
        let pack = self.pack_of(waiting)?;
        for (id, kind, data) in new {
            pack.push(id, &deflated(kind, &data)?)?;
        }
        Ok(())
    }

    /// Keeps the objects in memory until a ref is about to reach them, or writes a pack if there
    /// are many. Returns the pack's `.keep` file.
    pub(in crate::git) fn stage(self, repository: &Repository) -> anyhow::Result<Option<PathBuf>> {
        let waiting = self.waiting();
        let is_little = waiting.pack.is_none() && waiting.bytes <= MAX_STAGED_BYTES;
        drop(waiting);
        if !is_little && !self.read_only {
            return self.finish(repository);
        }

        let waiting = self.waiting.into_inner();
        let waiting = waiting.expect("no thread panics with the lock");
        put_in_memory(repository, waiting.new)?;
        Ok(None)
    }

    /// Writes the objects as a pack and returns its `.keep` file; `None` if there are no objects.
    pub(in crate::git) fn finish(self, repository: &Repository) -> anyhow::Result<Option<PathBuf>> {
        if self.read_only {
            return self.stage(repository);
        }

        let mut waiting = self.waiting();
        if !waiting.new.is_empty() {
            self.spill(&mut waiting)?;
        }
        let pack = waiting.pack.take();
        pack.map(|pack| pack.finish(repository)).transpose()
    }
}

// Stages new objects in memory until a ref is about to reach them.
//
// A turn creates objects in many steps. A pack for each would cost three files and a reload of all
// packs. Staged objects can be read by this process like any others.
// [`protect`](crate::git::keep::protect) writes them as one pack before a ref moves; without that they
// are lost with the process.

pub(in crate::git) type NewObject = (ObjectId, Kind, Vec<u8>);

/// Encodes a staged object for a pack. Large trees are not compressed: most of their bytes are ids,
/// and a later turn stores them as deltas.
pub(in crate::git) fn encode_staged(
    repository: &Repository,
    object: &NewObject,
) -> anyhow::Result<Vec<u8>> {
    let (_, kind, bytes) = object;
    if *kind == Kind::Tree && repository.memory.trees.keeps(bytes) {
        return uncompressed(*kind, bytes);
    }
    deflated(*kind, bytes)
}

pub(in crate::git) fn put_in_memory(
    repository: &Repository,
    objects: impl IntoIterator<Item = NewObject>,
) -> anyhow::Result<()> {
    let memory = &repository.gix.objects;
    for (id, kind, bytes) in objects {
        memory
            .write_buf_with_known_id(kind, &bytes, id)
            .during("keeping an object")?;
        if kind == Kind::Tree {
            repository.memory.keep_tree(id, bytes);
        }
    }
    Ok(())
}

/// Stages the staged objects of another handle of the same repository here too.
pub fn transfer_staged(repository: &Repository, other: &Repository) -> anyhow::Result<()> {
    put_in_memory(repository, staged_objects(other))
}

/// Returns whether a commit is staged, so no ref can point at it yet.
pub fn is_staged(repository: &Repository, id: CommitId) -> bool {
    let is_any = repository.gix.objects.num_objects_in_memory() > 0;
    is_any
        && staged_objects(repository)
            .iter()
            .any(|(staged, ..)| *staged == id.0)
}

pub(in crate::git) fn staged_objects(repository: &Repository) -> Vec<NewObject> {
    if repository.gix.objects.num_objects_in_memory() == 0 {
        return Vec::new();
    }
    // gix can only take the memory out of a handle, so take it out of a copy.
    let mut copy = repository.gix.objects.clone();
    let mut staged = copy.take_object_memory().unwrap_or_default();
    let staged = std::mem::take(&mut *staged).into_iter();
    staged
        .map(|(id, (kind, bytes))| (id, kind, bytes))
        .collect()
}

pub(in crate::git) fn discard_staged(repository: &Repository) {
    if !repository.read_only {
        repository.gix.objects.reset_object_memory();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::keep::pack::keep;
    use crate::git::object::BlobId;
    use crate::git::sample;

    #[test]
    fn a_pack_never_takes_the_name_of_one_that_is_there() {
        let (dir, repository) = sample::repository();
        let write = || {
            let sink = Sink::new(&Repository::open(dir.path()).unwrap());
            let id = gix::objs::compute_hash(sink.hash, Kind::Blob, b"same").unwrap();
            let same = (id, Kind::Blob, b"same".to_vec());
            sink.waiting.lock().unwrap().new.push(same);
            (id, sink.finish(&repository).unwrap().unwrap())
        };
        let (id, first) = write();
        keep::release(&first).unwrap();
        let (_, second) = write();
        // Simulates a concurrent repack that had listed the first pack.
        for ending in ["pack", "idx"] {
            std::fs::remove_file(first.with_extension(ending)).unwrap();
        }
        assert!(second.with_extension("pack").exists());
        let anew = Repository::open(dir.path()).unwrap();
        assert_eq!(anew.blob(BlobId::of(id)).unwrap(), b"same");
    }

    #[test]
    fn a_large_object_is_written_as_any_other() {
        let (_dir, repository) = sample::repository();
        let large: Vec<u8> = (0..LARGE as usize + 1)
            .map(|at| (at / 7 % 251) as u8)
            .collect();

        let sink = Sink::new(&repository);
        let add = |data: &[u8]| BlobId::of(sink.add(Kind::Blob, data.to_vec()).unwrap());
        let ids = [&b"before"[..], &large, b"after", &large].map(add);
        let keep = sink.finish(&repository).unwrap().unwrap();

        let read = ids.map(|id| repository.blob(id).unwrap());
        assert!(read == [&b"before"[..], &large, b"after", &large]);
        // git itself reads the pack and verifies the checksums in the index.
        let mut git = repository.git().unwrap();
        let pack = keep.with_extension("pack");
        let verified = git.args(["verify-pack"]).arg(pack).output().unwrap();
        assert!(verified.status.success(), "{verified:?}");
    }
}

#[cfg(test)]
mod staged_tests {
    use super::*;
    use crate::git::object::batch;

    #[test]
    fn what_is_staged_is_read_here_and_by_whoever_takes_it_and_nobody_else() {
        let dir = tempfile::tempdir().unwrap();
        gix::init(dir.path()).unwrap();
        let open = || Repository::open(dir.path()).unwrap();
        let (first, second) = (open(), open());
        let batch = batch::begin_batch(&first);
        let [a, b] = ["a", "b"].map(|text| batch.blob(text.as_bytes()).unwrap());
        batch.stage().unwrap();

        assert_eq!(first.blob(a).unwrap(), b"a");
        assert!(!second.has(a));
        transfer_staged(&second, &first).unwrap();
        assert_eq!(second.blob(b).unwrap(), b"b");

        discard_staged(&second);
        assert!(!second.has(b) && first.has(b) && !open().has(b));
    }
}
