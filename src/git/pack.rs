//! Many new objects at once: few are written loose, many as one pack.
//!
//! Objects that exist already are not written again; a loose one gets a new file time, so that a
//! `git gc` that runs beside us does not prune what the coming ref will reach. A pack gets a
//! `.keep` file first; [`Repository::release`] removes it once a ref reaches what is in it.

use std::collections::HashSet;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use gix::ObjectId;
use gix::objs::{Exists as _, Kind, Write as _};
use gix::zlib::Compression;
use gix::zlib::stream::deflate;
use rustix::fs::{AtFlags, Timespec, Timestamps, UTIME_NOW};

use super::During;
use super::object::persist;
use super::repository::Repository;

/// More new objects than this become a pack.
const MOST_LOOSE: usize = 500;
/// More bytes than this wait in memory for no longer.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// Fewer objects than this are not worth a second thread.
const FEW: usize = 24;
/// How our `.keep` files begin; the process that needs the pack follows.
const KEEP: &str = "teddy ";

/// Objects on their way into the repository; shared by threads.
pub(in crate::git) struct Sink {
    /// What waits.
    waiting: Mutex<Waiting>,
    /// The folder of the objects.
    objects: PathBuf,
    /// The hash function.
    hash: gix::hash::Kind,
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

/// A pack in the making.
struct Pack {
    /// The stream so far.
    file: tempfile::NamedTempFile,
    /// How many objects it has.
    count: u32,
}

impl Sink {
    /// Starts with nothing.
    pub(in crate::git) fn new(repository: &Repository) -> Sink {
        let gix = &repository.gix;
        Sink { waiting: Mutex::default(), objects: gix.objects.store_ref().path().to_owned(), hash: gix.object_hash() }
    }

    /// Takes an object and returns its id; `gix` is the calling thread's own handle.
    pub(in crate::git) fn add(&self, gix: &gix::Repository, kind: Kind, data: Vec<u8>) -> anyhow::Result<ObjectId> {
        let id = gix::objs::compute_hash(self.hash, kind, &data).map_err(|e| anyhow::anyhow!("{e}").context("hashing"))?;
        let lock = || self.waiting.lock().expect("no thread panics with the lock");
        if !lock().seen.insert(id) || self.freshen(&id) || gix.objects.exists(&id) {
            return Ok(id);
        }
        let packed = if lock().pack.is_some() { Some(deflated(kind, &data)?) } else { None };
        let mut waiting = lock();
        if let (Some(pack), Some(packed)) = (&mut waiting.pack, packed) {
            pack.push(&packed)?;
            return Ok(id);
        }
        waiting.bytes += data.len();
        waiting.new.push((id, kind, data));
        if waiting.new.len() > MOST_LOOSE || waiting.bytes > MOST_BYTES {
            self.spill(&mut waiting)?;
        }
        Ok(id)
    }

    /// Gives a loose object a new time; returns whether there is one. An empty file is none: power
    /// was lost before its bytes were on disk.
    fn freshen(&self, id: &ObjectId) -> bool {
        let hex = id.to_hex().to_string();
        let path = self.objects.join(&hex[..2]).join(&hex[2..]);
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() > 0)
            && rustix::fs::utimensat(rustix::fs::CWD, &path, &times, AtFlags::empty()).is_ok()
    }

    /// Moves what waits in memory into the pack.
    fn spill(&self, waiting: &mut Waiting) -> anyhow::Result<()> {
        let mut pack = match waiting.pack.take() {
            Some(pack) => pack,
            None => Pack::new(&self.objects.join("pack"))?,
        };
        for (_, kind, data) in waiting.new.drain(..) {
            pack.push(&deflated(kind, &data)?)?;
        }
        waiting.bytes = 0;
        waiting.pack = Some(pack);
        Ok(())
    }

    /// Writes what was taken; returns the `.keep` file, if a pack was made.
    pub(in crate::git) fn finish(self, gix: &gix::Repository) -> anyhow::Result<Option<PathBuf>> {
        let mut waiting = self.waiting.into_inner().expect("no thread panics with the lock");
        let Some(mut pack) = waiting.pack.take() else {
            write_loose(gix, &waiting.new)?;
            return Ok(None);
        };
        for (_, kind, data) in waiting.new.drain(..) {
            pack.push(&deflated(kind, &data)?)?;
        }
        pack.finish(&self.objects.join("pack"), self.hash)
    }
}

