//! What the user's sparse checkout leaves out is not in a session's worktree either.

use std::collections::HashSet;

use gix::bstr::{BStr, ByteSlice};
use gix::index::entry::Flags;
use gix::index::{Entry, State};

use crate::git::During;
use crate::git::repository::Repository;

/// Marks the entries that the user's index has and their worktree has not; returns whether any mark
/// changed.
pub(super) fn hide(user: &Repository, index: &mut State) -> anyhow::Result<bool> {
    let hidden = left_out(user)?;
    let mut changed = false;
    for (entry, path) in index.entries_mut_with_paths() {
        let hide = !hidden.is_empty() && is_below(path, &hidden);
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
    let hidden = left_out(user)?;
    if hidden.is_empty() {
        return Ok(folders);
    }

    let index = user.gix.index_or_empty().during("reading the index")?;
    folders.retain(|folder| {
        let folder = [folder, b"/".as_slice()].concat();
        let below = index.prefixed_entries(folder.as_bstr());
        let is_hidden = |entry: &Entry| entry.flags.contains(Flags::SKIP_WORKTREE);
        let all_hidden = below.is_some_and(|below| below.iter().all(is_hidden));
        !all_hidden && !is_below(folder.as_bstr(), &hidden)
    });
    Ok(folders)
}

/// Returns the paths of files, and of whole folders with a final `/`, that the worktree has not.
fn left_out(user: &Repository) -> anyhow::Result<HashSet<Vec<u8>>> {
    if user.gix.config_snapshot().boolean("core.sparseCheckout") != Some(true) {
        return Ok(HashSet::new());
    }

    let index = user.gix.index_or_empty().during("reading the index")?;
    let hidden = index
        .entries()
        .iter()
        .filter(|entry| entry.flags.contains(Flags::SKIP_WORKTREE));
    Ok(hidden.map(|entry| entry.path(&index).to_vec()).collect())
}

/// Returns whether a path or a folder above it is among others.
fn is_below(path: &BStr, hidden: &HashSet<Vec<u8>>) -> bool {
    let folders = path.find_iter("/").map(|at| &path[..=at]);
    hidden.contains::<[u8]>(path)
        || folders
            .into_iter()
            .any(|folder| hidden.contains::<[u8]>(folder))
}
