//! Durability: no ref points at an object that a power cut could still take.
//!
//! What is written stays in the system's memory for a while. A ref that reached the disk before the
//! objects behind it would dangle after a power cut, and stop the user's own `git gc`, `git fetch`
//! and `git log --all`. So a ref moves only after one flush of the file system that has the
//! objects. One flush covers everything written before it; a second one without new objects costs
//! nothing. If the system has no such flush, the objects are made durable file by file.

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

/// Counts what was written. It begins with what other programs wrote before this one started:
/// HEAD's own objects may be seconds old, and git does not flush loose ones.
static WRITTEN: AtomicU64 = AtomicU64::new(1);

/// How far each file system, by its device, is flushed.
static FLUSHED: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

/// Notes that objects were written, or that some were found that another program may have written
/// just now.
pub(in crate::git) fn note_written() {
    WRITTEN.fetch_add(1, Ordering::SeqCst);
}

/// Makes every object durable that was written or found so far.
///
/// # Errors
/// The system could not write something. It must be taken for lost: trying again proves nothing,
/// because the kernel forgets what it failed to write.
pub fn flush(repository: &Repository) -> anyhow::Result<()> {
    if repository.read_only {
        return Ok(());
    }

    let folder = repository.gix.objects.store_ref().path();
    let device = folder
        .metadata()
        .with_context(|| format!("looking at `{}`", folder.display()))?
        .dev();

    // Read before the flush: what a thread adds meanwhile waits for the next one.
    let written = WRITTEN.load(Ordering::SeqCst);
    if flushed(device) >= written {
        return Ok(());
    }

    let during = "making objects durable";
    if sync_whole(folder).context(during)? {
        fresh::note_flushed(folder);
    } else {
        flush_each(repository).context(during)?;
    }

    let mut all = FLUSHED.lock().expect("nothing panics with the lock");
    let known = all.entry(device).or_default();
    *known = written.max(*known);
    Ok(())
}

/// Makes objects durable file by file, those included that this repository borrows.
fn flush_each(repository: &Repository) -> anyhow::Result<()> {
    let store = repository.gix.objects.store_ref();
    fresh::flush(store.path())?;
    for folder in store.alternate_db_paths().during("reading alternates")? {
        match fresh::flush(&folder) {
            // What is not there has no objects.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            flushed => flushed?,
        }
    }

    Ok(())
}

/// Returns how far a file system is flushed.
fn flushed(device: u64) -> u64 {
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
        let folder = tempfile::tempdir().unwrap();
        gix::init(folder.path()).unwrap();
        let repository = Repository::open(folder.path()).unwrap();
        let device = folder.path().metadata().unwrap().dev();

        flush(&repository).unwrap();
        let first = flushed(device);
        assert!(first > 0);

        note_written();
        assert!(flushed(device) < WRITTEN.load(Ordering::SeqCst));
        flush(&repository).unwrap();
        assert!(flushed(device) > first);
    }
}
