//! Whether a tree is whole: the check after a ref was moved to it, should `git gc` have run
//! between the moment an object was found to exist and the ref that now reaches it.

use std::collections::HashMap;

use gix::ObjectId;

use crate::git::During;
use crate::git::object::TreeId;
use crate::git::repository::Repository;

impl Repository {
    /// Returns the objects of a tree that are missing, as far as it differs from one that is whole.
    ///
    /// Commits of embedded repositories are not ours to have.
    ///
    /// # Errors
    /// Where a tree that is there cannot be read.
    pub fn missing(&self, tree: TreeId, whole: TreeId) -> anyhow::Result<Vec<ObjectId>> {
        let mut missing = Vec::new();
        let mut pairs = vec![(tree.0, Some(whole.0))];
        while let Some((tree, whole)) = pairs.pop() {
            if Some(tree) == whole {
                continue;
            }
            if !self.has(tree) {
                missing.push(tree);
                continue;
            }
            let known = whole.map(|whole| self.entries_of(whole)).transpose()?.unwrap_or_default();
            let known: HashMap<_, _> = known.iter().map(|entry| (&entry.filename, entry)).collect();
            for entry in self.entries_of(tree)? {
                let before = known.get(&entry.filename);
                if before.is_some_and(|before| before.oid == entry.oid) || entry.mode.is_commit() {
                    continue;
                }
                if entry.mode.is_tree() {
                    pairs.push((entry.oid, before.filter(|before| before.mode.is_tree()).map(|before| before.oid)));
                } else if !self.has(entry.oid) {
                    missing.push(entry.oid);
                }
            }
        }
        Ok(missing)
    }

    /// Reads a tree's entries.
    fn entries_of(&self, tree: ObjectId) -> anyhow::Result<Vec<gix::objs::tree::Entry>> {
        let tree = self.gix.find_tree(tree).during("reading a tree")?;
        let decoded = tree.decode().during("reading a tree")?;
        Ok(decoded.entries.iter().map(|&entry| entry.into()).collect())
    }
}
