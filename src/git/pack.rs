//! New objects, written as one pack.
//!
//! An object that is in a pack already is not written again; one that is loose is, because what no
//! ref reaches yet goes with the next `git gc --prune=now`. The pack gets a `.keep` file first;
//! [`Repository::release`] removes it once a ref reaches what is in it.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard};

use anyhow::Context as _;
use gix::ObjectId;
use gix::objs::{Exists as _, Kind};
use gix::zlib::Compression;
use gix::zlib::stream::deflate;

use super::During;
use super::repository::Repository;

/// More new objects than this do not wait in memory, and are indexed by all processors.
const MANY: usize = 500;
/// More bytes than this wait in memory for no longer.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// Names the packs that were made here, one in a line, below `teddy/`.
pub(in crate::git) const LIST: &str = "packs";
/// How our `.keep` files begin; the process that needs the pack follows.
const KEEP: &str = "teddy ";

/// The names of the `.keep` files that this process has written and not removed: that of a crashed process can name
/// the number which this one has now, and so can that of a process in another container.
static OWN: Mutex<BTreeSet<OsString>> = Mutex::new(BTreeSet::new());

/// Objects on their way into the repository; shared by threads.
pub(in crate::git) struct Sink {
    /// What waits.
    waiting: Mutex<Waiting>,
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

/// A pack in the making.
pub(in crate::git) struct Pack {
    /// The stream so far.
    file: tempfile::NamedTempFile,
    /// How many objects it has.
    count: u32,
}

impl Sink {
    /// Starts with nothing.
    pub(in crate::git) fn new(repository: &Repository) -> Sink {
        let gix = &repository.gix;
        Sink {
            waiting: Mutex::default(),
            objects: gix.objects.store_ref().path().to_owned(),
            hash: gix.object_hash(),
            read_only: repository.read_only,
        }
    }

    /// Takes an object and returns its id; `gix` is the calling thread's own handle.
    pub(in crate::git) fn add(&self, gix: &gix::Repository, kind: Kind, data: Vec<u8>) -> anyhow::Result<ObjectId> {
        let id = gix::objs::compute_hash(self.hash, kind, &data).map_err(|e| anyhow::anyhow!("{e}").context("hashing"))?;
        let lock = || self.waiting.lock().expect("no thread panics with the lock");
        if !lock().seen.insert(id) || (!self.is_loose(&id) && gix.objects.exists(&id)) {
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
        if !self.read_only && (waiting.new.len() > MANY || waiting.bytes > MOST_BYTES) {
            self.spill(&mut waiting)?;
        }
        Ok(id)
    }

    /// Returns whether an object is loose, be it empty because power was lost before its bytes were on disk.
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
        for (_, kind, data) in waiting.new.drain(..) {
            pack.push(&deflated(kind, &data)?)?;
        }
        waiting.bytes = 0;
        waiting.pack = Some(pack);
        Ok(())
    }

