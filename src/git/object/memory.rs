//! What this process knows of objects, for whoever asks next: in what trees differ, large trees, and
//! large objects that are being compressed. A turn asks for the same for several purposes.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use gix::ObjectId;

use super::compressing::Compressing;
use super::id::TreeId;
use super::tree::{LargeTrees, NewTree, StoredTree};
use crate::git::diff::change::TreeChange;

/// So many pairs of trees are remembered.
const PAIRS: usize = 8;
/// Trees that differ in more are compared anew.
const MOST_CHANGES: usize = 1000;
/// So are those where the paths of these have more bytes together.
const MOST_PATH_BYTES: usize = 1 << 20;

/// What is known.
#[derive(Default)]
pub(in crate::git) struct ObjectMemory {
    /// In what trees differ, those compared last first.
    compared: RefCell<VecDeque<ComparedTrees>>,
    /// Large trees.
    pub(super) trees: LargeTrees,
    /// New objects on their way into a pack.
    pub(super) compressing: Compressing,
}

/// Two trees and in what they differ.
struct ComparedTrees {
    /// The old one and the new one.
    trees: [TreeId; 2],
    /// In what they differ.
    changes: Vec<TreeChange>,
}

impl ObjectMemory {
    /// Returns whether a tree of these bytes is worth being kept.
    pub(in crate::git) fn is_large_tree(&self, data: &[u8]) -> bool {
        self.trees.keeps(data)
    }

    /// Keeps a tree that was made, if it is a large one: it will be compared with others in a moment.
    pub(in crate::git) fn keep_tree(&self, id: ObjectId, tree: NewTree) {
        if self.trees.keeps(&tree.data) && self.trees.find(id).is_none() {
            self.trees.keep(StoredTree::made(id, tree));
        }
    }

    /// Returns a large tree, if it is kept.
    pub(in crate::git) fn large_tree(&self, id: ObjectId) -> Option<Arc<StoredTree>> {
        self.trees.find(id)
    }

    /// Returns the large trees that are kept, the last one first.
    pub(in crate::git) fn large_trees(&self) -> Vec<Arc<StoredTree>> {
        self.trees.all()
    }

    /// Takes over which large trees another handle has read.
    pub(in crate::git) fn share_trees(&self, other: &ObjectMemory) {
        self.trees.share(&other.trees);
    }

    /// Returns in what two trees differ, if that was found out already.
    pub(in crate::git) fn changes(&self, trees: [TreeId; 2]) -> Option<Vec<TreeChange>> {
        let compared = self.compared.borrow();
        let found = compared.iter().find(|known| known.trees == trees)?;
        Some(found.changes.clone())
    }

    /// Keeps in what two trees differ.
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
mod tests {
    use super::*;

    #[test]
    fn the_pairs_of_trees_that_were_compared_last_are_remembered() {
        let known = ObjectMemory::default();
        let tree = |number: u8| TreeId(gix::ObjectId::from_bytes_or_panic(&[number; 20]));
        let change = |path: usize| TreeChange {
            path: path.to_string().into_bytes(),
            old: None,
            new: None,
        };
        for number in 0..=8 {
            let changes = [change(usize::from(number))];
            known.keep_changes([tree(number), tree(100)], &changes);
        }
        let many: Vec<_> = (0..=MOST_CHANGES).map(change).collect();
        known.keep_changes([tree(9), tree(100)], &many);

        let found = |number: u8| known.changes([tree(number), tree(100)]);
        assert_eq!(found(8), Some(vec![change(8)]));
        assert_eq!(found(1), Some(vec![change(1)]));
        assert_eq!(found(0), None);
        assert_eq!(found(9), None);
        assert_eq!(known.changes([tree(100), tree(8)]), None);
    }
}
