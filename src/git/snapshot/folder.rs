//! Input and result of scanning one directory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use gix::ObjectId;
use rustix::fd::OwnedFd;
use rustix::process::{Resource, getrlimit};

use super::cache::{Cache, CachedName, FreshName, Times};
use super::limits::LeftOut;

/// Upper bound on open directory handles: 100, or a quarter of `RLIMIT_NOFILE`.
const MOST_HELD: (usize, u64) = (100, 4);

static HELD: AtomicUsize = AtomicUsize::new(0);

/// A directory that stays open while its subdirectories are queued, so they are opened by name
/// instead of by path.
#[derive(Debug)]
pub(super) struct HeldFolder(pub(super) OwnedFd);

impl HeldFolder {
    /// Keeps a directory open, unless too many are open already.
    pub(super) fn hold(folder: OwnedFd) -> Option<Arc<HeldFolder>> {
        let held = HeldFolder(folder);
        let before = HELD.fetch_add(1, Ordering::Relaxed);
        (before < most_held()).then(|| Arc::new(held))
    }
}

fn most_held() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| {
        let (most, part) = MOST_HELD;
        let allowed = getrlimit(Resource::Nofile).current;
        allowed.map_or(most, |allowed| most.min((allowed / part) as usize))
    })
}

impl Drop for HeldFolder {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct FolderTask {
    pub(super) path: Vec<u8>,
    /// The parent directory, if it is still open.
    pub(super) above: Option<Arc<HeldFolder>>,
    /// Number of the directory in the cache, if known.
    pub(super) known: Option<usize>,
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
    pub(super) left: Vec<LeftOut>,
}

pub(super) enum Listing {
    /// Unchanged: the directory with this number in the cache.
    Kept(usize),
    /// The directory with this number in the cache, except for some entries, in order; a directory
    /// can have many entries. A file with a null id must be read.
    Mended(usize, Vec<FreshName>),
    /// Listed again, in order. A file with a null id must be read.
    Read(Vec<CachedName>),
}

impl Listing {
    /// Calls `add` for each new or changed entry and its position.
    pub(super) fn each_fresh<'l>(&'l self, mut add: impl FnMut(usize, &'l CachedName)) {
        match self {
            Listing::Kept(_) => {}
            Listing::Mended(_, fresh) => fresh.iter().for_each(|(at, name)| add(*at, name)),
            Listing::Read(names) => names
                .iter()
                .enumerate()
                .for_each(|(at, name)| add(at, name)),
        }
    }

    /// Returns the entry at a position, if it is new or changed.
    pub(super) fn fresh_at(&mut self, place: usize) -> Option<&mut CachedName> {
        match self {
            Listing::Kept(_) => None,
            Listing::Mended(_, fresh) => {
                let at = fresh.binary_search_by_key(&place, |(place, _)| *place);
                Some(&mut fresh[at.ok()?].1)
            }
            Listing::Read(names) => names.get_mut(place),
        }
    }

    pub(super) fn remove(&mut self, place: usize, cache: Option<&Cache>) {
        if let (Listing::Mended(..), Some(_)) = (&self, cache) {
            let mut all = Vec::new();
            self.each(cache, |name| all.push(name.into_owned()));
            *self = Listing::Read(all);
        }
        if let Listing::Read(names) = self {
            names.remove(place);
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
            (Listing::Kept(number), Some(cache)) => {
                let names = cache.folder(*number).entries;
                names.for_each(|at| add(cache.entry(at)));
            }
            (Listing::Mended(number, fresh), Some(cache)) => {
                let mut fresh = fresh.iter().peekable();
                for (place, at) in cache.folder(*number).entries.enumerate() {
                    match fresh.next_if(|(fresh, _)| *fresh == place) {
                        Some((_, name)) => add(name.borrowed()),
                        None => add(cache.entry(at)),
                    }
                }
            }
            (Listing::Kept(_) | Listing::Mended(..), None) => {}
        }
    }
}

pub(super) fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(folder.len() + 1 + name.len());
    if !folder.is_empty() {
        path.extend_from_slice(folder);
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_folders_are_held_open_than_a_process_may_have() {
        let open = || OwnedFd::from(std::fs::File::open(".").unwrap());
        let hold = || (0..2 * MOST_HELD.0).filter_map(|_| HeldFolder::hold(open()));
        for _ in 0..3 {
            let held: Vec<_> = hold().collect();
            assert!((1..=most_held()).contains(&held.len()), "{}", held.len());
        }
    }
}
