//! Finds the objects of a tree that other, complete trees do not contain. They must be protected
//! before a ref moves, because nothing else is known to reach them.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use gix::ObjectId;
use gix::objs::tree::EntryRef;

use crate::git::object::TreeId;
use crate::git::object::tree::{RawEntries, StoredTree};
use crate::git::repository::Repository;

/// Objects of a tree that are not in others.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    /// Readable trees, and the objects they contain.
    pub there: Vec<ObjectId>,
    /// Missing trees, whose contents are unknown.
    pub gone: Vec<ObjectId>,
}

/// Returns the objects of a tree that the `whole` trees do not contain at the same path.
///
/// A file in `new` is included if the first of the `whole` trees with its directory lacks it; the
/// others are not searched. Commits of submodules are not included.
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
            // Nearly all entries of a large directory equal those of the first other tree.
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

/// Iterates over a tree in step with another one. Both are in git's order, so even a large
/// directory is read once, and only when needed.
struct InStep<'r> {
    repository: &'r Repository,
    id: ObjectId,
    /// `None` if the tree is unreadable, for example in a partial clone. It then counts as empty.
    tree: OnceCell<Option<Arc<StoredTree>>>,
    /// Number of bytes already passed.
    passed: usize,
}

impl<'r> InStep<'r> {
    fn new(repository: &'r Repository, id: ObjectId) -> InStep<'r> {
        InStep {
            repository,
            id,
            tree: OnceCell::new(),
            passed: 0,
        }
    }

    fn entries(&self) -> Option<RawEntries<'_>> {
        let read = || self.repository.stored_tree_if_there(self.id).ok().flatten();
        let tree = self.tree.get_or_init(read).as_ref()?;
        Some(tree.entries_from(self.passed))
    }

    /// Skips the next entry if it equals `raw`.
    fn takes(&mut self, raw: &[u8]) -> bool {
        let is_next = self.entries().is_some_and(|entries| entries.is_next(raw));
        self.passed += if is_next { raw.len() } else { 0 };
        is_next
    }

    /// Returns the object at the place of the other tree's next entry: same name, and both
    /// directories or both not.
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