    /// Writes what was taken; returns the `.keep` file, if there was anything.
    pub(in crate::git) fn finish(self, repository: &Repository) -> anyhow::Result<Option<PathBuf>> {
        let mut waiting = self.waiting.into_inner().expect("no thread panics with the lock");
        if waiting.pack.is_none() && waiting.new.is_empty() {
            return Ok(None);
        }
        if self.read_only {
            let keep = |(_, kind, data): (_, _, Vec<u8>)| repository.write_raw(kind, &data).map(drop);
            return waiting.new.into_iter().try_for_each(keep).map(|()| None);
        }
        let folder = repository.pack_folder();
        let mut pack = waiting.pack.take().map_or_else(|| Pack::new(&folder), Ok)?;
        for (_, kind, data) in waiting.new.drain(..) {
            pack.push(&deflated(kind, &data)?)?;
        }
        pack.finish(repository).map(Some)
    }
}

/// Returns an object as a pack stores it.
pub(in crate::git) fn deflated(kind: Kind, data: &[u8]) -> anyhow::Result<Vec<u8>> {
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
    pub(in crate::git) fn new(folder: &Path) -> anyhow::Result<Pack> {
        std::fs::create_dir_all(folder).context("making the folder of packs")?;
        // `git gc` clears files of this name, should we be killed.
        let mut file = tempfile::Builder::new().prefix("tmp_pack_").tempfile_in(folder).context("starting a pack")?;
        file.write_all(b"PACK\0\0\0\x02\0\0\0\0").context("starting a pack")?;
        Ok(Pack { file, count: 0 })
    }

    /// Adds an object.
    pub(in crate::git) fn push(&mut self, entry: &[u8]) -> anyhow::Result<()> {
        self.file.write_all(entry).context("writing a pack")?;
        self.count += 1;
        Ok(())
    }

    /// Writes count and checksum, then lets gix check and index the stream; returns the `.keep` file.
    pub(in crate::git) fn finish(mut self, repository: &Repository) -> anyhow::Result<PathBuf> {
        let (folder, hash) = (repository.pack_folder(), repository.gix.object_hash());
        let sum = self.seal(hash).context("finishing a pack")?;
        self.file.write_all(sum.as_slice()).context("finishing a pack")?;
        self.file.seek(SeekFrom::Start(0)).context("finishing a pack")?;
        let mut stream = BufReader::with_capacity(1 << 16, self.file.as_file_mut());
        let outcome = gix_pack::Bundle::write_to_directory(
            &mut stream,
            Some(&folder),
            &mut gix::progress::Discard,
            &AtomicBool::new(false),
            None::<gix::objs::find::Never>,
            hash,
            gix_pack::bundle::write::Options { thread_limit: (self.count as usize <= MANY).then_some(1), ..Default::default() },
        )
        .during("indexing a pack")?;
        // Where there is a pack with just these objects already, gix leaves it as it is: not kept.
        let data = outcome.data_path.context("a pack without objects")?;
        let keep = data.with_extension("keep");
        if let Err(error) = std::fs::write(&keep, format!("{KEEP}{}\n", std::process::id())) {
            // An empty one, as gix leaves it on a full disk, would be nobody's and stay for ever.
            let _ = std::fs::remove_file(&keep);
            return Err(error).context("keeping a pack");
        }
        anyhow::ensure!(data.is_file(), "`git gc` removed a pack while it was written; try again");
        own().extend(keep.file_name().map(ToOwned::to_owned));
        // A pack that is not on the list is only never taken in.
        let _ = repository.list_pack(&keep);
        Ok(keep)
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
        keep.file_name().map(|name| own().remove(name));
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
        let over: Vec<_> = self.keep_files().into_iter().filter(|keep| owner_of(keep).is_some() && !is_kept(keep)).collect();
        over.iter().try_for_each(|keep| self.release(keep))?;
        Ok(over.len())
    }

    /// Returns the packs that were made here by their list, without their endings; some are gone.
    pub(in crate::git) fn listed_packs(&self) -> Vec<PathBuf> {
        let (folder, list) = (self.pack_folder(), std::fs::read_to_string(self.teddy_dir().join(LIST)).unwrap_or_default());
        let plain = |name: &&str| name.strip_prefix("pack-").is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_hexdigit()));
        list.lines().filter(plain).map(|name| folder.join(name)).collect()
    }

    /// Notes that a pack was made here.
    fn list_pack(&self, keep: &Path) -> std::io::Result<()> {
        let name = keep.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        std::fs::create_dir_all(self.teddy_dir())?;
        let mut list = std::fs::OpenOptions::new().append(true).create(true).open(self.teddy_dir().join(LIST))?;
        list.write_all(format!("{name}\n").as_bytes())
    }

    /// Returns the folder of packs.
    pub(in crate::git) fn pack_folder(&self) -> PathBuf {
        self.gix.objects.store_ref().path().join("pack")
    }

    /// Returns the `.keep` files that are there, ours or not.
    pub(in crate::git) fn keep_files(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.pack_folder()).into_iter().flatten().filter_map(|file| Some(file.ok()?.path()));
        files.filter(|path| path.extension().is_some_and(|ending| ending == "keep")).collect()
    }
}

/// Returns whether a `.keep` file is this process's own, and nobody has made it theirs since.
pub(in crate::git) fn is_own(keep: &Path) -> bool {
    owner_of(keep) == Some(std::process::id()) && keep.file_name().is_some_and(|name| own().contains(name))
}

/// Returns the names of this process's own `.keep` files.
fn own() -> MutexGuard<'static, BTreeSet<OsString>> {
    OWN.lock().expect("nothing panics with the lock")
}

/// Returns whether a `.keep` file is ours, and of a run that may still need the pack.
pub(in crate::git) fn is_kept(keep: &Path) -> bool {
    owner_of(keep).is_some_and(crate::host::process::is_alive)
}

/// Returns the process that a `.keep` file of ours names.
fn owner_of(keep: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(keep).ok()?;
    Some(text.strip_prefix(KEEP)?.trim().parse().unwrap_or(0))
}
