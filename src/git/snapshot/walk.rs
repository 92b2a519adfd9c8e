//! Walks the worktree with several threads; each takes directories from a shared queue.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::context::ScanContext;
use super::dir_scan::{DirTask, Listing, Scanned};
use super::rules::IgnoreRules;
use super::scan::scan_dir;
use crate::host::threads::{cores, join_both, parallel_map};

/// Number of directories that make another thread worthwhile.
const PARALLEL_DIRS: usize = 32;
/// Upper bound on threads. More than cores, because on a cold cache they wait for the disk.
const MOST_THREADS: usize = 8;
/// Threads beyond the number of cores start after this delay: a walk that does not wait for the
/// disk is usually done by then.
const PATIENCE: Duration = Duration::from_millis(20);
const BATCH: usize = 8;

struct Queue {
    state: Mutex<QueueState>,
    /// Notified when a task was added, or when all are done.
    wake: Condvar,
    /// Notified when all are done.
    finished: Condvar,
}

struct QueueState {
    tasks: Vec<DirTask>,
    /// Number of threads that can still add tasks.
    busy: usize,
    failed: Option<anyhow::Error>,
}

pub(super) fn walk_worktree(scan: &ScanContext<'_>) -> anyhow::Result<Vec<Scanned>> {
    let state = QueueState {
        tasks: vec![DirTask::default()],
        busy: 0,
        failed: None,
    };
    let queue = Queue {
        state: Mutex::new(state),
        wake: Condvar::new(),
        finished: Condvar::new(),
    };

    let threads = threads(scan);
    let scan_all = || run_in_threads(threads, &queue, || run_thread(scan, &queue));
    let scanned = if scan.expects_index() {
        // The user of the index gets the error, if any.
        join_both(|| scan.index().is_ok(), scan_all).1
    } else {
        scan_all()
    };
    let scanned = scanned.into_iter().flatten().collect();

    if let Some(error) = queue
        .state
        .into_inner()
        .expect("no thread panics with the lock")
        .failed
    {
        return Err(error);
    }

    let dir_count = scan.cache.as_ref().map_or(0, |cache| cache.dir_count());
    Ok(in_order(scanned, dir_count))
}

/// Sorts directories by path. Those in the cache have their order there; `places` is their number.
/// That is faster than comparing thousands of paths.
fn in_order(scanned: Vec<Scanned>, dir_count: usize) -> Vec<Scanned> {
    let mut cached: Vec<Option<Scanned>> = Vec::new();
    cached.resize_with(dir_count, || None);
    let (count, mut fresh) = (scanned.len(), Vec::new());
    for dir in scanned {
        let slot = match &dir.listing {
            Listing::Cached(number) | Listing::Patched(number, _) => cached.get_mut(*number),
            Listing::Read(_) => None,
        };
        match slot {
            Some(slot) => *slot = Some(dir),
            None => fresh.push(dir),
        }
    }

    fresh.sort_by(|a, b| a.path.cmp(&b.path));
    let mut fresh = fresh.into_iter().peekable();
    let mut all = Vec::with_capacity(count);
    for dir in cached.into_iter().flatten() {
        while let Some(earlier) = fresh.next_if(|fresh| fresh.path < dir.path) {
            all.push(earlier);
        }
        all.push(dir);
    }
    all.extend(fresh);
    all
}

fn threads(scan: &ScanContext<'_>) -> usize {
    let by_size = scan
        .cache
        .as_ref()
        .map_or(MOST_THREADS, |cache| cache.dir_count() / PARALLEL_DIRS);
    by_size.clamp(1, MOST_THREADS.min(4 * cores()))
}

