//! Walks the worktree with several threads; each takes directories from a shared queue.
//!
//! The result is sorted by path. The first error ends the walk.

use std::hash::{BuildHasher as _, RandomState};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use gix::ObjectId;
use gix::objs::tree::EntryKind;
use rustix::fd::{AsFd as _, OwnedFd};

use super::cache::{Cache, CacheOrigin, CachedDir, FreshName, Times, mark};
use super::context::ScanContext;
use super::dir_scan::{DirTask, Listing, Scanned};
use super::limits::{LeftOut, Reason, display_path};
use super::list::DirListing;
use crate::git::paths::{self, is_valid_link_name};
use crate::git::snapshot::context::IgnoreRules;
use crate::git::snapshot::dir_scan::{NAMES_PER_THREAD, map_parts};
use crate::git::snapshot::list::{self, classify_entry};
use crate::git::stat::{
    NameKind, NameStat, each_name, is_absent, is_exhausted, open_dir, open_to_list, stat_fd,
    stat_name,
};
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
    let scanned = parallel_map(0..threads, |number| {
        let is_extra = number + cores() < threads;
        match is_extra && queue.is_done_within(PATIENCE) {
            true => Vec::new(),
            false => run_thread(scan, &queue),
        }
    });
    let mut scanned: Vec<Scanned> = scanned.into_iter().flatten().collect();

    if let Some(error) = queue
        .state
        .into_inner()
        .expect("no thread panics with the lock")
        .failed
    {
        return Err(error);
    }

    scanned.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(scanned)
}

fn threads(scan: &ScanContext<'_>) -> usize {
    let by_size = scan
        .cache
        .as_ref()
        .map_or(MOST_THREADS, |cache| cache.dir_count() / PARALLEL_DIRS);
    by_size.clamp(1, MOST_THREADS.min(4 * cores()))
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

// Scans one directory: keeps its names from the last snapshot if they are unchanged, or lists it
// again.

pub(super) fn scan_dir(
    scan: &ScanContext<'_>,
    rules: &mut IgnoreRules<'_>,
    mut task: DirTask,
) -> anyhow::Result<(Scanned, Vec<DirTask>)> {
    if task.absent {
        return scan_absent(scan, rules, task);
    }

    let opened = open_dir(&scan.top, &task.path).and_then(|dir| Ok((stat_fd(dir.as_fd())?, dir)));
    let (name_stat, dir) = match opened {
        Ok(opened) => opened,
        Err(error) => return scan_closed(scan, rules, task, error),
    };

    task.cache_number = task
        .cache_number
        .or_else(|| scan.cache.as_ref()?.find_dir(&task.path));
    let times = Times::from(&name_stat.stat);
    if let (Some(cache), Some(number), false) =
        (&scan.cache, task.cache_number, task.relist || task.distrust)
        && scan.names_are_valid_in(cache, &cache.dir(number))
        && let Some(reused) = reuse_names(&Reuse {
            scan,
            cache,
            dir: &dir,
            number,
            times,
        })?
    {
        return Ok(reused);
    }

    let names = match open_to_list(&dir) {
        Ok(opened) => opened,
        Err(error) => return scan_closed(scan, rules, task, error),
    };
    let mut list = DirListing::new(scan, rules, task)?;
    list.scanned.times = times;
    list.read(&names)
}

/// Result for a directory that cannot be opened: its tracked files are taken from the index.
fn scan_closed(
    scan: &ScanContext<'_>,
    rules: &mut IgnoreRules<'_>,
    mut task: DirTask,
    error: std::io::Error,
) -> anyhow::Result<(Scanned, Vec<DirTask>)> {
    // Running out of descriptors or memory proves nothing about the files.
    if is_exhausted(&error) {
        let action = || format!("cannot open the directory `{}`", display_path(&task.path));
        return Err(error).with_context(action);
    }

    task.absent = true;
    task.unreadable = !is_absent(&error);
    let left_out = task.unreadable.then(|| LeftOut {
        path: display_path(&task.path),
        reason: Reason::Unreadable(error.kind().to_string()),
    });
    let mut scanned = scan_absent(scan, rules, task)?;

    scanned.0.marks |= mark::RELIST;
    scanned.0.left_out.extend(left_out);
    Ok(scanned)
}

/// Result for a missing directory: only the frozen entries of the index.
fn scan_absent(
    scan: &ScanContext<'_>,
    rules: &mut IgnoreRules<'_>,
    task: DirTask,
) -> anyhow::Result<(Scanned, Vec<DirTask>)> {
    if let (Some(cache), Some(number), false) = (&scan.cache, task.cache_number, task.unreadable)
        && scan.names_are_valid_in(cache, &cache.dir(number))
        && cache.dir(number).marks & (mark::VIRTUAL | mark::RELIST) == mark::VIRTUAL
    {
        return Ok(copy_cached_dir(cache, number, None));
    }
    let mut list = DirListing::new(scan, rules, task)?;
    list.scanned.marks |= mark::VIRTUAL;

    list.finish()
}

/// A directory whose names are possibly unchanged.
struct Reuse<'a> {
    scan: &'a ScanContext<'a>,
    cache: &'a Cache,
    dir: &'a OwnedFd,
    number: usize,
    times: Times,
}

