//! The index of a session's worktree, and a note of the tree that it was written for.
//!
//! With the note a switch reads only the trees that differ, and it alone says that all of the tree
//! is there. It holds for the very file that was written with it. Both lie where no command can
//! write; what a power cut took of them counts for nothing, and every file is compared.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use gix::bstr::ByteSlice;
use gix::index::entry::{Flags, Mode as IndexMode, Stat};
use gix::index::{File, State};

use crate::git::During;
use crate::git::diff;
use crate::git::diff::TreeChange;
use crate::git::object::{EntryMode, TreeId};
use crate::git::repository::Repository;
use crate::host::file::{read_regular_text, write_cache};

/// The file with the note, beside the index.
pub(super) const NOTE: &str = "tree";
/// About what an index has besides its entries.
const HEADER: usize = 1 << 10;
/// What an entry takes at most, besides its path.
const ENTRY: usize = 96;
/// It is one line.
const MAX_NOTE: u64 = 4 << 10;

/// What is known of a worktree's files.
pub(super) struct KnownIndex {
    /// The index; empty where there is none that can be read.
    pub(super) index: State,
    /// What a tree changes in the one that the index was written for, where that is known.
    pub(super) changes: Option<Vec<TreeChange>>,
}

/// Reads what is known of a worktree's files, for a switch to a tree.
pub(super) fn known(repository: &Repository, tree: TreeId) -> anyhow::Result<KnownIndex> {
    let Ok(index) = read(repository) else {
        // Whoever reads it after the switch must not meet it either, even if nothing is written.
        let _ = std::fs::remove_file(repository.gix.index_path());
        return Ok(KnownIndex {
            index: State::new(repository.gix.object_hash()),
            changes: None,
        });
    };

    let changes = noted(repository)
        .map(|known| diff::changes(repository, known, tree))
        .transpose()?;
    Ok(KnownIndex { index, changes })
}

/// Reads the index of a worktree.
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

/// Returns the index of a tree, made from `old` where it is known what changes; what `old` knows of
/// files is in it or is not.
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

    let gone: BTreeSet<_> = changes.iter().map(|change| change.path.as_bstr()).collect();
    index.remove_entries(|_, path, _| gone.contains(path));
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

/// Returns what an index says of an entry of a tree; nothing of a folder.
pub(super) fn mode(mode: EntryMode) -> Option<IndexMode> {
    match mode {
        EntryMode::File => Some(IndexMode::FILE),
        EntryMode::Executable => Some(IndexMode::FILE_EXECUTABLE),
        EntryMode::Link => Some(IndexMode::SYMLINK),
        EntryMode::Gitlink => Some(IndexMode::COMMIT),
        EntryMode::Tree => None,
    }
}

/// Writes the index of a whole worktree, and notes its tree.
pub(super) fn write(repository: &Repository, index: State, tree: TreeId) -> anyhow::Result<()> {
    write_part(repository, index)?;
    let Some(identity) = identity(repository) else {
        return Ok(());
    };
    let text = format!("{tree} {identity}\n");
    Ok(write_cache(&note(repository), text.as_bytes())?)
}

/// Writes the index of a worktree of which a part is there: no note says otherwise.
pub(super) fn write_part(repository: &Repository, mut index: State) -> anyhow::Result<()> {
    index.remove_tree();
    let length = HEADER + index.entries().len() * ENTRY + index.path_backing().len();
    let mut bytes = Vec::with_capacity(length);
    let file = File::from_state(index, repository.gix.index_path());

    // Git has done without the sum over the whole file since 2.40, and before it asked for it in
    // `fsck` only.
    let options = gix::index::write::Options {
        skip_hash: true,
        ..Default::default()
    };
    file.write_to(&mut bytes, options)
        .during("writing the index of the worktree")?;
    Ok(write_cache(&repository.gix.index_path(), &bytes)?)
}

/// Forgets that everything of a tree is there, if that was noted.
pub(super) fn forget_tree(repository: &Repository) {
    // One that stays holds for an index that is no more.
    let _ = std::fs::remove_file(note(repository));
}

/// Returns the tree that the index was written for, if it is still the file that we wrote.
fn noted(repository: &Repository) -> Option<TreeId> {
    let text = read_regular_text(&note(repository), MAX_NOTE).ok()?;
    let (tree, known) = text.trim_end().split_once(' ')?;
    (identity(repository)? == known).then(|| tree.parse().ok())?
}

/// Returns what tells the index file from every other.
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

/// Returns where the note is.
fn note(repository: &Repository) -> PathBuf {
    repository.gix.index_path().with_file_name(NOTE)
}
