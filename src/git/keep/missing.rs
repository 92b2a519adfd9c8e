//! What a tree holds beyond others that are whole: the objects that have to be there before a ref
//! moves to it, because nothing else may reach them.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use gix::ObjectId;
use gix::objs::tree::EntryRef;

use crate::git::object::TreeId;
use crate::git::object::tree::{RawEntries, StoredTree};
use crate::git::repository::Repository;

/// What a tree holds beyond others.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    /// Trees that can be read, and what else they name.
    pub there: Vec<ObjectId>,
    /// Trees that are gone; nobody knows what they name.
    pub gone: Vec<ObjectId>,
}

/// Returns the objects of a tree that others, which are whole, do not have in its place. A file that
/// is `new` is among them where the first of the others with its folder does not have it: nobody
/// looks for it in the rest of them.
///
/// Commits of embedded repositories are not ours to have.
///
/// # Errors
/// Where a tree that is there cannot be read.
pub fn beyond(
    repository: &Repository,
    tree: TreeId,
    whole: &[TreeId],
    new: &HashSet<ObjectId>,
) -> anyhow::Result<Beyond> {
    let mut beyond = Beyond::default();
    let mut pairs = vec![(tree.0, whole.iter().map(|tree| tree.0).collect::<Vec<_>>())];
    while let Some((tree, whole)) = pairs.pop() {
        if whole.contains(&tree) {
            continue;
        }

        let Some(entries) = repository.stored_tree_if_there(tree)? else {
            beyond.gone.push(tree);
            continue;
        };

        beyond.there.push(tree);
        let mut known: Vec<_> = whole
            .into_iter()
            .map(|whole| InStep::new(repository, whole))
            .collect();

        let mut entries = entries.entries();
        while let Some(raw) = entries.peek()? {
            entries.pass(Some(raw));
            // Nearly all of a folder of many files is the same as in the first of the others.
            if known.first_mut().is_some_and(|known| known.takes(raw)) {
                continue;
            }
            let entry = entries.decoded(raw)?;
            let is_new_file = !entry.mode.is_tree() && new.contains(entry.oid);
            let asked = if is_new_file { 1 } else { known.len() };
            let others = known.iter_mut().take(asked).skip(1);
            if others.into_iter().any(|known| known.takes(raw)) {
                continue;
            }
            let before: Vec<_> = known
                .iter_mut()
                .take(asked)
                .filter_map(|known| known.beside(&entry))
                .collect();
            let oid = entry.oid.to_owned();
            if before.contains(&oid) || entry.mode.is_commit() {
                continue;
            }

            if entry.mode.is_tree() {
                pairs.push((oid, before));
            } else {
                beyond.there.push(oid);
            }
        }
    }

    Ok(beyond)
}

/// The entries of a tree, gone through in step with those of another: both are in git's order, so
/// that a folder of any size is read once from its start to its end, and not before it is asked
/// about.
struct InStep<'r> {
    /// The repository.
    repository: &'r Repository,
    /// The tree.
    id: ObjectId,
    /// The tree once it was read. Of one that cannot be read, as in a clone without all trees,
    /// nothing is taken for there.
    tree: OnceCell<Option<Arc<StoredTree>>>,
    /// How many bytes of it have been passed.
    passed: usize,
}

impl<'r> InStep<'r> {
    /// Starts at the first entry.
    fn new(repository: &'r Repository, id: ObjectId) -> InStep<'r> {
        InStep {
            repository,
            id,
            tree: OnceCell::new(),
            passed: 0,
        }
    }

    /// Returns the entries that are still to come.
    fn entries(&self) -> Option<RawEntries<'_>> {
        let read = || self.repository.stored_tree_if_there(self.id).ok().flatten();
        let tree = self.tree.get_or_init(read).as_ref()?;
        Some(tree.entries_from(self.passed))
    }

    /// Passes over the next entry if it is just this one of the other tree's.
    fn takes(&mut self, raw: &[u8]) -> bool {
        let is_next = self.entries().is_some_and(|entries| entries.is_next(raw));
        self.passed += if is_next { raw.len() } else { 0 };
        is_next
    }

    /// Returns what is in the place of the other tree's next entry: of its name, and a folder if it
    /// is one.
    fn beside(&mut self, entry: &EntryRef<'_>) -> Option<ObjectId> {
        loop {
            let entries = self.entries()?;
            let raw = entries.peek().ok()??;
            let known = entries.decoded(raw).ok()?;
            let (order, id, length) = (known.cmp(entry), known.oid.to_owned(), raw.len());
            if order == Ordering::Greater {
                return None;
            }
            self.passed += length;
            if order == Ordering::Equal {
                return Some(id);
            }
        }
    }
}

#[cfg(test)]
mod tests;
