//! A worktree that has only what plans without commands named: the paths themselves, what is on
//! the way to them, and the rule files that hold there.
//!
//! Nothing marks such a worktree. Only the note of a tree beside the index says that everything is
//! there, and it goes before a part is brought. So nothing that a crash leaves is taken for whole.
//! The index has what was brought; what else lies in the worktree nobody looks at until a command
//! needs everything.

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

/// What a plan without commands sees of a tree.
pub(super) struct VisiblePart {
    /// The index of the worktree: what these paths are in the tree, and what earlier plans saw.
    index: State,
    /// What has to be as the tree says.
    wanted: BTreeSet<Vec<u8>>,
    /// Folders of the tree among these, which are there even if nothing in them is brought.
    folders: Vec<Vec<u8>>,
}

impl VisiblePart {
    /// Finds what some paths are in a tree; `old` is the index as it was.
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

    /// Compares the worktree with its index, as far as it matters.
    pub(super) fn look(
        &self,
        top: &Top,
        old: &State,
        options: StatOptions,
    ) -> anyhow::Result<Survey> {
        let mut survey = glance(top, old, options, self.wanted.iter())?;
        // What is in a folder of the tree stays: it is nobody's concern now.
        let is_kept = |path: &Vec<u8>| self.folders.binary_search(path).is_ok();
        survey
            .others
            .retain(|other| !(other.folder && is_kept(&other.path)));
        Ok(survey)
    }
}

/// Returns an index of what was found at the paths that were asked for, and of everything that an
/// index had and that is not in the way of these.
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

/// Brings a part of the tree; what else is in the worktree stays as it is.
pub(super) fn bring_part(switch: &Switch<'_>, part: VisiblePart) -> anyhow::Result<()> {
    let VisiblePart {
        index: mut new,
        wanted,
        folders,
    } = part;
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

/// Makes folders of the tree, whatever is in their places.
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

        // As for a file in it: then the worktree is made anew.
        anyhow::ensure!(
            matches!(walked, WalkResult::Place(_)),
            "`{}` cannot be made",
            folder.to_str_lossy()
        );
    }

    Ok(())
}