/// Returns the directory with the names of the last snapshot, and changed files marked as to be
/// read. `None` if it must be listed.
fn reuse_names(at: &Reuse<'_>) -> anyhow::Result<Option<(Scanned, Vec<DirTask>)>> {
    let cached = at.cache.dir(at.number);
    if cached.marks & (mark::RELIST | mark::VIRTUAL) != 0 {
        return Ok(None);
    }

    // A second change within the clock tick of the last snapshot leaves the times as they are.
    let is_racy = (at.cache.basis.stamp).is_racy_at(at.times.mtime, at.times.ctime);
    let stands = cached.times == at.times && !is_racy;
    if cached.marks & mark::EMBEDDED != 0 {
        let link = if stands {
            list::embedded_commit(at.scan, cached.path)
        } else {
            None
        };
        return Ok(link.map(|link| reuse_dir(at, Some(link))));
    }

    let Some(changed) = changed_entries(at, &cached, stands) else {
        return Ok(None);
    };
    let (mut scanned, tasks) = reuse_dir(at, None);
    if !changed.is_empty() {
        scanned.listing = Listing::Patched(at.number, mark_unread(at, &cached, &changed)?);
    }

    Ok(Some((scanned, tasks)))
}

/// Returns the entries that changed, by position; `None` if the directory must be listed.
///
/// If its times changed, its names can still be the same, because a turn replaces files by rename.
/// Then the names are compared too, in parallel with the stats.
fn changed_entries(
    at: &Reuse<'_>,
    cached: &CachedDir<'_>,
    is_unchanged: bool,
) -> Option<Vec<(usize, NameStat)>> {
    let is_other = AtomicBool::new(false);
    let stat_all = || {
        let parts = map_parts(cached.entries.clone(), NAMES_PER_THREAD, |part| {
            changed_in_part(at, cached, part, &is_other)
        });
        parts.into_iter().collect::<Option<Vec<_>>>()
    };

    let parts = if is_unchanged {
        stat_all()
    } else if cached.entries.len() < NAMES_PER_THREAD {
        has_cached_names(at, cached).then(stat_all).flatten()
    } else {
        let compare_names = || is_other.store(!has_cached_names(at, cached), Ordering::Relaxed);
        join_both(compare_names, stat_all).1
    };
    let is_same = !is_other.into_inner();
    parts.filter(|_| is_same).map(|parts| parts.concat())
}

/// Returns whether the directory has exactly the cached names, with directories in the same places.
fn has_cached_names(at: &Reuse<'_>, cached: &CachedDir<'_>) -> bool {
    let mut expected = NameSum::default();
    for n in cached.entries.clone() {
        let entry = at.cache.entry(n);
        if entry.origin == CacheOrigin::Inherited {
            return false;
        }
        expected.add(entry.name, entry.kind == EntryKind::Commit);
    }

    let skip = cached.path.len() + usize::from(!cached.path.is_empty());
    for &child in at.cache.children(at.number) {
        let child = at.cache.dir(child as usize);
        if child.marks & mark::VIRTUAL != 0 {
            return false;
        }
        expected.add(&child.path[skip..], true);
    }

    let (mut actual, is_top) = (expected.without_names(), cached.path.is_empty());
    let listed = open_to_list(at.dir).and_then(|dir| {
        each_name(&dir, |name, kind| {
            if !(is_top && name == b".git") {
                actual.add(name, kind == NameKind::Dir);
            }
        })
    });
    listed.is_ok() && actual == expected
}

/// Order-independent hash of a set of names.
///
/// The key is random, so names with equal sums cannot be chosen on purpose. Sorting tens of
/// thousands of names would take as long as reading all their stats.
#[derive(Default)]
struct NameSum {
    key: RandomState,
    count: usize,
    sum: u64,
}

impl NameSum {
    /// Returns an empty sum with the same key.
    fn without_names(&self) -> NameSum {
        NameSum {
            key: self.key.clone(),
            ..NameSum::default()
        }
    }

    fn add(&mut self, name: &[u8], is_dir: bool) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(self.key.hash_one((name, is_dir)));
    }
}

