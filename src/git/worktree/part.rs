//! A worktree that contains only what plans without commands named: the paths, their parent
//! directories, and the rule files that apply to them.
//!
//! There is no marker for such a worktree. The note of a tree next to the index means that all
//! files are there, and it is removed before a part is written. So a crash cannot make an
//! incomplete worktree look complete. The index lists what was written. Other files in the worktree
//! are ignored until a command needs all files.

use std::collections::{BTreeMap, BTreeSet};

use gix::bstr::{BStr, ByteSlice as _};
use gix::index::State;
use gix::index::entry::stat::Options as StatOptions;
use gix::index::entry::{Flags, Stage, Stat};

use super::glance::{glance, with_rules};
use super::index;
use super::path::folders_above;
use super::sparse::{hide, without_hidden};
use super::survey::Survey;
use super::switch::Switch;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::place::{IfMissing, Top, WalkResult};
use crate::git::repository::Repository;
use crate::host::fault;

pub(super) struct VisiblePart {
    /// New index: these paths in the tree, and the paths of earlier plans.
    index: State,
    /// Paths that must equal the tree.
    wanted: BTreeSet<Vec<u8>>,
    /// Directories of the tree among the paths and their parents. They exist even if no file in
    /// them is written.
    folders: Vec<Vec<u8>>,
}

impl VisiblePart {
    /// Looks the paths up in a tree. `old` is the current index.
    pub(super) fn of(
        repository: &Repository,
        tree: TreeId,
        old: &State,
        paths: &[Vec<u8>],
    ) -> anyhow::Result<VisiblePart> {
        let named = with_rules(paths.iter());
        let above = paths.iter().flat_map(|path| folders_above(path));
        let above: BTreeSet<Vec<u8>> = above.map(<[u8]>::to_vec).collect();
        let asked = named.iter().chain(&above).map(Vec::as_slice).collect();
        let found = repository.entries_at(tree, &asked)?;

        let is_folder = |path: &&Vec<u8>| {
            let entry = found.get(path.as_slice());
            entry.is_some_and(|entry| entry.mode == EntryMode::Tree)
        };
        let folders = above.iter().chain(paths).filter(is_folder);
        let folders: BTreeSet<Vec<u8>> = folders.cloned().collect();
        let others = above.iter().filter(|path| !is_folder(path));

        Ok(VisiblePart {
            index: index_of(repository, old, &asked, &found),
            wanted: named.iter().chain(others).cloned().collect(),
            folders: folders.into_iter().collect(),
        })
    }

    pub(super) fn look(
        &self,
        top: &Top,
        old: &State,
        options: StatOptions,
    ) -> anyhow::Result<Survey> {
        let mut survey = glance(top, old, options, self.wanted.iter())?;
        // Other files in a directory of the tree stay.
        let is_kept = |path: &Vec<u8>| self.folders.binary_search(path).is_ok();
        survey
            .others
            .retain(|other| !(other.folder && is_kept(&other.path)));
        Ok(survey)
    }
}

/// Returns an index of the entries found, and of those old entries that do not collide with them.
fn index_of(
    repository: &Repository,
    old: &State,
    asked: &BTreeSet<&[u8]>,
    found: &BTreeMap<&[u8], TreeEntry>,
) -> State {
    let is_folder = |path: &[u8]| {
        found
            .get(path)
            .is_some_and(|found| found.mode == EntryMode::Tree)
    };
    let stays = |path: &[u8]| {
        let in_the_way = |folder| asked.contains(folder) && !is_folder(folder);
        !asked.contains(path) && !folders_above(path).any(in_the_way)
    };

    let mut index = State::new(repository.gix.object_hash());
    let mut push = |id, mode, path: &[u8]| {
        let path: &BStr = path.as_bstr();
        index.dangerously_push_entry(Stat::default(), id, Flags::empty(), mode, path);
    };
    let known = old.entries().iter();

    for entry in known.filter(|entry| entry.stage() == Stage::Unconflicted) {
        let path = entry.path(old);
        if stays(path) {
            push(entry.id, entry.mode, path);
        }
    }

    for (path, entry) in found {
        if let Some(mode) = index::mode(entry.mode) {
            push(entry.id, mode, path);
        }
    }

    index.sort_entries();
    index
}

pub(super) fn bring_part(switch: &Switch<'_>, part: VisiblePart) -> anyhow::Result<()> {
    let VisiblePart {
        index: mut new,
        wanted,
        folders,
    } = part;
    // Before any file changes, so a crash cannot leave a note that claims a complete worktree.
    index::forget_tree(switch.repository);
    fault::point("before-part")?;
    hide(switch.user, &mut new)?;
    let mut differing = switch.take_over(&mut new);

    differing.retain(|&at| wanted.contains::<[u8]>(new.entry(at).path(&new)));

    switch.put(&mut new, &differing)?;
    make_folders(switch, &without_hidden(switch.user, folders)?)?;
    fault::point("after-part")?;
    if differing.is_empty() && switch.has_same_files(&new) {
        return Ok(());
    }

    index::write_part(switch.repository, new)
}

/// Creates directories of the tree, replacing files and symlinks.
fn make_folders(switch: &Switch<'_>, folders: &[Vec<u8>]) -> anyhow::Result<()> {
    for folder in folders {
        let inside = [folder, b"/x".as_slice()].concat();
        let walked = match switch.top.walk(&inside, IfMissing::Make)? {
            WalkResult::Blocked(end) => {
                switch.remove_file(&inside[..end])?;
                switch.top.walk(&inside, IfMissing::Make)?
            }
            walked => walked,
        };

        // The caller creates the worktree again, as for a file that cannot be written.
        anyhow::ensure!(
            matches!(walked, WalkResult::Place(_)),
            "`{}` cannot be made",
            folder.to_str_lossy()
        );
    }

    Ok(())
}