/// Runs `work` in several threads. Those beyond the number of cores start late, and only if there
/// is work left.
fn run_in_threads<R: Send>(threads: usize, queue: &Queue, work: impl Fn() -> R + Sync) -> Vec<R> {
    let now = threads.min(cores());
    let work_in = |threads| parallel_map(0..threads, |_| work());
    if now == threads {
        return work_in(now);
    }

    let later = || match queue.is_done_within(PATIENCE) {
        true => Vec::new(),
        false => work_in(threads - now),
    };
    let (later, mut results) = join_both(later, || work_in(now));
    results.extend(later);
    results
}

fn run_thread(scan: &ScanContext<'_>, queue: &Queue) -> Vec<Scanned> {
    let repo = scan.shared.to_thread_local();
    let mut rules = IgnoreRules::new(&repo);
    let mut results = Vec::new();
    while let Some(batch) = queue.take() {
        let mut new_tasks = Vec::new();
        let result = batch.into_iter().try_for_each(|task| {
            let (scanned, tasks) = scan_dir(scan, &mut rules, task)?;
            results.push(scanned);
            new_tasks.extend(tasks);
            Ok(())
        });
        queue.put(new_tasks, result.err());
    }

    results
}

impl QueueState {
    fn is_done(&self) -> bool {
        self.failed.is_some() || (self.tasks.is_empty() && self.busy == 0)
    }
}

impl Queue {
    fn is_done_within(&self, time: Duration) -> bool {
        let state = self.state.lock().expect("no thread panics with the lock");
        let waited = self
            .finished
            .wait_timeout_while(state, time, |state| !state.is_done());
        let (state, _) = waited.expect("no thread panics with the lock");
        state.is_done()
    }

    /// Takes some directories. `None` once all are done or one has failed.
    fn take(&self) -> Option<Vec<DirTask>> {
        let mut state = self.state.lock().expect("no thread panics with the lock");
        loop {
            if state.failed.is_some() {
                return None;
            }

            if !state.tasks.is_empty() {
                state.busy += 1;
                // At most a quarter of the queue, so other threads find work too.
                let first = state
                    .tasks
                    .len()
                    .saturating_sub(BATCH.min(state.tasks.len().div_ceil(4)));
                return Some(state.tasks.split_off(first));
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

    fn put(&self, tasks: Vec<DirTask>, failed: Option<anyhow::Error>) {
        let mut state = self.state.lock().expect("no thread panics with the lock");
        state.busy -= 1;
        state.tasks.extend(tasks);
        state.failed = state.failed.take().or(failed);
        if state.is_done() {
            self.finished.notify_all();
        }
        if state.is_done() || !state.tasks.is_empty() {
            self.wake.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cache::Times;
    use super::*;

    #[track_caller]
    fn check(dirs: &[(&str, Option<usize>)], dir_count: usize, expected: &str) {
        let dir = |(path, slot): &(&str, Option<usize>)| Scanned {
            path: path.as_bytes().to_vec(),
            marks: 0,
            times: Times::default(),
            listing: match slot {
                Some(number) if number % 2 == 0 => Listing::Patched(*number, Vec::new()),
                Some(number) => Listing::Cached(*number),
                None => Listing::Read(Vec::new()),
            },
            link: None,
            left_out: Vec::new(),
        };
        let ordered = in_order(dirs.iter().map(dir).collect(), dir_count);
        let paths: Vec<_> = ordered
            .iter()
            .map(|dir| String::from_utf8_lossy(&dir.path).into_owned())
            .collect();
        assert_eq!(paths.join(" "), expected);
    }

    #[test]
    fn folders_come_in_the_order_of_their_paths_whether_they_are_known_or_not() {
        check(&[("b", None), ("", None), ("a", None)], 0, " a b");
        check(&[("b", Some(3)), ("", Some(0)), ("a", Some(1))], 5, " a b");
        check(
            &[
                ("a/b", Some(3)),
                ("c", None),
                ("a", Some(1)),
                ("a-b", None),
                ("", Some(0)),
                ("a/a", None),
            ],
            4,
            " a a-b a/a a/b c",
        );
        check(&[], 2, "");
    }
}