impl PartialEq for NameSum {
    fn eq(&self, other: &NameSum) -> bool {
        (self.count, self.sum) == (other.count, other.sum)
    }
}

/// Like [`changed_entries`], for one part. `None` also if `is_other` is set in the meantime.
fn changed_in_part(
    at: &Reuse<'_>,
    cached: &CachedDir<'_>,
    part: Range<usize>,
    is_other: &AtomicBool,
) -> Option<Vec<(usize, NameStat)>> {
    let mut changed = Vec::new();
    for n in part {
        if is_other.load(Ordering::Relaxed) {
            return None;
        }

        let entry = at.cache.entry(n);
        match (entry.origin, entry.kind) {
            (CacheOrigin::Inherited, _) => {}
            (_, EntryKind::Commit) => {
                let path = paths::join(cached.path, entry.name);
                list::embedded_commit(at.scan, &path).filter(|id| *id == entry.id)?;
            }
            _ => {
                let current = stat_name(at.dir, entry.name).ok()?;
                if at.scan.unchanged(&entry, &current) {
                    continue;
                }

                let rule = matches!(entry.name, b".gitignore" | b".gitattributes");
                let other = matches!(current.kind, NameKind::Dir | NameKind::Special)
                    || current.kind == NameKind::Link && !is_valid_link_name(entry.name)
                    || current.size > at.scan.limits.max_file_size;
                // Changed rules, and files that are now left out, need a new listing.
                if rule || other || entry.origin == CacheOrigin::Watched {
                    return None;
                }

                changed.push((n - cached.entries.start, current));
            }
        }
    }

    Some(changed)
}

/// Returns the changed entries, without ids, so they are read.
fn mark_unread(
    at: &Reuse<'_>,
    cached: &CachedDir<'_>,
    changed: &[(usize, NameStat)],
) -> anyhow::Result<Vec<FreshName>> {
    let index = at.scan.index()?;
    let fresh = changed.iter().map(|(position, current)| {
        let name = at.cache.entry(cached.entries.start + position).name;
        let tracked = index.file(&paths::join(cached.path, name));
        let name = classify_entry(at.scan, name.to_vec(), current, tracked.as_ref(), None)?;
        Ok((*position, name))
    });
    fresh.collect()
}

/// Returns a directory as in the last snapshot with its current times, and tasks for its
/// subdirectories.
fn reuse_dir(at: &Reuse<'_>, link: Option<ObjectId>) -> (Scanned, Vec<DirTask>) {
    let (scanned, tasks) = copy_cached_dir(at.cache, at.number, link);
    (
        Scanned {
            times: at.times,
            ..scanned
        },
        tasks,
    )
}

/// Returns a directory as in the cache, and tasks for its subdirectories.
fn copy_cached_dir(
    cache: &Cache,
    number: usize,
    link: Option<ObjectId>,
) -> (Scanned, Vec<DirTask>) {
    let cached = cache.dir(number);
    let scanned = Scanned {
        path: cached.path.to_vec(),
        marks: cached.marks,
        times: cached.times,
        listing: Listing::Cached(number),
        link,
        left_out: Vec::new(),
    };

    let task = |&child: &u32| {
        let dir = cache.dir(child as usize);
        // A directory that was unreadable can exist or be readable now, so it is tried again.
        let absent = dir.marks & (mark::VIRTUAL | mark::RELIST) == mark::VIRTUAL;
        DirTask {
            path: dir.path.to_vec(),
            cache_number: Some(child as usize),
            absent,
            ..DirTask::default()
        }
    };
    (scanned, cache.children(number).iter().map(task).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_names_is_of_these_in_any_order() {
        type Names<'n> = &'n [(&'n str, bool)];
        let check = |first: Names<'_>, second: Names<'_>, expected: bool| {
            let mut one = NameSum::default();
            let mut other = one.without_names();
            first
                .iter()
                .for_each(|(name, f)| one.add(name.as_bytes(), *f));
            second
                .iter()
                .for_each(|(name, f)| other.add(name.as_bytes(), *f));
            assert_eq!(one == other, expected, "{first:?} {second:?}");
        };
        check(&[], &[], true);
        check(
            &[("a", false), ("b", true)],
            &[("b", true), ("a", false)],
            true,
        );
        check(&[("a", false)], &[("a", true)], false);
        check(&[("a", false)], &[("b", false)], false);
        check(&[("a", false), ("b", false)], &[("ab", false)], false);
        check(&[("a", false), ("a", false)], &[], false);
        check(
            &[("ab", false), ("c", false)],
            &[("a", false), ("bc", false)],
            false,
        );
    }
}
