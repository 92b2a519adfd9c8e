//! Splits work among threads by names instead of directories, because one directory can contain
//! most names of a project.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fd::OwnedFd;

use crate::git::stat::{NameKind, NameStat, stat_name};
use crate::host::threads::{cores, parallel_map};

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

/// Runs `run` on parts of a range, with one thread for every `worth` numbers, and returns the
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
