//! The index of a session's worktree, and a note of the tree that it was written for.
//!
//! With the note a switch reads only the trees that differ. It holds for the very file that we
//! wrote: once a plan's command has written another, the whole tree is read.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use gix::bstr::ByteSlice;
use gix::index::entry::{Flags, Mode as IndexMode, Stat};
use gix::index::{File, State};

use crate::git::During;
use crate::git::diff::Change;
use crate::git::object::{Mode, TreeId};
use crate::git::repository::Repository;

/// The file with the note.
const NOTE: &str = "teddy-index";

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

/// Returns what a tree changes in the one that the index was written for, where that is known.
pub(super) fn changes(
    repository: &Repository,
    tree: TreeId,
) -> anyhow::Result<Option<Vec<Change>>> {
    noted(repository)
        .map(|known| repository.changes(known, tree))
        .transpose()
}

/// Returns the index of a tree, made from `old` where it is known what changes; what `old` knows of
/// files is in it or is not.
pub(super) fn for_tree(
    repository: &Repository,
    old: &State,
    tree: TreeId,
    changes: Option<&[Change]>,
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
        let mode = match entry.mode {
            Mode::File => IndexMode::FILE,
            Mode::Executable => IndexMode::FILE_EXECUTABLE,
            Mode::Link => IndexMode::SYMLINK,
            Mode::Gitlink => IndexMode::COMMIT,
            Mode::Tree => continue,
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

/// Writes the index of a worktree, and notes its tree.
pub(super) fn write(repository: &Repository, mut index: State, tree: TreeId) -> anyhow::Result<()> {
    index.remove_tree();
    let mut file = File::from_state(index, repository.gix.index_path());
    // Git has done without the sum over the whole file since 2.40, and before it asked for it in
    // `fsck` only.
    let options = gix::index::write::Options {
        skip_hash: true,
        ..Default::default()
    };
    file.write(options)
        .during("writing the index of the worktree")?;
    remember(repository, tree)
}

/// Notes the tree that the index was written for just now.
pub(super) fn remember(repository: &Repository, tree: TreeId) -> anyhow::Result<()> {
    let Some(identity) = identity(repository) else {
        return Ok(());
    };
    Ok(std::fs::write(
        note(repository),
        format!("{tree} {identity}\n"),
    )?)
}

/// Returns the tree that the index was written for, if it is still the file that we wrote.
fn noted(repository: &Repository) -> Option<TreeId> {
    let text = std::fs::read_to_string(note(repository)).ok()?;
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
    repository.git_dir().join(NOTE)
}
