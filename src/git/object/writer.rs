//! New objects, gathered and staged, or written as one pack.
//!
//! An object that is in a pack already is not written again; one that is loose is, because what no
//! ref reaches yet goes with the next `git gc --prune=now`.

use std::collections::HashSet;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use anyhow::Context as _;
use gix::ObjectId;
use gix::objs::{Exists as _, Kind};

use crate::git::keep::pack::keep;
use crate::git::keep::pack::{Pack, deflated};
use crate::git::object::large::{Hashed, LARGE};
use crate::git::object::memory::ObjectMemory;
use crate::git::object::staged;
use crate::git::object::tree::NewTree;
use crate::git::repository::Repository;

/// More new objects than this do not wait in memory.
const MANY: usize = 500;
/// More bytes than this wait in memory for no longer.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// More bytes than this are not staged: they would be copied for every thread. The tree of a folder
/// of 50,000 files has half as many.
const MOST_STAGED: usize = 4 * 1024 * 1024;

/// Objects on their way into the repository; shared by threads.
pub(in crate::git) struct Sink {
    /// What waits.
    waiting: Mutex<Waiting>,
    /// What packs have, those of others that came since we looked last not among them: looking
    /// for some at each new object is slow, and one that is written twice does no harm.
    packed: Mutex<gix::OdbHandle>,
    /// The folder of loose objects.
    objects: PathBuf,
    /// The hash function.
    hash: gix::hash::Kind,
    /// Whether everything stays in memory.
    read_only: bool,
}

/// What a sink has taken and not yet written.
#[derive(Default)]
struct Waiting {
    /// What it has seen.
    seen: HashSet<ObjectId>,
    /// New objects, in memory.
    new: Vec<(ObjectId, Kind, Vec<u8>)>,
    /// The size of these.
    bytes: usize,
    /// The pack, once there are many.
    pack: Option<Pack>,
}

