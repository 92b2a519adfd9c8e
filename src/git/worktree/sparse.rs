//! What the user's sparse checkout leaves out is not in a session's worktree either.

use std::collections::HashSet;

use gix::bstr::ByteSlice as _;
use gix::index::entry::Flags;
use gix::index::{Entry, State};

use crate::git::ignore::user_index;
use crate::git::repository::Repository;

/// Marks the entries that the user's index has and their worktree has not; returns whether any mark
/// changed.
pub(super) fn hide(user: &Repository, index: &mut State) -> anyhow::Result<bool> {
    let hidden = Hidden::of(user)?;
    let mut changed = false;
    for (entry, path) in index.entries_mut_with_paths() {
        let hide = hidden.has(path);
        if hide != entry.flags.contains(Flags::SKIP_WORKTREE) {
            entry
                .flags
                .set(Flags::SKIP_WORKTREE | Flags::EXTENDED, hide);
            changed = true;
        }
    }

    Ok(changed)
}

/// Returns those of some folders of which the user's worktree has something.
pub(super) fn without_hidden(
    user: &Repository,
    mut folders: Vec<Vec<u8>>,
) -> anyhow::Result<Vec<Vec<u8>>> {
    let hidden = Hidden::of(user)?;
    if hidden.is_empty() {
        return Ok(folders);
    }

    let index = &user_index(user)?.state;
    folders.retain(|folder| {
        let folder = [folder, b"/".as_slice()].concat();
        let below = index.prefixed_entries(folder.as_bstr());
        let is_hidden = |entry: &Entry| entry.flags.contains(Flags::SKIP_WORKTREE);
        let all_hidden = below.is_some_and(|below| below.iter().all(is_hidden));
        !all_hidden && !hidden.has(&folder)
    });
    Ok(folders)
}

/// Paths of files, and of whole folders with a final `/`, that the user's worktree has not.
pub(super) struct Hidden(HashSet<Vec<u8>>);

impl Hidden {
    /// Returns what the worktree of a repository has not.
    pub(super) fn of(user: &Repository) -> anyhow::Result<Hidden> {
        if user.gix.config_snapshot().boolean("core.sparseCheckout") != Some(true) {
            return Ok(Hidden(HashSet::new()));
        }

        let index = &user_index(user)?.state;
        let hidden = index
            .entries()
            .iter()
            .filter(|entry| entry.flags.contains(Flags::SKIP_WORKTREE));
        let paths = hidden.map(|entry| entry.path(index).to_vec());
        Ok(Hidden(paths.collect()))
    }

    /// Returns whether it has everything.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a path or a folder above it is not there.
    pub(super) fn has(&self, path: &[u8]) -> bool {
        let mut folders = path.find_iter("/").map(|at| &path[..=at]);
        !self.is_empty() && (self.0.contains(path) || folders.any(|folder| self.0.contains(folder)))
    }
}
