//! Splits work among threads by names instead of directories, because one directory can contain
//! most names of a project.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fd::OwnedFd;

use crate::git::stat::{NameKind, NameStat, look};
use crate::host::threads::{at_once, cores};

/// Number of names that make another thread worthwhile.
pub(super) const NAMES: usize = 4096;
/// Number of directories that make another thread worthwhile.
pub(super) const FOLDERS: usize = 256;
/// Number of parts for each thread, so a slow thread does not delay the result.
const PARTS: usize = 8;

pub(super) fn look_at_all(
    folder: &OwnedFd,
    names: &[(Vec<u8>, NameKind)],
) -> Vec<Option<std::io::Result<NameStat>>> {
    let look_at = |(name, kind): &(Vec<u8>, NameKind)| {
        (*kind != NameKind::Folder).then(|| look(folder, name))
    };
    let parts = in_parts(0..names.len(), NAMES, |part| {
        names[part].iter().map(look_at).collect::<Vec<_>>()
    });
    parts.into_iter().flatten().collect()
}

/// Runs `run` on parts of a range, with one thread for every `worth` numbers, and returns the
/// results in order. A thread that finishes takes the next part.
pub(super) fn in_parts<T: Send>(
    numbers: Range<usize>,
    worth: usize,
    run: impl Fn(Range<usize>) -> T + Sync,
) -> Vec<T> {
    let threads = (numbers.len() / worth).clamp(1, cores());
    if threads == 1 {
        return vec![run(numbers)];
    }

    let length = numbers.len().div_ceil(threads * PARTS);
    let next = AtomicUsize::new(0);
    let take_parts = |_| {
        let mut done = Vec::new();
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            let start = numbers.start + part * length;
            if start >= numbers.end {
                return done;
            }
            done.push((part, run(start..(start + length).min(numbers.end))));
        }
    };

    let done = at_once(0..threads, take_parts);
    let mut done: Vec<(usize, T)> = done.into_iter().flatten().collect();
    done.sort_unstable_by_key(|(part, _)| *part);
    done.into_iter().map(|(_, found)| found).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(numbers: Range<usize>) {
        let met: Vec<usize> =
            in_parts(numbers.clone(), 8, |part| part.collect::<Vec<_>>()).concat();
        assert_eq!(met, numbers.collect::<Vec<_>>());
    }

    #[test]
    fn every_number_is_in_one_part() {
        [0..0, 5..6, 7..8, 3..28, 0..141]
            .into_iter()
            .for_each(check);
    }
}
