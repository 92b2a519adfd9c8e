//! Detects names that some file systems treat as the same: `src/A.rs` and `src/a.rs`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Facts;
use crate::plan::Plan;
use crate::text::path::{RepoPath, fold};

/// Spellings in use for each name that the plan creates.
pub struct NameCollisions {
    /// By folded name: the spellings in the snapshot and in the plan so far.
    spellings: HashMap<String, BTreeSet<String>>,
}

impl NameCollisions {
    /// Returns whether a name is recorded in exactly this spelling.
    pub fn contains(&self, name: &str) -> bool {
        let spellings = self.spellings.get(&fold(name));
        spellings.is_some_and(|spellings| spellings.contains(name))
    }

    /// Removes a name that the plan deletes.
    pub fn remove(&mut self, name: &str) {
        if let Some(spellings) = self.spellings.get_mut(&fold(name)) {
            spellings.remove(name);
        }
    }

    /// Collects the snapshot's spellings of the paths that a plan creates, and of their
    /// directories.
    pub fn of(plan: &Plan, facts: &dyn Facts) -> anyhow::Result<NameCollisions> {
        let mut collisions = NameCollisions {
            spellings: HashMap::new(),
        };
        for action in &plan.actions {
            if let Some(path) = action.kind.new_path() {
                for name in path_and_parents(path) {
                    collisions.spellings.entry(fold(name)).or_default();
                }
            }
        }

        // Without new names, the paths of the snapshot need not be listed.
        if !collisions.spellings.is_empty() {
            collisions.read(&facts.paths()?);
        }

        Ok(collisions)
    }

    /// Records the spellings of sorted paths, each directory once.
    fn read(&mut self, paths: &[String]) {
        let mut last = "";
        for path in paths {
            // The paths are sorted, so directories shared with the previous path are recorded
            // already.
            let shared = path
                .bytes()
                .zip(last.bytes())
                .take_while(|(a, b)| a == b)
                .count();
            let ends = path
                .match_indices('/')
                .map(|(at, _)| at)
                .chain([path.len()]);
            for name in ends.filter(|&end| end >= shared).map(|end| &path[..end]) {
                if let Some(spellings) = self.spellings.get_mut(&fold(name)) {
                    spellings.insert(name.to_owned());
                }
            }

            last = path;
        }
    }

    /// Records a path that the plan creates. If it, or a directory above it, exists in another
    /// spelling, returns that name and the other spelling.
    pub fn add(&mut self, path: &RepoPath) -> Option<(String, String)> {
        let mut collisions = BTreeMap::new();
        for name in path_and_parents(path) {
            let spellings = self.spellings.entry(fold(name)).or_default();
            if !spellings.contains(name) {
                collisions.extend(
                    spellings
                        .first()
                        .map(|other| (name.to_owned(), other.clone())),
                );
                spellings.insert(name.to_owned());
            }
        }
        // The topmost name, because its twin explains all names below it.
        collisions.pop_first()
    }
}

fn path_and_parents(path: &RepoPath) -> impl Iterator<Item = &str> {
    path.ancestors().chain([path.as_str()])
}
