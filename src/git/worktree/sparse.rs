//! Applies the user's sparse checkout to a session's worktree.

use gix::bstr::ByteSlice as _;
use gix::index::entry::Flags;
use gix::index::{Entry, State};

use crate::git::ignore::user_index;
use crate::git::repository::Repository;
use crate::git::sparse::Hidden;

/// Sets `skip-worktree` as in the user's index. Returns whether any entry changed.
pub(super) fn hide_sparse(user: &Repository, index: &mut State) -> anyhow::Result<bool> {
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

/// Returns the directories that exist in the user's sparse checkout.
pub(super) fn retain_visible_dirs(
    user: &Repository,
    mut dirs: Vec<Vec<u8>>,
) -> anyhow::Result<Vec<Vec<u8>>> {
    let hidden = Hidden::of(user)?;
    if hidden.is_empty() {
        return Ok(dirs);
    }

    let index = &user_index(user)?.state;
    dirs.retain(|dir| {
        let dir = [dir, b"/".as_slice()].concat();
        let entries = index.prefixed_entries(dir.as_bstr());
        let is_hidden = |entry: &Entry| entry.flags.contains(Flags::SKIP_WORKTREE);
        let all_hidden = entries.is_some_and(|entries| entries.iter().all(is_hidden));
        hidden.is_there(&dir) || !all_hidden && !hidden.has(&dir)
    });
    Ok(dirs)
}
