//! Cleans a layer before a turn: ignored files stay, everything else is removed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::index::entry::Mode;

use super::changes::{LayerEntry, list_layer_dir};
use super::{LowerFiles, child_path, path_in};
use crate::git::ignore::LazyRules;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::git::worktree::root::GIT;
use crate::host::file::{Root, remove_below};
use crate::host::overlay::clear_opaque;

/// Removes everything that git does not ignore, and whiteouts of secrets, which are searched again:
/// those with the name of one, and `hidden` ones.
/// Files of the `recorded` trees are removed even if git ignores them by now.
pub(super) fn prune_files(
    user: &Repository,
    lower: &LowerFiles<'_>,
    recorded: &[TreeId],
    hidden: &BTreeSet<Vec<u8>>,
    files: &Path,
) -> anyhow::Result<()> {
    let top = &Root::open_strictly(files)?;
    remove_below(top, OsStr::new(GIT))?;
    let mut rules = LazyRules::new(user);
    let (mut dirs, mut entered) = (vec![Vec::new()], Vec::new());
    while let Some(path) = dirs.pop() {
        let root = top.open_dir(Path::new(OsStr::from_bytes(&path)))?;
        let Some(dir) = list_layer_dir(top, files, &path) else {
            // Unreadable or too deep, so no command can use it.
            remove_contents(&root)?;
            continue;
        };

        let paths: Vec<Vec<u8>> = dir
            .names
            .iter()
            .map(|(name, _)| child_path(&path, name))
            .collect();
        let path_set: BTreeSet<&[u8]> = paths.iter().map(Vec::as_slice).collect();
        // Skip trees that a power cut damaged: nothing in the layer is precious.
        let earlier = recorded
            .iter()
            .map(|tree| user.entries_at(*tree, &path_set));
        let mut listings: Vec<_> = earlier.flatten().collect();
        listings.push(user.entries_at(lower.tree, &path_set)?);
        for ((name, entry), path) in dir.names.iter().zip(&paths) {
            let is_dir = matches!(entry, LayerEntry::Dir { .. });
            let tracked = listings
                .iter()
                .find_map(|listing| listing.get(path.as_slice()));
            let mode = if is_dir { Mode::DIR } else { Mode::FILE };
            let ignored = rules.ignores(path, mode)?;
            match prune_action((*entry, tracked), ignored, || {
                hidden.contains(path) || lower.limits.is_secret(path)
            }) {
                PruneAction::Retained => {}
                PruneAction::Removed => remove_below(&root, name)?,
                PruneAction::Entered => dirs.push(path.clone()),
            }
        }
        entered.push(path);
    }

    // Deepest first. A directory that is not empty becomes transparent again.
    for path in entered.iter().rev().filter(|path| !path.is_empty()) {
        let at = path_in(files, path);
        if std::fs::remove_dir(&at).is_err() {
            clear_opaque(&at);
        }
    }

    Ok(())
}

enum PruneAction {
    /// Keep it, recursively.
    Retained,
    /// Remove it, recursively.
    Removed,
    /// Descend into the directory.
    Entered,
}

fn prune_action(
    (entry, tracked): (LayerEntry, Option<&TreeEntry>),
    ignored: bool,
    is_secret: impl Fn() -> bool,
) -> PruneAction {
    let tracked = tracked.map(|entry| entry.mode);
    match (entry, tracked) {
        // A nested repository: no change in it was recorded.
        (_, Some(EntryMode::Gitlink)) => PruneAction::Removed,
        (LayerEntry::Dir { .. }, Some(EntryMode::Tree)) => PruneAction::Entered,
        (LayerEntry::Dir { .. }, _) if ignored => PruneAction::Retained,
        (LayerEntry::Dir { .. }, _) => PruneAction::Entered,
        (_, Some(_)) => PruneAction::Removed,
        (LayerEntry::Whiteout, None) if is_secret() => PruneAction::Removed,
        (_, None) if ignored => PruneAction::Retained,
        (_, None) => PruneAction::Removed,
    }
}

fn remove_contents(dir: &Root) -> anyhow::Result<()> {
    for name in dir.names().unwrap_or_default() {
        remove_below(dir, &name)?;
    }
    Ok(())
}