/// Writes objects loose, in parallel if they are many.
fn write_loose(gix: &gix::Repository, new: &[(ObjectId, Kind, Vec<u8>)]) -> anyhow::Result<()> {
    let write = |gix: &gix::Repository, part: &[(ObjectId, Kind, Vec<u8>)]| -> anyhow::Result<()> {
        for (id, kind, data) in part {
            persist(|| gix.objects.write_buf_with_known_id(*kind, data, *id))?;
        }
        Ok(())
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(new.len() / FEW);
    if threads < 2 {
        return write(gix, new);
    }
    let shared = gix.clone().into_sync();
    std::thread::scope(|scope| {
        let parts = new.chunks(new.len().div_ceil(threads));
        let started: Vec<_> = parts.map(|part| scope.spawn(|| write(&shared.to_thread_local(), part))).collect();
        started.into_iter().try_for_each(|thread| thread.join().expect("writing objects does not panic"))
    })
}

/// Returns an object as a pack stores it.
fn deflated(kind: Kind, data: &[u8]) -> anyhow::Result<Vec<u8>> {
    let number: u8 = match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    };
    let mut entry = Vec::with_capacity(data.len() / 2 + 16);
    let mut size = data.len() as u64;
    let mut byte = (number << 4) | (size & 15) as u8;
    size >>= 4;
    while size != 0 {
        entry.push(byte | 0x80);
        byte = (size & 0x7f) as u8;
        size >>= 7;
    }
    entry.push(byte);
    let mut zlib = deflate::Write::new(entry, Compression::BEST_SPEED);
    zlib.write_all(data)?;
    zlib.flush()?;
    Ok(zlib.into_inner())
}

impl Pack {
    /// Starts a pack; its number of objects is filled in at the end.
    fn new(folder: &Path) -> anyhow::Result<Pack> {
        std::fs::create_dir_all(folder).context("making the folder of packs")?;
        // `git gc` clears files of this name, should we be killed.
        let mut file = tempfile::Builder::new().prefix("tmp_pack_").tempfile_in(folder).context("starting a pack")?;
        file.write_all(b"PACK\0\0\0\x02\0\0\0\0").context("starting a pack")?;
        Ok(Pack { file, count: 0 })
    }

    /// Adds an object.
    fn push(&mut self, entry: &[u8]) -> anyhow::Result<()> {
        self.file.write_all(entry).context("writing a pack")?;
        self.count += 1;
        Ok(())
    }

    /// Writes count and checksum, then lets gix check and index the stream.
    fn finish(mut self, folder: &Path, hash: gix::hash::Kind) -> anyhow::Result<Option<PathBuf>> {
        let sum = self.seal(hash).context("finishing a pack")?;
        self.file.write_all(sum.as_slice()).context("finishing a pack")?;
        self.file.seek(SeekFrom::Start(0)).context("finishing a pack")?;
        let mut stream = BufReader::with_capacity(1 << 16, self.file.as_file_mut());
        let outcome = gix_pack::Bundle::write_to_directory(
            &mut stream,
            Some(folder),
            &mut gix::progress::Discard,
            &AtomicBool::new(false),
            None::<gix::objs::find::Never>,
            hash,
            gix_pack::bundle::write::Options::default(),
        )
        .during("indexing a pack")?;
        if let Some(keep) = &outcome.keep_path {
            std::fs::write(keep, format!("{KEEP}{}\n", std::process::id())).context("keeping a pack")?;
        }
        Ok(outcome.keep_path)
    }

    /// Fills in the count and returns the checksum of the whole.
    fn seal(&mut self, hash: gix::hash::Kind) -> anyhow::Result<ObjectId> {
        self.file.seek(SeekFrom::Start(8))?;
        self.file.write_all(&self.count.to_be_bytes())?;
        self.file.seek(SeekFrom::Start(0))?;
        let mut hasher = gix::hash::hasher(hash);
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = self.file.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            hasher.update(&buffer[..read]);
        }
        hasher.try_finalize().map_err(|e| anyhow::anyhow!("{e}"))
    }
}

impl Repository {
    /// Lets `git gc` have a pack, now that a ref reaches what is in it.
    ///
    /// # Errors
    /// Where the `.keep` file cannot be removed.
    pub fn release(&self, keep: &Path) -> anyhow::Result<()> {
        match std::fs::remove_file(keep) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).context("releasing a pack"),
            _ => Ok(()),
        }
    }

    /// Lets `git gc` have the packs whose runs are over; returns how many. The caller holds the lock
    /// and has made its own objects reachable.
    ///
    /// # Errors
    /// Where a `.keep` file of ours cannot be removed.
    pub fn release_all(&self) -> anyhow::Result<usize> {
        let Ok(folder) = std::fs::read_dir(self.gix.objects.store_ref().path().join("pack")) else { return Ok(0) };
        let mut released = 0;
        for path in folder.filter_map(|file| Some(file.ok()?.path())) {
            if path.extension().is_some_and(|ending| ending == "keep") && is_over(&path) {
                self.release(&path)?;
                released += 1;
            }
        }
        Ok(released)
    }
}

/// Returns whether a `.keep` file is ours, and of no run that still needs the pack.
fn is_over(keep: &Path) -> bool {
    let Ok(text) = std::fs::read_to_string(keep) else { return false };
    let Some(owner) = text.strip_prefix(KEEP) else { return false };
    let owner = owner.trim().parse().unwrap_or(0);
    owner == std::process::id() || !crate::host::process::is_alive(owner)
}
