//! Compares two trees in step. Equal entries are skipped bytewise, so a large directory costs
//! little more than reading it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use gix::ObjectId;
use gix::objs::tree::EntryRef;

use super::{TooDifferent, TreeChange};
use crate::git::object::tree::StoredTree;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::repository::Repository;

/// Limit on the number of differing files and directories: a tree of a few hundred bytes can
/// contain the same subtree many times on each level.
pub(super) const MOST_CHANGES: usize = 1_000_000;
/// Limit on the total length of their paths in bytes.
pub(super) const MOST_PATH_BYTES: usize = 128 << 20;

#[derive(Default)]
struct Comparison {
    /// Directories still to compare: path, and tree on each side.
    dirs: Vec<(Vec<u8>, [Option<ObjectId>; 2])>,
    /// Path -> entry on each side.
    changes: BTreeMap<Vec<u8>, [Option<TreeEntry>; 2]>,
    /// Number of differing files and directories.
    noted: usize,
    path_bytes: usize,
}

pub(super) fn compare_trees(
    repository: &Repository,
    old: TreeId,
    new: TreeId,
) -> anyhow::Result<Vec<TreeChange>> {
    let mut comparison = Comparison::default();
    let top = (Vec::new(), [Some(old.0), Some(new.0)]);
    comparison.dirs.push(top);
    while let Some((path, trees)) = comparison.dirs.pop() {
        comparison.compare_dir(repository, &path, trees)?;
    }

    let changes = comparison.changes.into_iter();
    let changes = changes.filter(|(_, [old, new])| old != new);
    Ok(changes
        .map(|(path, [old, new])| TreeChange { path, old, new })
        .collect())
}

impl Comparison {
    fn compare_dir(
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

    /// Records a name that differs. At least one side has it.
    fn note(&mut self, dir: &[u8], sides: [Option<EntryRef<'_>>; 2]) -> Result<(), TooDifferent> {
        let Some(entry) = sides.iter().flatten().next() else {
            return Ok(());
        };
        let mut path = dir.to_vec();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(entry.filename);
        self.count(&path)?;

        let trees = sides.map(|side| side.filter(|entry| entry.mode.is_tree()));
        if trees.iter().any(Option::is_some) {
            let trees = trees.map(|tree| tree.map(|entry| entry.oid.to_owned()));
            self.dirs.push((path.clone(), trees));
        }

        let [old, new] = sides.map(leaf_entry);
        if old.is_some() || new.is_some() {
            let recorded = self.changes.entry(path).or_default();
            let [known_old, known_new] = std::mem::take(recorded);
            *recorded = [known_old.or(old), known_new.or(new)];
        }
        Ok(())
    }

    fn count(&mut self, path: &[u8]) -> Result<(), TooDifferent> {
        self.noted += 1;
        self.path_bytes += path.len();
        match self.noted <= MOST_CHANGES && self.path_bytes <= MOST_PATH_BYTES {
            true => Ok(()),
            false => Err(TooDifferent),
        }
    }
}

/// Converts an entry; `None` for a tree.
fn leaf_entry(entry: Option<EntryRef<'_>>) -> Option<TreeEntry> {
    let entry = entry?;
    let (mode, id) = (EntryMode::from(entry.mode), entry.oid.to_owned());
    (mode != EntryMode::Tree).then_some(TreeEntry { mode, id })
}
