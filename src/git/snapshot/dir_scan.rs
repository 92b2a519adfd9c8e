//! Input and result of scanning one directory.

use std::ops::Range;

use gix::ObjectId;
use rustix::fd::OwnedFd;

use super::cache::{Cache, CachedName, FreshName, Times};
use super::limits::LeftOut;
use crate::git::stat::{NameKind, NameStat, stat_name};
use crate::host::threads::{cores, parallel_map};

#[derive(Debug, Clone, Default)]
pub(super) struct DirTask {
    pub(super) path: Vec<u8>,
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
/// results in order.
pub(super) fn map_parts<T: Send>(
    numbers: Range<usize>,
    min_part: usize,
    run: impl Fn(Range<usize>) -> T + Sync,
) -> Vec<T> {
    let threads = (numbers.len() / min_part).clamp(1, cores());
    if threads == 1 {
        return vec![run(numbers)];
    }

    let length = numbers.len().div_ceil(threads);
    let starts = numbers.clone().step_by(length);
    parallel_map(starts, |start| run(start..numbers.end.min(start + length)))
}

#[cfg(test)]
mod tests {
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
