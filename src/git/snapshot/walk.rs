//! The walk over the worktree: folders in parallel, each by whichever thread is free.

use std::sync::{Condvar, Mutex};

use super::context::ScanContext;
use super::folder::{FolderTask, Scanned};
use super::rules::IgnoreRules;
use super::scan::scan_folder;
use crate::host::threads::{at_once, beside, cores};

/// How many folders make another thread worth its start.
const SHARE: usize = 32;
/// The most threads: more than cores, since a cold disk is what they wait for.
const MOST_THREADS: usize = 8;
/// How many folders a thread takes at once.
const BATCH: usize = 8;

/// Folders that wait for a thread.
struct Queue {
    /// What waits, and how many threads may still add to it.
    state: Mutex<QueueState>,
    /// Told when something was added or all is done.
    wake: Condvar,
}

/// What a queue holds.
struct QueueState {
    /// The folders.
    tasks: Vec<FolderTask>,
    /// How many threads are at work.
    busy: usize,
    /// What failed first.
    failed: Option<anyhow::Error>,
}

/// Looks at every folder of the worktree; the result is in the order of their paths.
pub(super) fn walk(scan: &ScanContext<'_>) -> anyhow::Result<Vec<Scanned>> {
    let state = QueueState {
        tasks: vec![FolderTask::default()],
        busy: 0,
        failed: None,
    };
    let queue = Queue {
        state: Mutex::new(state),
        wake: Condvar::new(),
    };

    let threads = threads(scan);
    let look = || at_once(0..threads, |_| work(scan, &queue));
    let scanned = if scan.expects_index() {
        // Whoever needs it finds what went wrong, too.
        beside(|| scan.index().is_ok(), look).1
    } else {
        look()
    };
    let mut scanned: Vec<Scanned> = scanned.into_iter().flatten().collect();

    if let Some(error) = queue
        .state
        .into_inner()
        .expect("no thread panics with the lock")
        .failed
    {
        return Err(error);
    }

    scanned.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(scanned)
}

/// Returns how many threads are worth it.
fn threads(scan: &ScanContext<'_>) -> usize {
    let worth = scan
        .cache
        .as_ref()
        .map_or(MOST_THREADS, |cache| cache.folder_count() / SHARE);
    worth.clamp(1, MOST_THREADS.min(4 * cores()))
}

/// Takes folders from the queue until there are none.
fn work(scan: &ScanContext<'_>, queue: &Queue) -> Vec<Scanned> {
    let repo = scan.shared.to_thread_local();
    let mut rules = IgnoreRules::new(&repo);
    let mut done = Vec::new();
    while let Some(batch) = queue.take() {
        let mut found = Vec::new();
        let result = batch.into_iter().try_for_each(|task| {
            let (scanned, tasks) = scan_folder(scan, &mut rules, task)?;
            done.push(scanned);
            found.extend(tasks);
            Ok(())
        });
        queue.put(found, result.err());
    }

    done
}

impl Queue {
    /// Takes some folders; nothing once all are done or something has failed.
    fn take(&self) -> Option<Vec<FolderTask>> {
        let mut state = self.state.lock().expect("no thread panics with the lock");
        loop {
            if state.failed.is_some() {
                return None;
            }

            if !state.tasks.is_empty() {
                state.busy += 1;
                let rest = state
                    .tasks
                    .len()
                    .saturating_sub(BATCH.min(state.tasks.len().div_ceil(4)));
                return Some(state.tasks.split_off(rest));
            }

            if state.busy == 0 {
                return None;
            }

            state = self
                .wake
                .wait(state)
                .expect("no thread panics with the lock");
        }
    }

    /// Gives back what was found while looking at some.
    fn put(&self, found: Vec<FolderTask>, failed: Option<anyhow::Error>) {
        let mut state = self.state.lock().expect("no thread panics with the lock");
        state.busy -= 1;
        state.tasks.extend(found);
        state.failed = state.failed.take().or(failed);
        if state.busy == 0 || !state.tasks.is_empty() || state.failed.is_some() {
            self.wake.notify_all();
        }
    }
}
