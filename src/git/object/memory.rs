//! In-process caches of objects: differences between trees, and large trees. A turn needs the same
//! ones several times.

use std::cell::RefCell;
use std::collections::VecDeque;

use gix::ObjectId;

use super::id::{TreeChange, TreeId};
use super::tree::{LargeTrees, StoredTree};

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
mod tests {
    use super::*;

    #[test]
    fn the_pairs_of_trees_that_were_compared_last_are_remembered() {
        let memory = ObjectMemory::default();
        let tree = |number: u8| TreeId(gix::ObjectId::from_bytes_or_panic(&[number; 20]));
        let change = |path: usize| TreeChange {
            path: path.to_string().into_bytes(),
            old: None,
            new: None,
        };
        for number in 0..=8 {
            let changes = [change(usize::from(number))];
            memory.keep_changes([tree(number), tree(100)], &changes);
        }
        let many: Vec<_> = (0..=MOST_CHANGES).map(change).collect();
        memory.keep_changes([tree(9), tree(100)], &many);

        let lookup = |number: u8| memory.changes([tree(number), tree(100)]);
        assert_eq!(lookup(8), Some(vec![change(8)]));
        assert_eq!(lookup(1), Some(vec![change(1)]));
        assert_eq!(lookup(0), None);
        assert_eq!(lookup(9), None);
        assert_eq!(memory.changes([tree(100), tree(8)]), None);
    }
}
