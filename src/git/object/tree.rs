//! Trees in their stored form: mode, name, NUL and id of each entry. Caches for them.
//!
//! A turn looks up single paths many times. In a directory of tens of thousands of files, decoding
//! the tree each time is slow, so large trees are cached and searched in place. It also needs the
//! same differences between trees several times.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use gix::ObjectId;
use gix::bstr::ByteSlice as _;
use gix::objs::TreeRefIter;
use gix::objs::tree::EntryRef;

use super::id::{TreeChange, TreeId};
use crate::git::During as _;

/// Smaller trees are read as fast as they are found in the cache.
const LARGE: usize = 64 << 10;
/// Number of cached large trees: those of the user's files and of a result, each with its
/// predecessor.
const MAX_TREES: usize = 4;
/// Maximum total size of the cached trees in bytes.
const MOST_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub(in crate::git) struct StoredTree {
    id: ObjectId,
    data: Vec<u8>,
    /// Offsets of the entries, computed on first use. `None` if the tree is damaged.
    starts: OnceLock<Option<Starts>>,
}

#[derive(Debug)]
struct Starts {
    offsets: Vec<u32>,
    /// Whether the entries are in git's order, without duplicates.
    is_sorted: bool,
}

/// Cached large trees, latest first.
#[derive(Default)]
pub(in crate::git) struct LargeTrees(RefCell<VecDeque<Arc<StoredTree>>>);

impl LargeTrees {
    pub(in crate::git) fn find(&self, id: ObjectId) -> Option<Arc<StoredTree>> {
        let cached = self.0.borrow();
        cached.iter().find(|tree| tree.id == id).map(Arc::clone)
    }

    /// Returns the trees, latest first.
    pub(in crate::git) fn all(&self) -> Vec<Arc<StoredTree>> {
        self.0.borrow().iter().map(Arc::clone).collect()
    }

    pub(in crate::git) fn share(&self, others: &LargeTrees) {
        self.0.borrow_mut().clone_from(&others.0.borrow());
    }

    /// Returns whether a tree of this size is cached.
    pub(in crate::git) fn keeps(&self, data: &[u8]) -> bool {
        (LARGE..=MOST_BYTES).contains(&data.len())
    }

    /// Caches a large tree, evicting old ones, and returns it.
    pub(super) fn keep(&self, tree: StoredTree) -> Arc<StoredTree> {
        let tree = Arc::new(tree);
        if !self.keeps(&tree.data) {
            return tree;
        }

        let mut cached = self.0.borrow_mut();
        cached.push_front(Arc::clone(&tree));
        let mut bytes = 0;
        let fits = cached.iter().take(MAX_TREES).take_while(|tree| {
            bytes += tree.data.len();
            bytes <= MOST_BYTES
        });
        let fits = fits.count();
        cached.truncate(fits);
        tree
    }
}

impl StoredTree {
    pub(super) fn of(mut read: gix::Tree<'_>) -> StoredTree {
        StoredTree::new(read.id, read.take_data())
    }

    pub(super) fn new(id: ObjectId, data: Vec<u8>) -> StoredTree {
        StoredTree {
            id,
            data,
            starts: OnceLock::new(),
        }
    }

    pub(in crate::git) fn empty(hash: gix::hash::Kind) -> StoredTree {
        StoredTree::new(ObjectId::empty_tree(hash), Vec::new())
    }

    pub(in crate::git) fn id(&self) -> ObjectId {
        self.id
    }

    pub(in crate::git) fn data(&self) -> &[u8] {
        &self.data
    }

    pub(in crate::git) fn entries(&self) -> RawEntries<'_> {
        self.entries_from(0)
    }

    fn entries_from(&self, start: usize) -> RawEntries<'_> {
        RawEntries {
            remaining: &self.data[start..],
            id: self.id,
        }
    }

    /// Returns the entry with a name, whether file or directory. Also works on an unsorted tree.
    pub(in crate::git) fn find(&self, name: &[u8]) -> anyhow::Result<Option<EntryRef<'_>>> {
        if self.data.len() >= LARGE && self.known_starts()?.is_sorted {
            return self.bisect(name);
        }
        let mut entries = self.entries();
        while let Some(raw) = entries.peek()? {
            if name_of(raw) == Some(name) {
                return entries.decoded(raw).map(Some);
            }
            entries.pass(Some(raw));
        }
        Ok(None)
    }

    /// Like [`StoredTree::find`], but by binary search, for several lookups. The entries must be in
    /// git's order.
    pub(in crate::git) fn bisect(&self, name: &[u8]) -> anyhow::Result<Option<EntryRef<'_>>> {
        Ok(self.bisect_rest(name)?.map(|(entry, _)| entry))
    }

    /// Like [`StoredTree::bisect`], but also returns the entries after it.
    pub(in crate::git) fn bisect_rest(
        &self,
        name: &[u8],
    ) -> anyhow::Result<Option<(EntryRef<'_>, RawEntries<'_>)>> {
        let Some(start) = self.start_of(name)? else {
            return Ok(None);
        };
        let mut entries = self.entries_from(start);
        let Some(raw) = entries.peek()? else {
            return Ok(None);
        };
        let entry = entries.decoded(raw)?;
        entries.pass(Some(raw));
        Ok(Some((entry, entries)))
    }

    fn start_of(&self, name: &[u8]) -> anyhow::Result<Option<usize>> {
        let starts = &self.known_starts()?.offsets;
        let entry = |start: u32| {
            let entries = self.entries_from(start as usize);
            let raw = entries.peek().ok().flatten()?;
            entries.decoded(raw).ok()
        };

        // A directory is sorted elsewhere than a file of the same name, so search for both.
        for is_dir in [false, true] {
            let order = |start: &u32| {
                entry(*start).map_or(Ordering::Less, |entry| {
                    let key = (entry.filename.as_bytes(), entry.mode.is_tree());
                    in_order(key.0, key.1, name, is_dir)
                })
            };
            if let Ok(at) = starts.binary_search_by(order) {
                return Ok(Some(starts[at] as usize));
            }
        }
        Ok(None)
    }

    fn known_starts(&self) -> anyhow::Result<&Starts> {
        let starts = self.starts.get_or_init(|| self.starts().ok());
        starts
            .as_ref()
            .with_context(|| format!("tree {} is damaged", self.id))
    }

    fn starts(&self) -> anyhow::Result<Starts> {
        let mut entries = self.entries();
        let (mut offsets, mut is_sorted) = (Vec::new(), true);
        let mut before: Option<(&[u8], bool)> = None;
        while let Some(raw) = entries.peek()? {
            offsets.push(u32::try_from(self.data.len() - entries.remaining.len())?);
            let is_dir = raw.starts_with(b"40000 ");
            let name = name_of(raw).map(|name| (name, is_dir));
            is_sorted &= match (before, name) {
                (Some(before), Some(name)) => {
                    in_order(before.0, before.1, name.0, name.1) == Ordering::Less
                }
                (before, name) => before.is_none() && name.is_some(),
            };
            // Some old tools wrote modes with other digits.
            is_sorted &= is_dir || raw.starts_with(b"1");
            before = name;
            entries.pass(Some(raw));
        }
        Ok(Starts { offsets, is_sorted })
    }
}

