//! The walk over the worktree: folders in parallel, each by whichever thread is free.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::context::ScanContext;
use super::folder::{FolderTask, Scanned};
use super::rules::IgnoreRules;
use super::scan::scan_folder;
use crate::host::threads::{at_once, beside, cores};

/// How many folders make another thread worth its start.
const SHARE: usize = 32;
/// The most threads: more than cores, since a cold disk is what they wait for.
const MOST_THREADS: usize = 8;
/// Those beyond the cores begin after so long: by then most walks are done that wait for no disk.
const PATIENCE: Duration = Duration::from_millis(20);
/// How many folders a thread takes at once.
const BATCH: usize = 8;

/// Folders that wait for a thread.
struct Queue {
    /// What waits, and how many threads may still add to it.
    state: Mutex<QueueState>,
    /// Told when something was added or all is done.
    wake: Condvar,
    /// Told when all is done.
    done: Condvar,
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
        done: Condvar::new(),
    };

    let threads = threads(scan);
    let look = || look_in(threads, &queue, || work(scan, &queue));
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

/// Works in so many threads: those beyond the cores begin late, if there is something left to do.
fn look_in<R: Send>(threads: usize, queue: &Queue, work: impl Fn() -> R + Sync) -> Vec<R> {
    let now = threads.min(cores());
    let work_in = |threads| at_once(0..threads, |_| work());
    if now == threads {
        return work_in(now);
    }

    let later = || match queue.is_done_within(PATIENCE) {
        true => Vec::new(),
        false => work_in(threads - now),
    };
    let (later, mut done) = beside(later, || work_in(now));
    done.extend(later);
    done
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

impl QueueState {
    /// Returns whether no folder is left, or something has failed.
    fn is_done(&self) -> bool {
        self.failed.is_some() || (self.tasks.is_empty() && self.busy == 0)
    }
}

impl Queue {
    /// Returns whether there is nothing more to do, once that is so or this time has passed.
    fn is_done_within(&self, time: Duration) -> bool {
        let state = self.state.lock().expect("no thread panics with the lock");
        let waited = self
            .done
            .wait_timeout_while(state, time, |state| !state.is_done());
        let (state, _) = waited.expect("no thread panics with the lock");
        state.is_done()
    }

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
        if state.is_done() {
            self.done.notify_all();
        }
        if state.is_done() || !state.tasks.is_empty() {
            self.wake.notify_all();
        }
    }
}
