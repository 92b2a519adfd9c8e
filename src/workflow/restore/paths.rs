//! Restores that are restricted to some paths.

use std::collections::BTreeMap;

use super::RestoreOptions;
use super::restore_plan::is_below;
use crate::git::diff;
use crate::git::object::{TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::session::turn::Turn;
use crate::text::path::lossy;
use crate::text::sanitize::sanitize_line;

/// Refuses paths that are nowhere.
pub(super) fn check_paths(
    repository: &Repository,
    turn: &Turn,
    options: &RestoreOptions,
    trees: [TreeId; 2],
) -> anyhow::Result<()> {
    for path in &options.paths {
        let mut is_there = false;
        for tree in trees {
            is_there |= repository.entry(tree, path.as_bytes())?.is_some();
        }

        let (name, number) = (sanitize_line(path), turn.number());
        anyhow::ensure!(
            is_there,
            "`{name}` is neither in turn {number} nor in a snapshot of your files"
        );
    }

    Ok(())
}

/// Returns `tree` as far as the paths go, and `elsewhere` for all others; and the files of `elsewhere`
/// that are in the way of a directory on these paths. They are not on the paths, so they stay.
pub(super) fn restrict_to_paths(
    repository: &Repository,
    elsewhere: TreeId,
    tree: TreeId,
    paths: &[String],
) -> anyhow::Result<(TreeId, Vec<Vec<u8>>)> {
    if paths.is_empty() {
        return Ok((tree, Vec::new()));
    }

    let changes = diff::changes(repository, elsewhere, tree)?;
    let mut edits: BTreeMap<Vec<u8>, Option<TreeEntry>> = changes
        .into_iter()
        .filter(|change| is_below(&change.path, paths))
        .map(|change| (change.path, change.new))
        .collect();
    let restricted = diff::tree_with(repository, elsewhere, &edits)?;
    let changed = diff::changes(repository, elsewhere, restricted)?.into_iter();
    let changed = changed.map(|change| change.path);
    let outside_paths: Vec<Vec<u8>> = changed.filter(|path| !is_below(path, paths)).collect();
    if outside_paths.is_empty() {
        return Ok((restricted, outside_paths));
    }

    let in_the_way: Vec<String> = outside_paths.iter().map(|path| lossy(path)).collect();
    edits.retain(|path, _| !is_below(path, &in_the_way));
    Ok((
        diff::tree_with(repository, elsewhere, &edits)?,
        outside_paths,
    ))
}
