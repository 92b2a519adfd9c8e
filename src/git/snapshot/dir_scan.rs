//! Input and result of scanning one directory.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use gix::ObjectId;
use rustix::fd::OwnedFd;
use rustix::process::{Resource, getrlimit};

use super::cache::{Cache, CachedName, FreshName, Times};
use super::limits::LeftOut;
use crate::git::stat::{NameKind, NameStat, stat_name};
use crate::host::threads::{cores, parallel_map};

/// Upper bound on open directory handles: 100, or a quarter of `RLIMIT_NOFILE`.
const MAX_OPEN: (usize, u64) = (100, 4);

static OPEN_DIRS: AtomicUsize = AtomicUsize::new(0);

/// A directory that stays open while its subdirectories are queued, so they are opened by name
/// instead of by path.
#[derive(Debug)]
pub(super) struct OpenDir(pub(super) OwnedFd);

impl OpenDir {
    /// Keeps a directory open, unless too many are open already.
    pub(super) fn acquire(dir: OwnedFd) -> Option<Arc<OpenDir>> {
        let open_dir = OpenDir(dir);
        let before = OPEN_DIRS.fetch_add(1, Ordering::Relaxed);
        (before < max_open()).then(|| Arc::new(open_dir))
    }
}

fn max_open() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| {
        let (most, part) = MAX_OPEN;
        let allowed = getrlimit(Resource::Nofile).current;
        allowed.map_or(most, |allowed| most.min((allowed / part) as usize))
    })
}

