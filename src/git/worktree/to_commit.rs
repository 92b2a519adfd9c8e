//! Switches a worktree to a commit, with all files or some of them.

use std::collections::BTreeSet;

use crate::git::version;
use crate::git::worktree::part;
use gix::index::entry::stat::Options as StatOptions;

use super::index::KnownIndex;
use super::part::VisiblePart;
use super::path::parent_dir;
use super::path_check::check_paths;
use super::scan::scan_worktree;
use super::sparse::hide_sparse;
use super::switch::{Switch, remove_empty_dirs, remove_file};
use super::{Extent, SessionWorktree, WorktreeTarget, index};
use crate::git::During;
use crate::git::diff;
use crate::git::diff::TreeChange;
use crate::git::object::TreeId;
use crate::git::path_handle::Top;
use crate::git::repository::Repository;
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
    let scan = match (extent, &changes) {
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
        Some(part) => part::apply_part(&switch, part),
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
        dirs.extend(parent_dir(&change.path).map(<[u8]>::to_vec));
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
