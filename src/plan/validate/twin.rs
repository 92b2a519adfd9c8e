//! Detects names that some file systems treat as the same: `src/A.rs` and `src/a.rs`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Facts;
use crate::plan::Plan;
use crate::text::path::{RepoPath, fold};

/// Spellings in use for each name that the plan creates.
pub struct Twins {
    /// By folded name: the spellings in the snapshot and in the plan so far.
    spellings: HashMap<String, BTreeSet<String>>,
}

impl Twins {
    /// Returns whether a name is recorded in exactly this spelling.
    pub fn knows(&self, name: &str) -> bool {
        let known = self.spellings.get(&fold(name));
        known.is_some_and(|known| known.contains(name))
    }

    /// Removes a name that the plan deletes.
    pub fn remove(&mut self, name: &str) {
        if let Some(known) = self.spellings.get_mut(&fold(name)) {
            known.remove(name);
        }
    }

    /// Collects the snapshot's spellings of the paths that a plan creates, and of their
    /// directories.
    pub fn of(plan: &Plan, facts: &dyn Facts) -> anyhow::Result<Twins> {
        let mut twins = Twins {
            spellings: HashMap::new(),
        };
        for action in &plan.actions {
            if let Some(path) = action.kind.new_path() {
                for name in names(path) {
                    twins.spellings.entry(fold(name)).or_default();
                }
            }
        }

        // Without new names, the paths of the snapshot need not be listed.
        if !twins.spellings.is_empty() {
            twins.read(&facts.paths()?);
        }

        Ok(twins)
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
                if let Some(known) = self.spellings.get_mut(&fold(name)) {
                    known.insert(name.to_owned());
                }
            }

            last = path;
        }
    }

    /// Records a path that the plan creates. If it, or a directory above it, exists in another
    /// spelling, returns that name and the other spelling.
    pub fn add(&mut self, path: &RepoPath) -> Option<(String, String)> {
        let mut twin = BTreeMap::new();
        for name in names(path) {
            let known = self.spellings.entry(fold(name)).or_default();
            if !known.contains(name) {
                twin.extend(known.first().map(|other| (name.to_owned(), other.clone())));
                known.insert(name.to_owned());
            }
        }
        // The topmost name, because its twin explains all names below it.
        twin.pop_first()
    }
}

fn names(path: &RepoPath) -> impl Iterator<Item = &str> {
    path.ancestors().chain([path.as_str()])
}
