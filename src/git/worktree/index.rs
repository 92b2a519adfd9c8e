//! The index of a session's worktree, and a note of the tree that it was written for.
//!
//! The note is valid only for exactly the index file that it was written with. It means that the
//! worktree has all files of the tree, and lets a switch compare two trees instead of every file.
//! Commands can write neither file. If a power cut damaged one, every file is compared.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice as _;
use gix::index::entry::{Flags, Mode as IndexMode, Stat};
use gix::index::{Entry, File, State};

use crate::git::During;
use crate::git::diff::{self, TreeChange};
use crate::git::ignore::user_index;
use crate::git::object::id::index_mode;
use crate::git::object::{EntryMode, TreeId};
use crate::git::repository::Repository;
use crate::git::snapshot::known_files::{KnownFile, each_known_file};
use crate::git::sparse::Hidden;
use crate::host::file::{read_regular_text, write_cache};

/// File with the note, next to the index.
pub(super) const TREE_NOTE: &str = "tree";

/// Approximate size of an index without entries.
const BASE_SIZE: usize = 1 << 10;

/// Maximum size of an entry without its path.
const MAX_ENTRY_SIZE: usize = 96;

/// Upper bound for the note, which is one line.
const MAX_NOTE: u64 = 4 << 10;

pub(super) struct KnownIndex {
    /// Empty if the index is missing or unreadable.
    pub(super) index: State,
    /// Changes from the noted tree to the target. `None` without a valid note.
    pub(super) changes: Option<Vec<TreeChange>>,
}

pub(super) fn load(repository: &Repository, tree: TreeId) -> anyhow::Result<KnownIndex> {
    let Ok(index) = read(repository) else {
        // Otherwise a switch that writes no index would leave the broken one behind.
        let _ = std::fs::remove_file(repository.gix.index_path());
        return Ok(KnownIndex {
            index: State::new(repository.gix.object_hash()),
            changes: None,
        });
    };

    let changes = noted(repository)
        .map(|old| diff::changes(repository, old, tree))
        .transpose()?;
    Ok(KnownIndex { index, changes })
}

pub(super) fn read(repository: &Repository) -> anyhow::Result<State> {
    let options = gix::index::decode::Options::default();
    let index = File::at(
        repository.gix.index_path(),
        repository.gix.object_hash(),
        true,
        options,
    );
    let (state, _) = index
        .during("reading the index of the worktree")?
        .into_parts();
    anyhow::ensure!(
        !state.is_sparse(),
        "the index of the worktree has whole folders in it"
    );

    Ok(state)
}

/// Returns the index of a tree, derived from `old` if the changes are known. The stats of changed
/// files are reset.
pub(super) fn for_tree(
    repository: &Repository,
    old: &State,
    tree: TreeId,
    changes: Option<&[TreeChange]>,
) -> anyhow::Result<State> {
    let Some(changes) = changes else {
        let index = repository
            .gix
            .index_from_tree(&tree.0)
            .during(format_args!("reading tree {tree}"))?;
        return Ok(index.into_parts().0);
    };

    let mut index = old.clone();
    if changes.is_empty() {
        return Ok(index);
    }

    let changed_paths: BTreeSet<_> = changes.iter().map(|change| change.path.as_bstr()).collect();
    index.remove_entries(|_, path, _| changed_paths.contains(path));
    for change in changes {
        let Some(entry) = &change.new else { continue };
        let Some(mode) = mode(entry.mode) else {
            continue;
        };
        index.dangerously_push_entry(
            Stat::default(),
            entry.id,
            Flags::empty(),
            mode,
            change.path.as_bstr(),
        );
    }

    index.sort_entries();
    Ok(index)
}

/// Converts a mode; `None` for a tree.
pub(super) fn mode(mode: EntryMode) -> Option<IndexMode> {
    (mode != EntryMode::Tree).then(|| index_mode(mode))
}

/// Writes the index of a complete worktree, and the note of its tree.
pub(super) fn write(repository: &Repository, index: State, tree: TreeId) -> anyhow::Result<()> {
    write_part(repository, index)?;
    // After the index, because the note identifies that very file.
    let Some(identity) = identity(repository) else {
        return Ok(());
    };
    let text = format!("{tree} {identity}\n");
    Ok(write_cache(&note(repository), text.as_bytes())?)
}

/// Writes the index of an incomplete worktree. The note must have been removed before.
pub(super) fn write_part(repository: &Repository, mut index: State) -> anyhow::Result<()> {
    // The cached trees do not match the changed entries.
    index.remove_tree();
    Ok(write_cache(&repository.gix.index_path(), &encode(&index)?)?)
}

/// Encodes an index as in its file.
pub(super) fn encode(index: &State) -> anyhow::Result<Vec<u8>> {
    let length = BASE_SIZE + index.entries().len() * MAX_ENTRY_SIZE + index.path_backing().len();
    let mut bytes = Vec::with_capacity(length);
    index
        .write_to(&mut bytes, Default::default())
        .during("writing the index of the worktree")?;
    // git accepts a null checksum: always since 2.40, before that except in `fsck`.
    bytes.extend_from_slice(index.object_hash().null().as_slice());
    Ok(bytes)
}

pub(super) fn forget_tree(repository: &Repository) {
    // If removal fails, the note does not match the index that is written next.
    let _ = std::fs::remove_file(note(repository));
}

/// Returns the noted tree if the index file is the one that we wrote.
fn noted(repository: &Repository) -> Option<TreeId> {
    let text = read_regular_text(&note(repository), MAX_NOTE).ok()?;
    let (tree, recorded) = text.trim_end().split_once(' ')?;
    (identity(repository)? == recorded).then(|| tree.parse().ok())?
}

/// Returns the identity of the index file: inode, size and times.
fn identity(repository: &Repository) -> Option<String> {
    let of = std::fs::symlink_metadata(repository.gix.index_path()).ok()?;
    Some(format!(
        "{} {} {}.{} {}.{}",
        of.ino(),
        of.len(),
        of.mtime(),
        of.mtime_nsec(),
        of.ctime(),
        of.ctime_nsec()
    ))
}

fn note(repository: &Repository) -> PathBuf {
    repository.gix.index_path().with_file_name(TREE_NOTE)
}

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

/// Returns the index with which commands start in a layer: the files of `start` with their known
/// stats. `private` is the private index of a snapshot with `tree`.
pub(super) fn for_layer(
    user: &Repository,
    tree: TreeId,
    start: TreeId,
    private: &Path,
) -> anyhow::Result<State> {
    let mut known = State::new(user.gix.object_hash());
    let add = |file: KnownFile<'_>| {
        let (flags, path) = (Flags::empty(), file.path.as_bstr());
        known.dangerously_push_entry(file.stat, file.id, flags, file.mode, path);
    };
    let is_known = start == tree && each_known_file(user, private, tree, add).is_some();
    let mut index = match is_known {
        true => known,
        false => {
            let files = user.gix.index_from_tree(&start.0);
            files.during("reading the files of a turn")?.into_parts().0
        }
    };
    hide_sparse(user, &mut index)?;
    Ok(index)
}
