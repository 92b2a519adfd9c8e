//! One folder's names shared out among threads: a folder may hold as many as a whole project.

use std::ops::Range;

use rustix::fd::OwnedFd;

use crate::git::stat::{NameKind, NameStat, look};
use crate::host::cores::cores;

/// As many names are worth a thread.
const PART: usize = 4096;

/// Looks at the names of a folder that are no folders.
pub(super) fn look_at_all(
    folder: &OwnedFd,
    names: &[(Vec<u8>, NameKind)],
) -> Vec<Option<std::io::Result<NameStat>>> {
    let look_at = |(name, kind): &(Vec<u8>, NameKind)| {
        (*kind != NameKind::Folder).then(|| look(folder, name))
    };
    let parts = in_parts(0..names.len(), |part| {
        names[part].iter().map(look_at).collect::<Vec<_>>()
    });
    parts.into_iter().flatten().collect()
}

/// Returns what comes of each part of some numbers, in their order. Few are one part, for which no
/// thread is started.
pub(super) fn in_parts<T: Send>(
    numbers: Range<usize>,
    run: impl Fn(Range<usize>) -> T + Sync,
) -> Vec<T> {
    let threads = (numbers.len() / PART).clamp(1, cores());
    if threads == 1 {
        return vec![run(numbers)];
    }

    let length = numbers.len().div_ceil(threads);
    let part = |start: usize| start..(start + length).min(numbers.end);
    std::thread::scope(|scope| {
        let run = &run;
        let started: Vec<_> = numbers
            .clone()
            .step_by(length)
            .map(|start| scope.spawn(move || run(part(start))))
            .collect();

        let done = started.into_iter();
        done.map(|thread| thread.join().expect("looking at files does not panic"))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that every number is met once, in order.
    fn check(numbers: Range<usize>) {
        let met: Vec<usize> = in_parts(numbers.clone(), |part| part.collect::<Vec<_>>()).concat();
        assert_eq!(met, numbers.collect::<Vec<_>>());
    }

    #[test]
    fn every_number_is_in_one_part() {
        [0..0, 5..6, 7..PART, 3..3 * PART + 1, 0..17 * PART + 5]
            .into_iter()
            .for_each(check);
    }
}
