//! Cleans a layer before a turn: ignored files stay, everything else is removed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::index::entry::Mode;

use super::changes::{LayerEntry, list};
use super::{LowerFiles, below, place};
use crate::git::ignore::LazyRules;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::git::worktree::root::GIT;
use crate::host::file::{Root, remove_below};
use crate::host::overlay::show_below;

/// Removes everything that git does not ignore, and whiteouts of secrets, which are searched again:
/// those with the name of one, and `hidden` ones.
/// Files of the `recorded` trees are removed even if git ignores them by now.
pub(super) fn sweep(
    user: &Repository,
    lower: &LowerFiles<'_>,
    recorded: &[TreeId],
    hidden: &BTreeSet<Vec<u8>>,
    files: &Path,
) -> anyhow::Result<()> {
    let top = &Root::open_strictly(files)?;
    remove_below(top, OsStr::new(GIT))?;
    let mut rules = LazyRules::new(user);
    let (mut folders, mut entered) = (vec![Vec::new()], Vec::new());
    while let Some(path) = folders.pop() {
        let root = top.folder(Path::new(OsStr::from_bytes(&path)))?;
        let Some(folder) = list(top, files, &path) else {
            // Unreadable or too deep, so no command can use it.
            remove_all(&root)?;
            continue;
        };

        let paths: Vec<Vec<u8>> = folder
            .names
            .iter()
            .map(|(name, _)| below(&path, name))
            .collect();
        let asked: BTreeSet<&[u8]> = paths.iter().map(Vec::as_slice).collect();
        // Skip trees that a power cut damaged: nothing in the layer is precious.
        let earlier = recorded.iter().map(|tree| user.entries_at(*tree, &asked));
        let mut known: Vec<_> = earlier.flatten().collect();
        known.push(user.entries_at(lower.tree, &asked)?);
        for ((name, entry), path) in folder.names.iter().zip(&paths) {
            let is_folder = matches!(entry, LayerEntry::Folder { .. });
            let tracked = known.iter().find_map(|known| known.get(path.as_slice()));
            let mode = if is_folder { Mode::DIR } else { Mode::FILE };
            let ignored = rules.ignores(path, mode)?;
            match fate((*entry, tracked), ignored, || {
                hidden.contains(path) || lower.limits.is_secret(path)
            }) {
                Fate::Stays => {}
                Fate::Goes => remove_below(&root, name)?,
                Fate::Entered => folders.push(path.clone()),
            }
        }
        entered.push(path);
    }

    // Deepest first. A directory that is not empty becomes transparent again.
    for path in entered.iter().rev().filter(|path| !path.is_empty()) {
        let at = place(files, path);
        if std::fs::remove_dir(&at).is_err() {
            show_below(&at);
        }
    }

    Ok(())
}

enum Fate {
    /// Keep it, recursively.
    Stays,
    /// Remove it, recursively.
    Goes,
    /// Descend into the directory.
    Entered,
}

fn fate(
    (entry, tracked): (LayerEntry, Option<&TreeEntry>),
    ignored: bool,
    is_secret: impl Fn() -> bool,
) -> Fate {
    let tracked = tracked.map(|entry| entry.mode);
    match (entry, tracked) {
        // A nested repository: no change in it was recorded.
        (_, Some(EntryMode::Gitlink)) => Fate::Goes,
        (LayerEntry::Folder { .. }, Some(EntryMode::Tree)) => Fate::Entered,
        (LayerEntry::Folder { .. }, _) if ignored => Fate::Stays,
        (LayerEntry::Folder { .. }, _) => Fate::Entered,
        (_, Some(_)) => Fate::Goes,
        (LayerEntry::Gone, None) if is_secret() => Fate::Goes,
        (_, None) if ignored => Fate::Stays,
        (_, None) => Fate::Goes,
    }
}

fn remove_all(folder: &Root) -> anyhow::Result<()> {
    for name in folder.names().unwrap_or_default() {
        remove_below(folder, &name)?;
    }
    Ok(())
}
