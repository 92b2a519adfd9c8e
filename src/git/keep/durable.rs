//! Ensures that no ref becomes durable before its objects.
//!
//! If a ref reached the disk before its objects, a power cut would leave it dangling and break the
//! user's `git gc`, `git fetch` and `git log --all`. So a ref moves only after a flush of the
//! objects' file system, or of each file where `syncfs` is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;

use crate::git::During as _;
use crate::git::repository::Repository;
use crate::host::file::{sync_dir, sync_file, sync_whole};

/// Counts writes. Starts at 1 for objects that other programs wrote: HEAD's own can be seconds old,
/// and git does not flush loose objects.
static WRITTEN: AtomicU64 = AtomicU64::new(1);

/// By device, the value of `WRITTEN` that is flushed.
static FLUSHED: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

/// Records that objects were written, or found that another program possibly wrote just now.
pub(in crate::git) fn note_written() {
    WRITTEN.fetch_add(1, Ordering::SeqCst);
}

/// Flushes all objects that were written or found so far.
///
/// After an error, the data counts as lost: a retry can succeed without it, because the kernel
/// drops pages that it failed to write.
pub fn flush(repository: &Repository) -> anyhow::Result<()> {
    if repository.read_only {
        return Ok(());
    }

    let dir = repository.gix.objects.store_ref().path();
    let device = dir
        .metadata()
        .with_context(|| format!("looking at `{}`", dir.display()))?
        .dev();

    // Read before the flush: objects that another thread writes during it need the next one.
    let written = WRITTEN.load(Ordering::SeqCst);
    // One flush covers everything that was written before it.
    if flushed_count(device) >= written {
        return Ok(());
    }

    let during = "making objects durable";
    if sync_whole(dir).context(during)? {
        note_all_flushed(dir);
    } else {
        flush_each_store(repository).context(during)?;
    }

    let mut all = FLUSHED.lock().expect("nothing panics with the lock");
    let flushed_to = all.entry(device).or_default();
    // Another thread can have flushed more in the meantime.
    *flushed_to = written.max(*flushed_to);
    Ok(())
}

/// Flushes objects file by file, including those of alternates.
fn flush_each_store(repository: &Repository) -> anyhow::Result<()> {
    let store = repository.gix.objects.store_ref();
    flush_recent(store.path())?;
    for dir in store.alternate_db_paths().during("reading alternates")? {
        match flush_recent(&dir) {
            // A missing alternate contains no objects.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            flushed => flushed?,
        }
    }

    Ok(())
}

fn flushed_count(device: u64) -> u64 {
    FLUSHED
        .lock()
        .expect("nothing panics with the lock")
        .get(&device)
        .copied()
        .unwrap_or_default()
}

// Flushes recent objects file by file, for systems without `syncfs`.
//
// Packs written by this process are known. Objects that they depend on can be just as recent, but
// written by other programs: git does not flush the loose objects of a commit.

/// Age after which every system has written a file back by itself.
const WRITEBACK_AGE: Duration = Duration::from_secs(10 * 60);

const PACK_DIR: &str = "pack";

/// Objects that are possibly not on disk yet.
#[derive(Default)]
struct RecentFiles {
    /// Packs that this process wrote and did not flush, without extension.
    own: BTreeSet<PathBuf>,
    /// Other files that it flushed, with their ctime.
    flushed: BTreeSet<(PathBuf, SystemTime)>,
}

static RECENT: Mutex<RecentFiles> = Mutex::new(RecentFiles {
    own: BTreeSet::new(),
    flushed: BTreeSet::new(),
});

/// Records a pack of this process, given the path of any of its files.
pub(in crate::git) fn note_pack(file: &Path) {
    lock_recent().own.insert(file.with_extension(""));
}

/// Records that everything in an object directory is flushed.
pub(in crate::git) fn note_all_flushed(objects: &Path) {
    lock_recent().own.retain(|pack| !pack.starts_with(objects));
}

