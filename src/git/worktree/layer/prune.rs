//! Removes from a layer what must not stay in it between turns.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use gix::index::entry::Mode;

use super::{LayerEntry, LowerFiles, list_layer_dir, path_in};
use crate::git::ignore::LazyRules;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::paths;
use crate::git::repository::Repository;
use crate::git::worktree::root::GIT;
use crate::host::file::{Root, remove_below};
use crate::host::overlay::clear_opaque;
use crate::text::path::FOREIGN_CONTROL_DIRS;

/// Maximum number of names to read in a search for changed ignored files. A large build directory must
/// not delay the turn.
pub(super) const MAX_IGNORED: usize = 2_000;

/// Removes everything that git does not ignore, and the whiteouts of secrets: names of secrets and
/// `hidden` paths. The next run searches for secrets again. Files of the `recorded` trees are removed
/// even if git ignores them by now.
pub(super) fn prune_files(
    user: &Repository,
    lower: &LowerFiles<'_>,
    recorded: &[TreeId],
    hidden: &BTreeSet<Vec<u8>>,
    files: &Path,
) -> anyhow::Result<()> {
    let top = &Root::open_strictly(files)?;
    for name in [GIT].into_iter().chain(FOREIGN_CONTROL_DIRS) {
        remove_below(top, OsStr::new(name))?;
    }
    let mut rules = LazyRules::new(user);
    let (mut dirs, mut entered, mut ignored_dirs) = (vec![Vec::new()], Vec::new(), Vec::new());
    while let Some(path) = dirs.pop() {
        let root = top.open_dir(Path::new(OsStr::from_bytes(&path)))?;
        let Some(dir) = list_layer_dir(top, files, &path) else {
            // Unreadable or too deep, so no command can use it.
            remove_contents(&root)?;
            continue;
        };

        let paths = dir.paths();
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
            match prune_action(*entry, tracked, ignored, || {
                hidden.contains(path) || lower.limits.is_secret(path)
            }) {
                // The user's later version wins.
                PruneAction::Retained if !is_dir && is_outdated(user, files, path) => {
                    remove_below(&root, name)?;
                }
                PruneAction::Retained if is_dir => ignored_dirs.push(path.clone()),
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

    remove_outdated(user, top, files, ignored_dirs)
}

/// Removes files in ignored directories that the user has changed since a command did. A directory
/// that a command has replaced as a whole stays.
fn remove_outdated(
    user: &Repository,
    top: &Root,
    files: &Path,
    mut dirs: Vec<Vec<u8>>,
) -> anyhow::Result<()> {
    let mut seen = 0;
    while let Some(path) = dirs.pop() {
        let Some(dir) = list_layer_dir(top, files, &path) else {
            continue;
        };
        let root = top.open_dir(Path::new(OsStr::from_bytes(&path)))?;
        for (name, entry) in &dir.names {
            seen += 1;
            if seen > MAX_IGNORED {
                return Ok(());
            }
            let path = paths::join(&path, name.as_bytes());
            match entry {
                LayerEntry::Dir { opaque: false } => dirs.push(path),
                LayerEntry::Dir { opaque: true } => {}
                _ if is_outdated(user, files, &path) => remove_below(&root, name)?,
                _ => {}
            }
        }
    }

    Ok(())
}

/// Returns whether the user has changed a file since a command wrote or deleted it in the layer.
fn is_outdated(user: &Repository, files: &Path, path: &[u8]) -> bool {
    let lower = path_in(user.workdir(), path).symlink_metadata();
    let upper = path_in(files, path).symlink_metadata();
    lower.is_ok_and(|lower| {
        // Package managers set an old mtime.
        let changed = (lower.ctime(), lower.ctime_nsec());
        upper.is_ok_and(|upper| changed > (upper.ctime(), upper.ctime_nsec()))
    })
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
    entry: LayerEntry,
    tracked: Option<&TreeEntry>,
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
