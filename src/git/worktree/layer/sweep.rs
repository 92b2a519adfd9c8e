//! A layer before a turn: what git ignores stays, everything else goes.

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
use crate::host::file::{Root, open_up, remove_below};
use crate::host::overlay::show_below;

/// Removes from a layer all that git does not ignore, and what hides files below
/// that are called as secrets are: these are found anew. What is in one of the trees that were
/// `recorded` of the layer goes, too, whether git ignores it now or not.
pub(super) fn sweep(
    user: &Repository,
    lower: &LowerFiles<'_>,
    recorded: &[TreeId],
    files: &Path,
) -> anyhow::Result<()> {
    let top = &Root::open_strictly(files)?;
    remove_below(top, OsStr::new(GIT))?;
    let mut rules = LazyRules::new(user);
    let (mut folders, mut entered) = (vec![Vec::new()], Vec::new());
    while let Some(path) = folders.pop() {
        let root = top.folder(Path::new(OsStr::from_bytes(&path)))?;
        let Some(folder) = list(top, files, &path) else {
            // Whatever it is, no command can use it.
            remove_all(&root)?;
            continue;
        };

        let paths: Vec<Vec<u8>> = folder
            .names
            .iter()
            .map(|(name, _)| below(&path, name))
            .collect();
        let asked: BTreeSet<&[u8]> = paths.iter().map(Vec::as_slice).collect();
        // What a power cut took of a turn counts for nothing here: the layer is ours to lose.
        let earlier = recorded.iter().map(|tree| user.entries_at(*tree, &asked));
        let mut known: Vec<_> = earlier.flatten().collect();
        known.push(user.entries_at(lower.tree, &asked)?);
        for ((name, entry), path) in folder.names.iter().zip(&paths) {
            let is_folder = matches!(entry, LayerEntry::Folder { .. });
            let tracked = known.iter().find_map(|known| known.get(path.as_slice()));
            let mode = if is_folder { Mode::DIR } else { Mode::FILE };
            let ignored = rules.ignores(path, mode)?;
            match fate((*entry, tracked), ignored, || lower.limits.is_secret(path)) {
                Fate::Stays => {}
                Fate::Goes => {
                    open_up(&root, name);
                    remove_below(&root, name)?;
                }
                Fate::Entered => folders.push(path.clone()),
            }
        }
        entered.push(path);
    }

    // The deepest first: what is empty goes, and what is not shows what is below again.
    for path in entered.iter().rev().filter(|path| !path.is_empty()) {
        let at = place(files, path);
        if std::fs::remove_dir(&at).is_err() {
            show_below(&at);
        }
    }

    Ok(())
}

/// What becomes of a name.
enum Fate {
    /// It stays, with all that is in it.
    Stays,
    /// It goes, with all that is in it.
    Goes,
    /// It is a folder that is looked into.
    Entered,
}

/// Returns what becomes of a name.
fn fate(
    (entry, tracked): (LayerEntry, Option<&TreeEntry>),
    ignored: bool,
    is_secret: impl Fn() -> bool,
) -> Fate {
    let tracked = tracked.map(|entry| entry.mode);
    match (entry, tracked) {
        // A repository within: nothing of what was done in it was recorded.
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

/// Removes everything in a folder.
fn remove_all(folder: &Root) -> anyhow::Result<()> {
    for name in folder.names().unwrap_or_default() {
        remove_below(folder, &name)?;
    }
    Ok(())
}