/// Flushes the objects of a directory that are possibly not on disk.
pub(in crate::git) fn flush_recent(objects: &Path) -> io::Result<()> {
    let own: Vec<_> = lock_recent().own.iter().cloned().collect();
    for pack in own.iter().filter(|pack| pack.starts_with(objects)) {
        for ending in ["pack", "idx"] {
            sync_file(&pack.with_extension(ending))?;
        }
    }

    for dir in object_dirs(objects)? {
        if dir.ends_with(PACK_DIR) || is_recent(&dir.metadata()?) {
            flush_recent_in(&dir)?;
            sync_dir(File::open(dir)?)?;
        }
    }

    sync_dir(File::open(objects)?)?;
    note_all_flushed(objects);
    Ok(())
}

/// Flushes the recent files of a directory, except temporary ones.
fn flush_recent_in(dir: &Path) -> io::Result<()> {
    for entry in dir.read_dir()? {
        let entry = entry?;
        let name = entry.file_name();
        let is_temporary = ["tmp_", "."]
            .iter()
            .any(|start| name.as_encoded_bytes().starts_with(start.as_bytes()));
        let metadata = match entry.metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            metadata => metadata?,
        };

        if is_temporary || !metadata.is_file() || !is_recent(&metadata) {
            continue;
        }

        let file = (entry.path(), ctime_of(&metadata));
        if lock_recent().flushed.contains(&file) {
            continue;
        }

        match sync_file(&file.0) {
            // An unreadable file of another user is not used by us either.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
            synced => synced?,
        }

        lock_recent().flushed.insert(file);
    }

    Ok(())
}

fn object_dirs(objects: &Path) -> io::Result<Vec<PathBuf>> {
    let mut dirs = Vec::new();
    for entry in objects.read_dir()? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let name = name.as_encoded_bytes();
        let is_loose = name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit);
        if (is_loose || name == PACK_DIR.as_bytes()) && path.is_dir() {
            dirs.push(path);
        }
    }

    Ok(dirs)
}

/// Returns whether a file, or the entries of a directory, are possibly not on disk yet. The mtime
/// proves nothing, because copying can preserve it.
pub(in crate::git) fn is_recent(metadata: &Metadata) -> bool {
    // A time in the future counts as recent.
    !ctime_of(metadata)
        .elapsed()
        .is_ok_and(|age| age > WRITEBACK_AGE)
}

fn ctime_of(metadata: &Metadata) -> SystemTime {
    let seconds = Duration::from_secs(metadata.ctime().try_into().unwrap_or_default());
    let nanos = Duration::from_nanos(metadata.ctime_nsec().try_into().unwrap_or_default());
    SystemTime::UNIX_EPOCH + seconds + nanos
}

fn lock_recent() -> MutexGuard<'static, RecentFiles> {
    RECENT.lock().expect("nothing panics with the lock")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::sample;

    #[test]
    fn a_flush_covers_what_was_written_before_it_and_nothing_after() {
        let (dir, repository) = sample::repository();
        let device = dir.path().metadata().unwrap().dev();

        flush(&repository).unwrap();
        let first = flushed_count(device);
        assert!(first > 0);

        note_written();
        assert!(flushed_count(device) < WRITTEN.load(Ordering::SeqCst));
        flush(&repository).unwrap();
        assert!(flushed_count(device) > first);
    }
}

#[cfg(test)]
mod fresh_tests {
    use super::*;

    #[test]
    fn what_was_copied_or_written_now_is_young_whatever_its_bytes_date_from() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        file.as_file().set_modified(long_ago).unwrap();
        assert!(is_recent(&file.as_file().metadata().unwrap()));
    }

    #[test]
    fn a_pack_of_ours_is_known_until_it_is_flushed() {
        let dir = tempfile::tempdir().unwrap();
        let pack = dir.path().join("pack/pack-1.pack");
        std::fs::create_dir_all(dir.path().join("pack")).unwrap();
        std::fs::create_dir_all(dir.path().join("ab")).unwrap();
        std::fs::write(dir.path().join("ab/cd"), "x").unwrap();
        std::fs::write(&pack, "x").unwrap();
        note_pack(&pack);
        flush_recent(dir.path()).unwrap();

        let state = lock_recent();
        let is_here = |path: &PathBuf| path.starts_with(dir.path());
        assert!(!state.own.iter().any(is_here));
        let mut flushed: Vec<_> = state.flushed.iter().map(|file| &file.0).collect();
        flushed.retain(|path| is_here(path));
        assert_eq!(flushed, [&dir.path().join("ab/cd"), &pack]);
    }
}
