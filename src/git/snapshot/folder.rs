//! A folder of a walk: what is asked about it, and what came out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use gix::ObjectId;
use rustix::fd::OwnedFd;
use rustix::process::{Resource, getrlimit};

use super::cache::{Cache, CachedName, FreshName, Times};
use super::limits::LeftOut;

/// So many folders are held open for what is in them, and no more than this part of the files that
/// the process may have open.
const MOST_HELD: (usize, u64) = (100, 4);

/// How many are held open.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// A folder that is held open while those in it wait: from it they are opened by a name and not by
/// the whole path.
#[derive(Debug)]
pub(super) struct HeldFolder(pub(super) OwnedFd);

impl HeldFolder {
    /// Holds a folder open, unless too many are.
    pub(super) fn hold(folder: OwnedFd) -> Option<Arc<HeldFolder>> {
        let held = HeldFolder(folder);
        let before = HELD.fetch_add(1, Ordering::Relaxed);
        (before < most_held()).then(|| Arc::new(held))
    }
}

/// Returns how many folders may be held open.
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

/// A folder to look at.
#[derive(Debug, Clone, Default)]
pub(super) struct FolderTask {
    /// Its path; empty for the top.
    pub(super) path: Vec<u8>,
    /// The folder that it is in, if that is held open.
    pub(super) above: Option<Arc<HeldFolder>>,
    /// Its number in the cache, where that is known already.
    pub(super) known: Option<usize>,
    /// Ignore rules above it changed: what is in it must be judged anew.
    pub(super) relist: bool,
    /// Attributes above it changed: ids in the cache prove nothing.
    pub(super) distrust: bool,
    /// It is not on disk; what the index holds still is taken from there.
    pub(super) absent: bool,
    /// It cannot be read: everything tracked in it is taken from the index.
    pub(super) unreadable: bool,
}

/// What came out of a folder.
pub(super) struct Scanned {
    /// Its path.
    pub(super) path: Vec<u8>,
    /// Bits of [`mark`].
    pub(super) marks: u32,
    /// Its times.
    pub(super) times: Times,
    /// Its names.
    pub(super) listing: Listing,
    /// The commit, if it is a repository of its own.
    pub(super) link: Option<ObjectId>,
    /// What is not in the snapshot.
    pub(super) left: Vec<LeftOut>,
}

/// The names of a folder.
pub(super) enum Listing {
    /// All as the folder of this number in the cache.
    Kept(usize),
    /// As the folder of this number in the cache, but for some names, in order: a folder may have very
    /// many. A file whose id is null must be read.
    Mended(usize, Vec<FreshName>),
    /// These, in order; a file whose id is null must be read.
    Read(Vec<CachedName>),
}

impl Listing {
    /// Goes through the names that were looked at anew, each with its place among all.
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

    /// Returns the name at a place, if it was looked at anew.
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

    /// Takes the name at a place out.
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

    /// Goes through all names; `cache` is the one whose folders it speaks of.
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

/// Returns the path of a name in a folder.
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
