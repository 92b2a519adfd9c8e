//! What a tree holds beyond others that are whole: the objects that have to be there before a ref
//! moves to it, because nothing else may reach them.

use std::collections::HashMap;

use gix::ObjectId;

use super::During;
use super::object::TreeId;
use super::repository::Repository;

impl Repository {
    /// Returns the objects of a tree that others, which are whole, do not have in its place;
    /// nothing is looked for below a folder that is missing.
    ///
    /// Commits of embedded repositories are not ours to have.
    ///
    /// # Errors
    /// Where a tree that is there cannot be read.
    pub fn beyond(&self, tree: TreeId, whole: &[TreeId]) -> anyhow::Result<Vec<ObjectId>> {
        let mut beyond = Vec::new();
        let mut pairs = vec![(tree.0, whole.iter().map(|tree| tree.0).collect::<Vec<_>>())];
        while let Some((tree, whole)) = pairs.pop() {
            if whole.contains(&tree) {
                continue;
            }
            beyond.push(tree);
            if !self.has(tree) {
                continue;
            }
            // Of one that cannot be read, as in a clone without all trees, nothing is taken for
            // there.
            let known: Vec<_> = whole
                .into_iter()
                .filter_map(|whole| self.entries_of(whole).ok())
                .collect();
            let known: Vec<HashMap<_, _>> = known
                .iter()
                .map(|known| known.iter().map(|entry| (&entry.filename, entry)).collect())
                .collect();
            for entry in self.entries_of(tree)? {
                let before: Vec<_> = known
                    .iter()
                    .filter_map(|known| known.get(&entry.filename))
                    .collect();
                if before.iter().any(|before| before.oid == entry.oid) || entry.mode.is_commit() {
                    continue;
                }
                if entry.mode.is_tree() {
                    pairs.push((
                        entry.oid,
                        before
                            .iter()
                            .filter(|before| before.mode.is_tree())
                            .map(|before| before.oid)
                            .collect(),
                    ));
                } else {
                    beyond.push(entry.oid);
                }
            }
        }
        Ok(beyond)
    }

    /// Reads a tree's entries.
    fn entries_of(&self, tree: ObjectId) -> anyhow::Result<Vec<gix::objs::tree::Entry>> {
        let tree = self.gix.find_tree(tree).during("reading a tree")?;
        let decoded = tree.decode().during("reading a tree")?;
        Ok(decoded.entries.iter().map(|&entry| entry.into()).collect())
    }
}
