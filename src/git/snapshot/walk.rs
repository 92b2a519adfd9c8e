//! Walks the worktree with several threads; each takes directories from a shared queue.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::context::ScanContext;
use super::folder::{FolderTask, Listing, Scanned};
use super::rules::IgnoreRules;
use super::scan::scan_folder;
use crate::host::threads::{at_once, beside, cores};

/// Number of directories that make another thread worthwhile.
const SHARE: usize = 32;
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
    done: Condvar,
}

struct QueueState {
    tasks: Vec<FolderTask>,
    /// Number of threads that can still add tasks.
    busy: usize,
    failed: Option<anyhow::Error>,
}

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
        // The user of the index gets the error, if any.
        beside(|| scan.index().is_ok(), look).1
    } else {
        look()
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

    let places = scan.cache.as_ref().map_or(0, |cache| cache.folder_count());
    Ok(in_order(scanned, places))
}

/// Sorts directories by path. Those in the cache have their order there; `places` is their number.
/// That is faster than comparing thousands of paths.
fn in_order(scanned: Vec<Scanned>, places: usize) -> Vec<Scanned> {
    let mut known: Vec<Option<Scanned>> = Vec::new();
    known.resize_with(places, || None);
    let (count, mut fresh) = (scanned.len(), Vec::new());
    for folder in scanned {
        let place = match &folder.listing {
            Listing::Kept(number) | Listing::Mended(number, _) => known.get_mut(*number),
            Listing::Read(_) => None,
        };
        match place {
            Some(place) => *place = Some(folder),
            None => fresh.push(folder),
        }
    }

    fresh.sort_by(|a, b| a.path.cmp(&b.path));
    let mut fresh = fresh.into_iter().peekable();
    let mut all = Vec::with_capacity(count);
    for folder in known.into_iter().flatten() {
        while let Some(earlier) = fresh.next_if(|fresh| fresh.path < folder.path) {
            all.push(earlier);
        }
        all.push(folder);
    }
    all.extend(fresh);
    all
}

fn threads(scan: &ScanContext<'_>) -> usize {
    let worth = scan
        .cache
        .as_ref()
        .map_or(MOST_THREADS, |cache| cache.folder_count() / SHARE);
    worth.clamp(1, MOST_THREADS.min(4 * cores()))
}

/// Runs `work` in several threads. Those beyond the number of cores start late, and only if there
/// is work left.
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
    fn is_done(&self) -> bool {
        self.failed.is_some() || (self.tasks.is_empty() && self.busy == 0)
    }
}

impl Queue {
    fn is_done_within(&self, time: Duration) -> bool {
        let state = self.state.lock().expect("no thread panics with the lock");
        let waited = self
            .done
            .wait_timeout_while(state, time, |state| !state.is_done());
        let (state, _) = waited.expect("no thread panics with the lock");
        state.is_done()
    }

    /// Takes some directories. `None` once all are done or one has failed.
    fn take(&self) -> Option<Vec<FolderTask>> {
        let mut state = self.state.lock().expect("no thread panics with the lock");
        loop {
            if state.failed.is_some() {
                return None;
            }

            if !state.tasks.is_empty() {
                state.busy += 1;
                // At most a quarter of the queue, so other threads find work too.
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

#[cfg(test)]
mod tests {
    use super::super::cache::Times;
    use super::*;

    #[track_caller]
    fn check(folders: &[(&str, Option<usize>)], places: usize, expected: &str) {
        let folder = |(path, place): &(&str, Option<usize>)| Scanned {
            path: path.as_bytes().to_vec(),
            marks: 0,
            times: Times::default(),
            listing: match place {
                Some(number) if number % 2 == 0 => Listing::Mended(*number, Vec::new()),
                Some(number) => Listing::Kept(*number),
                None => Listing::Read(Vec::new()),
            },
            link: None,
            left: Vec::new(),
        };
        let ordered = in_order(folders.iter().map(folder).collect(), places);
        let paths: Vec<_> = ordered
            .iter()
            .map(|folder| String::from_utf8_lossy(&folder.path).into_owned())
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
