//! What is to be looked at, shared out among threads: one folder may hold as many names as a whole
//! project.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fd::OwnedFd;

use crate::git::stat::{NameKind, NameStat, look};
use crate::host::threads::{at_once, cores};

/// As many names are worth a thread.
pub(super) const NAMES: usize = 4096;
/// As many folders are worth a thread.
pub(super) const FOLDERS: usize = 256;
/// So many parts a thread would take if all were as fast.
const PARTS: usize = 8;

/// Looks at the names of a folder that are no folders.
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

/// Returns what comes of each part of some numbers, in their order. As many as are worth a thread
/// have one; fewer are one part, for which none is started. A thread that is done takes the next
/// part: others may be held up by what runs beside them.
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

    /// Checks that every number is met once, in order.
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
