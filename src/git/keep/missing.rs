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
pub struct NewObjects {
    /// Readable trees, and the objects they contain.
    pub present: Vec<ObjectId>,
    /// Missing trees, whose contents are unknown.
    pub missing: Vec<ObjectId>,
}

/// Returns the objects of a tree that the `whole` trees do not contain at the same path.
///
/// A file in `new` is included if the first of the `whole` trees with its directory lacks it; the
/// others are not searched. Commits of submodules are not included.
pub fn find_new_objects(
    repository: &Repository,
    tree: TreeId,
    complete: &[TreeId],
    new: &HashSet<ObjectId>,
) -> anyhow::Result<NewObjects> {
    let mut new_objects = NewObjects::default();
    let mut pairs = vec![(
        tree.0,
        complete.iter().map(|tree| tree.0).collect::<Vec<_>>(),
    )];
    while let Some((tree, complete)) = pairs.pop() {
        if complete.contains(&tree) {
            continue;
        }

        let Some(entries) = repository.stored_tree_if_present(tree)? else {
            new_objects.missing.push(tree);
            continue;
        };

        new_objects.present.push(tree);
        let mut cursors: Vec<_> = complete
            .into_iter()
            .map(|base| TreeCursor::new(repository, base))
            .collect();

        let mut entries = entries.entries();
        while let Some(raw) = entries.peek()? {
            entries.pass(Some(raw));
            // Nearly all entries of a large directory equal those of the first other tree.
            if cursors
                .first_mut()
                .is_some_and(|cursor| cursor.skip_equal(raw))
            {
                continue;
            }
            let entry = entries.decoded(raw)?;
            let is_new_file = !entry.mode.is_tree() && new.contains(entry.oid);
            let searched = if is_new_file { 1 } else { cursors.len() };
            let others = cursors.iter_mut().take(searched).skip(1);
            if others.into_iter().any(|cursor| cursor.skip_equal(raw)) {
                continue;
            }
            let before: Vec<_> = cursors
                .iter_mut()
                .take(searched)
                .filter_map(|cursor| cursor.find_same_name(&entry))
                .collect();
            let oid = entry.oid.to_owned();
            if before.contains(&oid) || entry.mode.is_commit() {
                continue;
            }

            if entry.mode.is_tree() {
                pairs.push((oid, before));
            } else {
                new_objects.present.push(oid);
            }
        }
    }

    Ok(new_objects)
}

/// Iterates over a tree in step with another one. Both are in git's order, so even a large
/// directory is read once, and only when needed.
struct TreeCursor<'r> {
    repository: &'r Repository,
    id: ObjectId,
    /// `None` if the tree is unreadable, for example in a partial clone. It then counts as empty.
    tree: OnceCell<Option<Arc<StoredTree>>>,
    /// Number of bytes already passed.
    passed: usize,
}

impl<'r> TreeCursor<'r> {
    fn new(repository: &'r Repository, id: ObjectId) -> TreeCursor<'r> {
        TreeCursor {
            repository,
            id,
            tree: OnceCell::new(),
            passed: 0,
        }
    }

    fn entries(&self) -> Option<RawEntries<'_>> {
        let read = || {
            self.repository
                .stored_tree_if_present(self.id)
                .ok()
                .flatten()
        };
        let tree = self.tree.get_or_init(read).as_ref()?;
        Some(tree.entries_from(self.passed))
    }

    /// Skips the next entry if it equals `raw`.
    fn skip_equal(&mut self, raw: &[u8]) -> bool {
        let is_next = self.entries().is_some_and(|entries| entries.is_next(raw));
        self.passed += if is_next { raw.len() } else { 0 };
        is_next
    }

    /// Returns the object at the place of the other tree's next entry: same name, and both
    /// directories or both not.
    fn find_same_name(&mut self, entry: &EntryRef<'_>) -> Option<ObjectId> {
        loop {
            let entries = self.entries()?;
            let raw = entries.peek().ok()??;
            let candidate = entries.decoded(raw).ok()?;
            let (order, id, length) = (candidate.cmp(entry), candidate.oid.to_owned(), raw.len());
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
