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

use super::index;
use super::path::parent_dirs;
use super::path_check::{check_paths, with_rule_files};
use super::scan::Scan;
use super::sparse::{hide_sparse, retain_visible_dirs};
use super::switch::Switch;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::path_handle::{IfMissing, Top, WalkResult};
use crate::git::repository::Repository;
use crate::host::fault;

pub(super) struct VisiblePart {
    /// New index: these paths in the tree, and the paths of earlier plans.
    index: State,
    /// Paths that must equal the tree.
    checked: BTreeSet<Vec<u8>>,
    /// Directories of the tree among the paths and their parents. They exist even if no file in
    /// them is written.
    dirs: Vec<Vec<u8>>,
}

impl VisiblePart {
    /// Looks the paths up in a tree. `old` is the current index.
    pub(super) fn of(
        repository: &Repository,
        tree: TreeId,
        old: &State,
        paths: &[Vec<u8>],
    ) -> anyhow::Result<VisiblePart> {
        let rule_paths = with_rule_files(paths.iter());
        let above = paths.iter().flat_map(|path| parent_dirs(path));
        let above: BTreeSet<Vec<u8>> = above.map(<[u8]>::to_vec).collect();
        let queried = rule_paths.iter().chain(&above).map(Vec::as_slice).collect();
        let entries = repository.entries_at(tree, &queried)?;

        let is_dir = |path: &&Vec<u8>| {
            let entry = entries.get(path.as_slice());
            entry.is_some_and(|entry| entry.mode == EntryMode::Tree)
        };
        let dirs = above.iter().chain(paths).filter(is_dir);
        let dirs: BTreeSet<Vec<u8>> = dirs.cloned().collect();
        let others = above.iter().filter(|path| !is_dir(path));

        Ok(VisiblePart {
            index: partial_index(repository, old, &queried, &entries),
            checked: rule_paths.iter().chain(others).cloned().collect(),
            dirs: dirs.into_iter().collect(),
        })
    }

    pub(super) fn check(
        &self,
        top: &Top,
        old: &State,
        options: StatOptions,
    ) -> anyhow::Result<Scan> {
        let mut scan = check_paths(top, old, options, self.checked.iter())?;
        // Other files in a directory of the tree stay.
        let is_kept = |path: &Vec<u8>| self.dirs.binary_search(path).is_ok();
        scan.others
            .retain(|other| !(other.dir && is_kept(&other.path)));
        Ok(scan)
    }
}

/// Returns an index of the entries found, and of those old entries that do not collide with them.
fn partial_index(
    repository: &Repository,
    old: &State,
    queried: &BTreeSet<&[u8]>,
    entries: &BTreeMap<&[u8], TreeEntry>,
) -> State {
    let is_dir = |path: &[u8]| {
        entries
            .get(path)
            .is_some_and(|found| found.mode == EntryMode::Tree)
    };
    let is_retained = |path: &[u8]| {
        let in_the_way = |dir| queried.contains(dir) && !is_dir(dir);
        !queried.contains(path) && !parent_dirs(path).any(in_the_way)
    };

    let mut index = State::new(repository.gix.object_hash());
    let mut push = |id, mode, path: &[u8]| {
        let path: &BStr = path.as_bstr();
        index.dangerously_push_entry(Stat::default(), id, Flags::empty(), mode, path);
    };
    let old_entries = old.entries().iter();

    for entry in old_entries.filter(|entry| entry.stage() == Stage::Unconflicted) {
        let path = entry.path(old);
        if is_retained(path) {
            push(entry.id, entry.mode, path);
        }
    }

    for (path, entry) in entries {
        if let Some(mode) = index::mode(entry.mode) {
            push(entry.id, mode, path);
        }
    }

    index.sort_entries();
    index
}

pub(super) fn apply_part(switch: &Switch<'_>, part: VisiblePart) -> anyhow::Result<()> {
    let VisiblePart {
        index: mut new,
        checked,
        dirs,
    } = part;
    // Before any file changes, so a crash cannot leave a note that claims a complete worktree.
    index::forget_tree(switch.repository);
    fault::point("before-part")?;
    hide_sparse(switch.user, &mut new)?;
    let mut differing = switch.carry_over_stats(&mut new);

    differing.retain(|&at| checked.contains::<[u8]>(new.entry(at).path(&new)));

    switch.put(&mut new, &differing)?;
    make_dirs(switch, &retain_visible_dirs(switch.user, dirs)?)?;
    fault::point("after-part")?;
    if differing.is_empty() && switch.has_same_files(&new) {
        return Ok(());
    }

    index::write_part(switch.repository, new)
}

/// Creates directories of the tree, replacing files and symlinks.
fn make_dirs(switch: &Switch<'_>, dirs: &[Vec<u8>]) -> anyhow::Result<()> {
    for dir in dirs {
        let inside = [dir, b"/x".as_slice()].concat();
        let walked = match switch.top.walk(&inside, IfMissing::Make)? {
            WalkResult::Blocked(end) => {
                switch.remove_file(&inside[..end])?;
                switch.top.walk(&inside, IfMissing::Make)?
            }
            walked => walked,
        };

        // The caller creates the worktree again, as for a file that cannot be written.
        anyhow::ensure!(
            matches!(walked, WalkResult::Handle(_)),
            "`{}` cannot be made",
            dir.to_str_lossy()
        );
    }

    Ok(())
}
