//! Counts the files of a tree that git does not track.

use std::path::Path;

use gix::index::State;

use super::known_files::each_known_file;
use crate::git::ignore::user_index;
use crate::git::object::TreeId;
use crate::git::repository::Repository;

struct UntrackedCounter<'a> {
    tracked: &'a State,
    next: usize,
    untracked: usize,
}

/// Returns how many files of a tree git does not track in this worktree, except those below
/// `.teddy/`. `index` is the private index of the worktree.
pub fn count_untracked(
    repository: &Repository,
    index: &Path,
    tree: TreeId,
) -> anyhow::Result<usize> {
    let tracked = &user_index(repository)?.state;
    let mut counter = UntrackedCounter::new(tracked);
    if each_known_file(repository, index, tree, |file| counter.add(file.path)).is_none() {
        counter = UntrackedCounter::new(tracked);
        let leaves = repository.leaves(tree)?;
        leaves.iter().for_each(|leaf| counter.add(&leaf.path));
    }
    Ok(counter.untracked)
}

impl UntrackedCounter<'_> {
    fn new(tracked: &State) -> UntrackedCounter<'_> {
        UntrackedCounter {
            tracked,
            next: 0,
            untracked: 0,
        }
    }

    /// Counts a file. Files must be added in order.
    fn add(&mut self, path: &[u8]) {
        let entries = self.tracked.entries();
        let tracked_path = |at: usize| Some(&**entries.get(at)?.path(self.tracked));
        while tracked_path(self.next).is_some_and(|candidate| candidate < path) {
            self.next += 1;
        }

        let is_ours = path.starts_with(b".teddy/");
        if !is_ours && tracked_path(self.next) != Some(path) {
            self.untracked += 1;
        }
    }
}
