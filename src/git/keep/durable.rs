//! Ensures that no ref becomes durable before its objects.
//!
//! Written data stays in the page cache for a while. If a ref reached the disk before its objects,
//! a power cut would leave it dangling and break the user's `git gc`, `git fetch` and `git log
//! --all`. So a ref moves only after a flush of the objects' file system. One flush covers
//! everything written before; without new objects, a second one is skipped. Without `syncfs`, the
//! objects are flushed file by file.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;

use crate::git::During as _;
use crate::git::keep::fresh;
use crate::git::repository::Repository;
use crate::host::sync::sync_whole;

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
    if flushed_count(device) >= written {
        return Ok(());
    }

    let during = "making objects durable";
    if sync_whole(dir).context(during)? {
        fresh::note_all_flushed(dir);
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
    fresh::flush_recent(store.path())?;
    for dir in store.alternate_db_paths().during("reading alternates")? {
        match fresh::flush_recent(&dir) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_covers_what_was_written_before_it_and_nothing_after() {
        let dir = tempfile::tempdir().unwrap();
        gix::init(dir.path()).unwrap();
        let repository = Repository::open(dir.path()).unwrap();
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