pub(in crate::git) struct RawEntries<'t> {
    remaining: &'t [u8],
    id: ObjectId,
}

impl<'t> RawEntries<'t> {
    pub(in crate::git) fn peek(&self) -> anyhow::Result<Option<&'t [u8]>> {
        if self.remaining.is_empty() {
            return Ok(None);
        }
        let end =
            memchr::memchr(0, self.remaining).map(|at| at + 1 + self.id.kind().len_in_bytes());
        let raw = end.and_then(|end| self.remaining.get(..end));
        raw.with_context(|| format!("tree {} is cut short", self.id))
            .map(Some)
    }

    /// Passes the next entry if it equals `raw`. Returns whether it did.
    pub(in crate::git) fn skip(&mut self, raw: &[u8]) -> bool {
        let tail = self.remaining.strip_prefix(raw);
        self.remaining = tail.unwrap_or(self.remaining);
        tail.is_some()
    }

    pub(in crate::git) fn pass(&mut self, raw: Option<&[u8]>) {
        self.remaining = &self.remaining[raw.map_or(0, <[u8]>::len)..];
    }

    pub(in crate::git) fn decoded<'e>(&self, raw: &'e [u8]) -> anyhow::Result<EntryRef<'e>> {
        let entry = TreeRefIter::from_bytes(raw, self.id.kind()).next();
        let entry = entry.with_context(|| format!("tree {} is damaged", self.id))?;
        entry.during(format_args!("reading tree {}", self.id))
    }
}

fn name_of(raw: &[u8]) -> Option<&[u8]> {
    let start = memchr::memchr(b' ', raw)? + 1;
    let name = &raw[start..];
    Some(&name[..memchr::memchr(0, name)?])
}

/// Compares names in git's order: a directory sorts as if a slash followed.
fn in_order(a: &[u8], a_is_dir: bool, b: &[u8], b_is_dir: bool) -> Ordering {
    let common = a.len().min(b.len());
    let next = |name: &[u8], is_dir: bool| {
        let end = if is_dir { b'/' } else { 0 };
        name.get(common).copied().unwrap_or(end)
    };
    let order = a[..common].cmp(&b[..common]);
    order.then_with(|| next(a, a_is_dir).cmp(&next(b, b_is_dir)))
}

const PAIRS: usize = 8;

/// Maximum number of changes in a cached difference.
const MOST_CHANGES: usize = 1000;

/// Maximum length of all paths in a cached difference.
const MOST_PATH_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(in crate::git) struct ObjectMemory {
    compared: RefCell<VecDeque<ComparedTrees>>,
    pub(in crate::git) trees: LargeTrees,
}

struct ComparedTrees {
    trees: [TreeId; 2],
    changes: Vec<TreeChange>,
}

impl ObjectMemory {
    /// Caches a new tree if it is large, because it will be compared soon.
    pub(in crate::git) fn keep_tree(&self, id: ObjectId, data: Vec<u8>) {
        if self.trees.keeps(&data) && self.trees.find(id).is_none() {
            self.trees.keep(StoredTree::new(id, data));
        }
    }

    pub(in crate::git) fn changes(&self, trees: [TreeId; 2]) -> Option<Vec<TreeChange>> {
        let compared = self.compared.borrow();
        let hit = compared.iter().find(|entry| entry.trees == trees)?;
        Some(hit.changes.clone())
    }

    pub(in crate::git) fn keep_changes(&self, trees: [TreeId; 2], changes: &[TreeChange]) {
        let path_bytes = || {
            changes
                .iter()
                .map(|change| change.path.len())
                .sum::<usize>()
        };
        if changes.len() > MOST_CHANGES || path_bytes() > MOST_PATH_BYTES {
            return;
        }
        let mut compared = self.compared.borrow_mut();
        compared.truncate(PAIRS - 1);
        compared.push_front(ComparedTrees {
            trees,
            changes: changes.to_vec(),
        });
    }
}

#[cfg(test)]
mod tests;
