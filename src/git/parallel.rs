//! Runs work on many files in parallel.
//!
//! Small numbers of files are processed on the calling thread: starting a thread costs more than a
//! hundred files.

use super::repository::Repository;
use crate::git::object::writer;
use crate::host::threads::{cores, parallel_map};

/// Number of files that make another thread worthwhile.
const MIN_PART: usize = 256;

/// Upper bound on threads. Most of the work is in the file system, which does not scale further.
const MOST: usize = 8;

/// Runs `work` on consecutive parts of `items` and returns the results in order. Each part gets a
/// handle of the repository. After an error, the other parts still run.
pub fn map_parallel<T: Send, R: Send>(
    repository: &Repository,
    items: Vec<T>,
    work: impl Fn(&Repository, Vec<T>) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<R>> {
    let threads = threads(items.len());
    if threads == 1 {
        return Ok(vec![work(repository, items)?]);
    }

    let shared = repository.gix.clone().into_sync();
    let (workdir, common) = (&repository.workdir, &repository.common);
    let read_only = repository.read_only;
    let staged = writer::staged_objects(repository);
    let run = |part: Vec<T>| {
        let gix = shared.to_thread_local();
        let mut own = Repository::of(gix, workdir.clone(), common.clone(), read_only)
            .map_err(|format| anyhow::anyhow!("the refs are stored as `{format}`"))?;
        // Each handle has its own object memory, so staged objects are copied into it.
        own.gix.objects.enable_object_memory();
        writer::put_in_memory(&own, staged.iter().cloned())?;
        work(&own, part)
    };

    let length = items.len().div_ceil(threads);
    let mut items = items.into_iter();
    let parts = (0..threads).map(|_| items.by_ref().take(length).collect());
    let outcomes = parallel_map(parts, run);
    outcomes.into_iter().collect()
}

pub(in crate::git) fn threads(items: usize) -> usize {
    match items / MIN_PART {
        0 | 1 => 1,
        count => count.min(cores()).min(MOST),
    }
}