impl Drop for OpenDir {
    fn drop(&mut self) {
        OPEN_DIRS.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct DirTask {
    pub(super) path: Vec<u8>,
    /// The parent directory, if it is still open.
    pub(super) above: Option<Arc<OpenDir>>,
    /// Number of the directory in the cache, if known.
    pub(super) cache_number: Option<usize>,
    /// Ignore rules above it changed, so its names must be listed again.
    pub(super) relist: bool,
    /// Attributes above it changed, so ids in the cache are invalid.
    pub(super) distrust: bool,
    /// Not on disk. Its frozen entries are taken from the user's index.
    pub(super) absent: bool,
    /// Unreadable. All its tracked entries are taken from the user's index.
    pub(super) unreadable: bool,
}

pub(super) struct Scanned {
    pub(super) path: Vec<u8>,
    pub(super) marks: u32,
    pub(super) times: Times,
    pub(super) listing: Listing,
    /// HEAD, if it is a nested repository.
    pub(super) link: Option<ObjectId>,
    pub(super) left_out: Vec<LeftOut>,
}

pub(super) enum Listing {
    /// Unchanged: the directory with this number in the cache.
    Cached(usize),
    /// The directory with this number in the cache, except for some entries, in order; a directory
    /// can have many entries. A file with a null id must be read.
    Patched(usize, Vec<FreshName>),
    /// Listed again, in order. A file with a null id must be read.
    Read(Vec<CachedName>),
}

impl Listing {
    /// Calls `add` for each new or changed entry and its position.
    pub(super) fn each_fresh<'l>(&'l self, mut add: impl FnMut(usize, &'l CachedName)) {
        match self {
            Listing::Cached(_) => {}
            Listing::Patched(_, fresh) => fresh.iter().for_each(|(at, name)| add(*at, name)),
            Listing::Read(names) => names
                .iter()
                .enumerate()
                .for_each(|(at, name)| add(at, name)),
        }
    }

    /// Returns the entry at a position, if it is new or changed.
    pub(super) fn fresh_at(&mut self, position: usize) -> Option<&mut CachedName> {
        match self {
            Listing::Cached(_) => None,
            Listing::Patched(_, fresh) => {
                let at = fresh.binary_search_by_key(&position, |(position, _)| *position);
                Some(&mut fresh[at.ok()?].1)
            }
            Listing::Read(names) => names.get_mut(position),
        }
    }

    pub(super) fn remove(&mut self, position: usize, cache: Option<&Cache>) {
        if let (Listing::Patched(..), Some(_)) = (&self, cache) {
            let mut all = Vec::new();
            self.each(cache, |name| all.push(name.into_owned()));
            *self = Listing::Read(all);
        }
        if let Listing::Read(names) = self {
            names.remove(position);
        }
    }

    /// Calls `add` for each entry. `cache` is the cache that the numbers refer to.
    pub(super) fn each<'l>(
        &'l self,
        cache: Option<&'l Cache>,
        mut add: impl FnMut(CachedName<&'l [u8]>),
    ) {
        match (self, cache) {
            (Listing::Read(names), _) => names.iter().for_each(|name| add(name.borrowed())),
            (Listing::Cached(number), Some(cache)) => {
                let names = cache.dir(*number).entries;
                names.for_each(|at| add(cache.entry(at)));
            }
            (Listing::Patched(number, fresh), Some(cache)) => {
                let mut fresh = fresh.iter().peekable();
                for (position, at) in cache.dir(*number).entries.enumerate() {
                    match fresh.next_if(|(fresh, _)| *fresh == position) {
                        Some((_, name)) => add(name.borrowed()),
                        None => add(cache.entry(at)),
                    }
                }
            }
            (Listing::Cached(_) | Listing::Patched(..), None) => {}
        }
    }
}

// Splits work among threads by names instead of directories, because one directory can contain
// most names of a project.

/// Number of names that make another thread worthwhile.
pub(super) const NAMES_PER_THREAD: usize = 4096;

/// Number of directories that make another thread worthwhile.
pub(super) const DIRS_PER_THREAD: usize = 256;

/// Number of parts for each thread, so a slow thread does not delay the result.
const PARTS_PER_THREAD: usize = 8;

pub(super) fn stat_all(
    dir: &OwnedFd,
    names: &[(Vec<u8>, NameKind)],
) -> Vec<Option<std::io::Result<NameStat>>> {
    let look_at =
        |(name, kind): &(Vec<u8>, NameKind)| (*kind != NameKind::Dir).then(|| stat_name(dir, name));
    let parts = map_parts(0..names.len(), NAMES_PER_THREAD, |part| {
        names[part].iter().map(look_at).collect::<Vec<_>>()
    });
    parts.into_iter().flatten().collect()
}

/// Runs `run` on parts of a range, with one thread for every `min_part` numbers, and returns the
/// results in order. A thread that finishes takes the next part.
pub(super) fn map_parts<T: Send>(
    numbers: Range<usize>,
    min_part: usize,
    run: impl Fn(Range<usize>) -> T + Sync,
) -> Vec<T> {
    let threads = (numbers.len() / min_part).clamp(1, cores());
    if threads == 1 {
        return vec![run(numbers)];
    }

    let length = numbers.len().div_ceil(threads * PARTS_PER_THREAD);
    let next = AtomicUsize::new(0);
    let take_parts = |_| {
        let mut results = Vec::new();
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            let start = numbers.start + part * length;
            if start >= numbers.end {
                return results;
            }
            results.push((part, run(start..(start + length).min(numbers.end))));
        }
    };

    let results = parallel_map(0..threads, take_parts);
    let mut results: Vec<(usize, T)> = results.into_iter().flatten().collect();
    results.sort_unstable_by_key(|(part, _)| *part);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_folders_are_held_open_than_a_process_may_have() {
        let open = || OwnedFd::from(std::fs::File::open(".").unwrap());
        let acquire = || (0..2 * MAX_OPEN.0).filter_map(|_| OpenDir::acquire(open()));
        for _ in 0..3 {
            let open_dirs: Vec<_> = acquire().collect();
            assert!(
                (1..=max_open()).contains(&open_dirs.len()),
                "{}",
                open_dirs.len()
            );
        }
    }
}

#[cfg(test)]
mod share_tests {
    use super::*;

    fn check(numbers: Range<usize>) {
        let met: Vec<usize> =
            map_parts(numbers.clone(), 8, |part| part.collect::<Vec<_>>()).concat();
        assert_eq!(met, numbers.collect::<Vec<_>>());
    }

    #[test]
    fn every_number_is_in_one_part() {
        [0..0, 5..6, 7..8, 3..28, 0..141]
            .into_iter()
            .for_each(check);
    }
}
