//! The way of a worktree to a commit, with all of its files or a part of them.

use std::collections::BTreeSet;

use crate::git::version;
use crate::git::worktree::part;
use gix::index::entry::stat::Options as StatOptions;

use super::glance::glance;
use super::index::KnownIndex;
use super::part::VisiblePart;
use super::path::parent;
use super::sparse::hide;
use super::survey::survey;
use super::switch::{Switch, remove_empty_folders, remove_file};
use super::{Extent, SessionWorktree, WorktreeAim, index};
use crate::git::During;
use crate::git::diff;
use crate::git::diff::TreeChange;
use crate::git::object::TreeId;
use crate::git::place::Top;
use crate::git::repository::Repository;
use crate::host::fault;

/// Brings a worktree to a commit: files and index.
///
/// # Errors
/// Where a file cannot be read or written; then another switch finishes it.
pub(super) fn switch(
    worktree: &SessionWorktree,
    user: &Repository,
    aim: WorktreeAim<'_>,
) -> anyhow::Result<()> {
    let repository = &worktree.repository;
    let tree = repository.commit(aim.at)?.tree;
    let options = StatOptions {
        // It is our own folder: nobody has a reason to change times, and a command could.
        trust_ctime: true,
        ..repository
            .gix
            .stat_options()
            .during("reading the configuration")?
    };

    let KnownIndex {
        index: old,
        changes,
    } = index::known(repository, tree)?;
    let top = Top::open_own(repository.workdir())?;
    remove_recorded(worktree, &top, tree)?;
    let extent = reach(repository, aim.extent);
    let mut part = None;
    let survey = match (extent, &changes) {
        (Extent::Whole, _) => survey(repository.workdir(), &old, options)?,
        (Extent::Paths(paths), Some(changes)) => {
            let paths = paths
                .iter()
                .chain(changes.iter().map(|change| &change.path));
            glance(&top, &old, options, paths)?
        }
        (Extent::Paths(paths), None) => {
            let part = part.insert(VisiblePart::of(repository, tree, &old, paths)?);
            part.look(&top, &old, options)?
        }
    };

    let switch = Switch {
        repository,
        top,
        user,
        tree,
        old,
        survey,
        watch: aim.watch,
    };
    match part {
        Some(part) => part::bring_part(&switch, part),
        None => bring_whole(&switch, changes.as_deref()),
    }
}

/// Removes the files of the last turn that are not in the new tree. The index has only what the
/// turn began with, and rules that came since could ignore what it made.
fn remove_recorded(worktree: &SessionWorktree, top: &Top, new: TreeId) -> anyhow::Result<()> {
    let recorded = worktree.recorded(new).into_iter();
    // What a power cut took of a turn counts for nothing here.
    let changes = recorded.flat_map(|tree| diff::changes(&worktree.repository, tree, new));
    let mut folders = BTreeSet::new();
    for change in changes.flatten().filter(|change| change.new.is_none()) {
        remove_file(top, &change.path)?;
        folders.extend(parent(&change.path).map(<[u8]>::to_vec));
    }

    remove_empty_folders(top, &folders)?;
    worktree.record.forget_recorded(false);
    Ok(())
}

/// Returns how much is brought: on a file system that takes one name for another all of it, as a
/// plan meets files there that it does not name.
fn reach<'a>(repository: &Repository, extent: Extent<'a>) -> Extent<'a> {
    let is_wanted = fault::emulated("whole-worktree").is_some();
    if is_wanted || version::abilities(repository).ignores_case {
        Extent::Whole
    } else {
        extent
    }
}

/// Brings everything; `changes` are what the tree changes in the one that was there, if that is
/// known.
fn bring_whole(switch: &Switch<'_>, changes: Option<&[TreeChange]>) -> anyhow::Result<()> {
    let mut new = index::for_tree(switch.repository, &switch.old, switch.tree, changes)?;
    let hidden = hide(switch.user, &mut new)?;
    let unchanged = changes.is_some_and(<[TreeChange]>::is_empty);
    let differing = switch.take_over(&mut new);
    switch.put(&mut new, &differing)?;
    fault::point("after-whole")?;
    if !unchanged || !differing.is_empty() || hidden {
        index::write(switch.repository, new, switch.tree)?;
    }

    Ok(())
}
