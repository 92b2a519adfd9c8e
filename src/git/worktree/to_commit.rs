//! Switches a worktree to a commit, with all files or some of them.

use std::collections::{BTreeMap, BTreeSet};

use gix::bstr::{BStr, ByteSlice as _};
use gix::index::State;
use gix::index::entry::stat::Options as StatOptions;
use gix::index::entry::{Flags, Stage, Stat};

use super::file_writer::walk_to_write;
use super::index::{self, KnownIndex};
use super::scan::{Scan, scan_worktree};
use super::switch::{Switch, remove_empty_dirs, remove_file};
use super::{Extent, SessionWorktree, WorktreeTarget};
use crate::git::diff::{self, TreeChange};
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::path_handle::{Top, WalkResult};
use crate::git::paths::parent_dirs;
use crate::git::repository::Repository;
use crate::git::worktree::index::{hide_sparse, retain_visible_dirs};
use crate::git::worktree::scan::{check_paths, with_rule_files};
use crate::git::{During, version};
use crate::host::fault;

/// Switches the files and the index. After an error, the next switch completes it.
pub(super) fn switch(
    worktree: &SessionWorktree,
    user: &Repository,
    target: WorktreeTarget<'_>,
) -> anyhow::Result<()> {
    let repository = &worktree.repository;
    let tree = repository.commit(target.at)?.tree;
    let options = StatOptions {
        // The directory is ours. No user changes its times, but a command could.
        trust_ctime: true,
        ..repository
            .gix
            .stat_options()
            .during("reading the configuration")?
    };

    let KnownIndex {
        index: old,
        changes,
    } = index::load(repository, tree)?;
    let top = Top::open_own(repository.workdir())?;
    remove_recorded(worktree, &top, tree)?;
    let extent = reach(repository, target.extent);
    let mut part = None;
    let mut scan = match (extent, &changes) {
        (Extent::All, _) => scan_worktree(repository.workdir(), &old, options)?,
        (Extent::Paths(paths), Some(changes)) => {
            let paths = paths
                .iter()
                .chain(changes.iter().map(|change| &change.path));
            check_paths(&top, &old, options, paths)?
        }
        (Extent::Paths(paths), None) => {
            let part = part.insert(VisiblePart::of(repository, tree, &old, paths)?);
            part.check(&top, &old, options)?
        }
    };
    if let Extent::Paths(paths) = extent {
        // Attributes can have changed since they were written, and a plan names exact bytes.
        let position = |path: &Vec<u8>| old.entry_index_by_path(path.as_bstr()).ok();
        let indexed = paths.iter().filter_map(position);
        indexed.for_each(|at| scan.same[at] = false);
    }

    let switch = Switch {
        repository,
        top,
        user,
        tree,
        old,
        scan,
        watch: target.watch,
    };
    match part {
        Some(part) => apply_part(&switch, part),
        None => apply_all(&switch, changes.as_deref()),
    }
}

/// Removes files of the last turn that are not in the new tree. The index contains only the files
/// from before the turn, and newer ignore rules could match what the turn created.
fn remove_recorded(worktree: &SessionWorktree, top: &Top, new: TreeId) -> anyhow::Result<()> {
    let recorded = worktree.recorded(new).into_iter();
    // Skip trees that a power cut damaged.
    let changes = recorded.flat_map(|tree| diff::changes(&worktree.repository, tree, new));
    let mut dirs = BTreeSet::new();
    for change in changes.flatten().filter(|change| change.new.is_none()) {
        remove_file(top, &change.path)?;
        dirs.extend(parent_dirs(&change.path).next().map(<[u8]>::to_vec));
    }

    remove_empty_dirs(top, &dirs)?;
    worktree.record.forget_recorded(false);
    Ok(())
}

/// Returns what must be switched. On a file system that ignores case it is always everything,
/// because a plan can open files there under other names.
fn reach<'a>(repository: &Repository, extent: Extent<'a>) -> Extent<'a> {
    let is_wanted = fault::emulated("whole-worktree").is_some();
    if is_wanted || version::abilities(repository).ignores_case {
        Extent::All
    } else {
        extent
    }
}

/// Switches all files. `changes` is the difference to the previous tree, if known.
fn apply_all(switch: &Switch<'_>, changes: Option<&[TreeChange]>) -> anyhow::Result<()> {
    let mut new = index::for_tree(switch.repository, &switch.old, switch.tree, changes)?;
    let hidden = hide_sparse(switch.user, &mut new)?;
    let unchanged = changes.is_some_and(<[TreeChange]>::is_empty);
    let differing = switch.carry_over_stats(&mut new);
    switch.put(&mut new, &differing)?;
    fault::point("after-whole")?;
    if !unchanged || !differing.is_empty() || hidden {
        index::write(switch.repository, new, switch.tree)?;
    }

    Ok(())
}

// A worktree that contains only what plans without commands named: the paths, their parent
// directories, and the rule files that apply to them.
//
// There is no marker for such a worktree. The note of a tree next to the index means that all
// files are there, and it is removed before a part is written. So a crash cannot make an
// incomplete worktree look complete. The index lists what was written. Other files in the worktree
// are ignored until a command needs all files.

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
        let walked = walk_to_write(&switch.top, &inside)?;
        // The caller creates the worktree again, as for a file that cannot be written.
        anyhow::ensure!(
            matches!(walked, WalkResult::Handle(_)),
            "`{}` cannot be made",
            dir.to_str_lossy()
        );
    }

    Ok(())
}
