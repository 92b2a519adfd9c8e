//! Work on many files, spread over the cores.
//!
//! Few files are worked on where they are: a thread costs more than a hundred of them.

use super::object::staged;
use super::repository::Repository;
use crate::host::threads::{at_once, cores};

/// As many files are worth a thread.
const WORTH: usize = 256;

/// The most threads: what they do is mostly the file system's, which does not grow with more.
const MOST: usize = 8;

/// Does some work on items, in parts that follow one another; each has a handle of the repository
/// and knows at which item it begins.
///
/// # Errors
/// Where the work fails; the other parts are done all the same.
pub fn spread<T: Send, R: Send>(
    repository: &Repository,
    items: Vec<T>,
    work: impl Fn(&Repository, usize, Vec<T>) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<R>> {
    let threads = threads(items.len());
    if threads == 1 {
        return Ok(vec![work(repository, 0, items)?]);
    }

    let shared = repository.gix.clone().into_sync();
    let (workdir, common) = (&repository.workdir, &repository.common);
    let read_only = repository.read_only;
    let staged = staged::objects(repository);
    let run = |(start, part): (usize, Vec<T>)| {
        let gix = shared.to_thread_local();
        let mut own = Repository::of(gix, (workdir.clone(), common.clone()), read_only)
            .map_err(|format| anyhow::anyhow!("the refs are stored as `{format}`"))?;
        own.gix.objects.enable_object_memory();
        staged::put(&own, staged.iter().cloned())?;
        work(&own, start, part)
    };

    let outcomes = at_once(parts(items, threads), run);
    outcomes.into_iter().collect()
}

/// Returns how many threads so many items are worth.
pub(in crate::git) fn threads(items: usize) -> usize {
    match items / WORTH {
        0 | 1 => 1,
        worth => worth.min(cores()).min(MOST),
    }
}

/// Divides items into so many parts, each with the number of its first.
fn parts<T>(mut items: Vec<T>, count: usize) -> Vec<(usize, Vec<T>)> {
    let length = items.len().div_ceil(count).max(1);
    let mut parts = Vec::new();
    let mut start = 0;
    while items.len() > length {
        let rest = items.split_off(length);
        parts.push((start, std::mem::replace(&mut items, rest)));
        start += length;
    }

    parts.push((start, items));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(items: usize, count: usize, expected: &[(usize, usize)]) {
        let parts = parts((0..items).collect(), count);
        let found: Vec<_> = parts
            .iter()
            .map(|(start, part)| (*start, part.len()))
            .collect();
        assert_eq!(found, expected);
        let all: Vec<usize> = parts.into_iter().flat_map(|(_, part)| part).collect();
        assert_eq!(all, (0..items).collect::<Vec<_>>());
    }

    #[test]
    fn items_are_divided_in_their_order() {
        check(0, 2, &[(0, 0)]);
        check(1, 2, &[(0, 1)]);
        check(5, 2, &[(0, 3), (3, 2)]);
        check(8, 3, &[(0, 3), (3, 3), (6, 2)]);
    }
}
