//! Two trees, gone through in step: what is the same on both sides is passed over byte by byte, so
//! that a folder of any size costs little more than to read it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use gix::ObjectId;
use gix::objs::tree::EntryRef;

use super::{TooDifferent, TreeChange};
use crate::git::object::tree::StoredTree;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::repository::Repository;

/// Trees that differ in more files and folders are not compared to the end: a tree of a few hundred
/// bytes can name the same folder again and again, level by level.
pub(super) const MOST_CHANGES: usize = 1_000_000;
/// Nor are those where the paths of these have more bytes together.
pub(super) const MOST_PATH_BYTES: usize = 128 << 20;

/// A comparison of two trees.
#[derive(Default)]
struct Comparison {
    /// The folders that are still to be compared: where they are, and their trees on both sides.
    folders: Vec<(Vec<u8>, [Option<ObjectId>; 2])>,
    /// In what the trees differ, by path: what is there on both sides.
    changes: BTreeMap<Vec<u8>, [Option<TreeEntry>; 2]>,
    /// How many files and folders differ.
    noted: usize,
    /// The bytes of their paths.
    path_bytes: usize,
}

/// Returns in what two trees differ, sorted by path.
///
/// # Errors
/// Where a tree is missing or damaged, or they are [`TooDifferent`].
pub(super) fn compare(
    repository: &Repository,
    old: TreeId,
    new: TreeId,
) -> anyhow::Result<Vec<TreeChange>> {
    let mut comparison = Comparison::default();
    let top = (Vec::new(), [Some(old.0), Some(new.0)]);
    comparison.folders.push(top);
    while let Some((path, trees)) = comparison.folders.pop() {
        comparison.folder(repository, &path, trees)?;
    }

    let changes = comparison.changes.into_iter();
    let changes = changes.filter(|(_, [old, new])| old != new);
    Ok(changes
        .map(|(path, [old, new])| TreeChange { path, old, new })
        .collect())
}

impl Comparison {
    /// Compares the trees of a folder, both of which are in git's order.
    fn folder(
        &mut self,
        repository: &Repository,
        path: &[u8],
        trees: [Option<ObjectId>; 2],
    ) -> anyhow::Result<()> {
        let hash = repository.gix.object_hash();
        let [old, new] = trees.map(|tree| match tree {
            Some(id) => repository.stored_tree(id),
            None => Ok(Arc::new(StoredTree::empty(hash))),
        });
        let (old, new) = (old?, new?);
        let (mut before, mut after) = (old.entries(), new.entries());

        loop {
            let (a, b) = (before.peek()?, after.peek()?);
            if a == b {
                if a.is_none() {
                    return Ok(());
                }
                before.pass(a);
                after.pass(b);
                continue;
            }

            let old = a.map(|raw| before.decoded(raw)).transpose()?;
            let new = b.map(|raw| after.decoded(raw)).transpose()?;
            let order = match (&old, &new) {
                (Some(old), Some(new)) => old.cmp(new),
                (Some(_), None) => Ordering::Less,
                (None, _) => Ordering::Greater,
            };
            let is_old = order != Ordering::Greater;
            let is_new = order != Ordering::Less;
            self.note(path, [old.filter(|_| is_old), new.filter(|_| is_new)])?;
            before.pass(a.filter(|_| is_old));
            after.pass(b.filter(|_| is_new));
        }
    }

    /// Notes what is at a name on both sides, of which at least one has it.
    fn note(
        &mut self,
        folder: &[u8],
        sides: [Option<EntryRef<'_>>; 2],
    ) -> Result<(), TooDifferent> {
        let Some(entry) = sides.iter().flatten().next() else {
            return Ok(());
        };
        let mut path = folder.to_vec();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(entry.filename);
        self.count(&path)?;

        let trees = sides.map(|side| side.filter(|entry| entry.mode.is_tree()));
        if trees.iter().any(Option::is_some) {
            let trees = trees.map(|tree| tree.map(|entry| entry.oid.to_owned()));
            self.folders.push((path.clone(), trees));
        }

        let [old, new] = sides.map(leaf);
        if old.is_some() || new.is_some() {
            let known = self.changes.entry(path).or_default();
            let [known_old, known_new] = std::mem::take(known);
            *known = [known_old.or(old), known_new.or(new)];
        }
        Ok(())
    }

    /// Counts what differs, and stops where that is too much.
    fn count(&mut self, path: &[u8]) -> Result<(), TooDifferent> {
        self.noted += 1;
        self.path_bytes += path.len();
        match self.noted <= MOST_CHANGES && self.path_bytes <= MOST_PATH_BYTES {
            true => Ok(()),
            false => Err(TooDifferent),
        }
    }
}

/// Returns an entry that is no folder.
fn leaf(entry: Option<EntryRef<'_>>) -> Option<TreeEntry> {
    let entry = entry?;
    let (mode, id) = (EntryMode::from(entry.mode), entry.oid.to_owned());
    (mode != EntryMode::Tree).then_some(TreeEntry { mode, id })
}