impl Sink {
    /// Starts with nothing.
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
        }
    }

    /// Takes an object and returns its id.
    pub(in crate::git) fn add(&self, kind: Kind, data: Vec<u8>) -> anyhow::Result<ObjectId> {
        self.add_unless(None, kind, data)
    }

    /// As [`Sink::add`], for what may be an object that is there and known to be whole.
    pub(in crate::git) fn add_unless(
        &self,
        known: Option<ObjectId>,
        kind: Kind,
        data: Vec<u8>,
    ) -> anyhow::Result<ObjectId> {
        let id = gix::objs::compute_hash(self.hash, kind, &data)
            .map_err(|e| anyhow::anyhow!("{e}").context("hashing"))?;
        if known == Some(id) {
            return Ok(id);
        }

        let lock = || self.waiting();
        if !lock().seen.insert(id) || self.is_packed(&id) {
            return Ok(id);
        }

        // It does not wait in memory, and is compressed by one thread at a time.
        if data.len() as u64 > LARGE && !self.read_only {
            let mut waiting = lock();
            self.pack_of(&mut waiting)?.push_large(id, kind, &data)?;
            return Ok(id);
        }

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
        if !self.read_only && (waiting.new.len() > MANY || waiting.bytes > MOST_BYTES) {
            self.spill(&mut waiting)?;
        }

        Ok(id)
    }

    /// As [`Sink::add_unless`], for a tree, of which `memory` keeps a large one.
    pub(in crate::git) fn add_tree(
        &self,
        memory: &ObjectMemory,
        known: Option<ObjectId>,
        tree: NewTree,
    ) -> anyhow::Result<ObjectId> {
        let large = memory.is_large_tree(&tree.data).then(|| tree.clone());
        let id = self.add_unless(known, Kind::Tree, tree.data)?;
        if let Some(tree) = large {
            memory.keep_tree(id, tree);
        }
        Ok(id)
    }

    /// Takes a large blob, which is read twice and is in no memory as a whole; returns its id, or
    /// nothing if it did not stay the same, or has not as many bytes as was said.
    pub(in crate::git) fn add_large<R: Read>(
        &self,
        size: u64,
        open: impl Fn() -> R,
    ) -> anyhow::Result<Option<ObjectId>> {
        let mut first = Hashed::new(open(), self.hash, size);
        // Whoever asked finds out why it cannot be read.
        let Ok(length) = first.drain() else {
            return Ok(None);
        };
        if length != size {
            return Ok(None);
        }

        let id = first.id().context("hashing")?;

        // Compressed by one thread at a time.
        let mut waiting = self.waiting();
        if waiting.seen.contains(&id) || self.is_packed(&id) {
            return Ok(Some(id));
        }

        let added = self
            .pack_of(&mut waiting)?
            .push_blob(id, size, &mut open())?;
        if added {
            waiting.seen.insert(id);
        }

        Ok(added.then_some(id))
    }

    /// Returns what waits.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("no thread panics with the lock")
    }

    /// Returns the pack, which is begun if need be.
    fn pack_of<'w>(&self, waiting: &'w mut Waiting) -> anyhow::Result<&'w mut Pack> {
        match &mut waiting.pack {
            Some(pack) => Ok(pack),
            none => Ok(none.insert(Pack::new(&self.objects.join("pack"))?)),
        }
    }

    /// Returns whether an object is staged, or in a pack and nowhere else.
    fn is_packed(&self, id: &ObjectId) -> bool {
        let packed = || self.packed.lock().expect("no thread panics with the lock");
        !self.is_loose(id) && packed().exists(id)
    }

    /// Returns whether everything stays in memory, because nothing can be written.
    pub(in crate::git) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Returns whether an object is loose, be it empty because power was lost before its bytes were
    /// on disk.
    fn is_loose(&self, id: &ObjectId) -> bool {
        let hex = id.to_hex().to_string();
        self.objects.join(&hex[..2]).join(&hex[2..]).exists()
    }

    /// Moves what waits in memory into the pack.
    fn spill(&self, waiting: &mut Waiting) -> anyhow::Result<()> {
        let mut pack = match waiting.pack.take() {
            Some(pack) => pack,
            None => Pack::new(&self.objects.join("pack"))?,
        };
        for (id, kind, data) in waiting.new.drain(..) {
            pack.push(id, &deflated(kind, &data)?)?;
        }

        waiting.bytes = 0;
        waiting.pack = Some(pack);
        Ok(())
    }

    /// Leaves what was taken in memory until a ref is about to reach it; much of it is written as a
    /// pack. Returns the `.keep` file of that, if there is one.
    pub(in crate::git) fn stage(self, repository: &Repository) -> anyhow::Result<Option<PathBuf>> {
        let waiting = self.waiting();
        let is_little = waiting.pack.is_none() && waiting.bytes <= MOST_STAGED;
        drop(waiting);
        if !is_little && !self.read_only {
            return self.finish(repository);
        }

        let waiting = self.waiting.into_inner();
        let waiting = waiting.expect("no thread panics with the lock");
        staged::stage(repository, waiting.new)?;
        Ok(None)
    }

    /// Writes what was taken; returns the `.keep` file, if there was anything.
    pub(in crate::git) fn finish(self, repository: &Repository) -> anyhow::Result<Option<PathBuf>> {
        if self.read_only {
            return self.stage(repository);
        }

        let mut waiting = self
            .waiting
            .into_inner()
            .expect("no thread panics with the lock");
        if waiting.pack.is_none() && waiting.new.is_empty() {
            return Ok(None);
        }

        let folder = keep::pack_folder(repository);
        let mut pack = waiting.pack.take().map_or_else(|| Pack::new(&folder), Ok)?;
        for (id, kind, data) in waiting.new.drain(..) {
            pack.push(id, &deflated(kind, &data)?)?;
        }

        pack.finish(repository).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::object::BlobId;

    #[test]
    fn a_pack_never_takes_the_name_of_one_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        gix::init(folder.path()).unwrap();
        let repository = Repository::open(folder.path()).unwrap();
        let write = || {
            let sink = Sink::new(&Repository::open(folder.path()).unwrap());
            let id = gix::objs::compute_hash(sink.hash, Kind::Blob, b"same").unwrap();
            let same = (id, Kind::Blob, b"same".to_vec());
            sink.waiting.lock().unwrap().new.push(same);
            (id, sink.finish(&repository).unwrap().unwrap())
        };
        let (id, first) = write();
        keep::release(&first).unwrap();
        let (_, second) = write();
        // A repack that began in between removes what it has listed.
        for ending in ["pack", "idx"] {
            std::fs::remove_file(first.with_extension(ending)).unwrap();
        }
        assert!(second.with_extension("pack").exists());
        let anew = Repository::open(folder.path()).unwrap();
        assert_eq!(anew.blob(BlobId::of(id)).unwrap(), b"same");
    }

    #[test]
    fn a_large_object_is_written_as_any_other() {
        let folder = tempfile::tempdir().unwrap();
        gix::init(folder.path()).unwrap();
        let repository = Repository::open(folder.path()).unwrap();
        let large: Vec<u8> = (0..LARGE as usize + 1)
            .map(|at| (at / 7 % 251) as u8)
            .collect();

        let sink = Sink::new(&repository);
        let add = |data: &[u8]| BlobId::of(sink.add(Kind::Blob, data.to_vec()).unwrap());
        let ids = [&b"before"[..], &large, b"after", &large].map(add);
        let keep = sink.finish(&repository).unwrap().unwrap();

        let read = ids.map(|id| repository.blob(id).unwrap());
        assert!(read == [&b"before"[..], &large, b"after", &large]);
        // git itself reads the pack, and finds each entry's checksum in the index.
        let mut git = repository.git().unwrap();
        let pack = keep.with_extension("pack");
        let verified = git.args(["verify-pack"]).arg(pack).output().unwrap();
        assert!(verified.status.success(), "{verified:?}");
    }
}
