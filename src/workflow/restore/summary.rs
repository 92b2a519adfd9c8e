//! Summary of a restore for the user.

use std::collections::BTreeSet;

use super::bring::bring;
use super::landed::still_landed;
use super::note::RestoreNote;
use super::record::RestoreTurn;
use super::way::Planner;
use super::{Aim, OnOverlap, RestoreOptions, RestoreResult};
use crate::git::diff;
use crate::git::object::TreeId;
use crate::git::publish::Published;
use crate::session::publication::Stack;
use crate::session::turn::Turn;
use crate::text::path::{lossy, shown};
use crate::workflow::project::Project;
use crate::workspace::drift::{taken_from_others, taken_of};
use crate::workspace::missing::missing;
use crate::workspace::stack::{PatchId, Stacks, is_patch};

impl RestoreResult {
    /// Replaces the planned changes with the real ones if some files could not be written.
    pub(super) fn tell_unapplied(&mut self, published: &Published) {
        self.overlaps = shown(&published.conflicts);
        self.written = shown(&published.written);
        self.deleted = shown(&published.deleted);
        self.conflicts.retain(|path| self.written.contains(path));
        self.kept.clear();
        self.missing.clear();
        self.same_turns = false;
        if !self.is_applied() {
            self.over.clear();
        }
    }

    /// Returns whether a file was written or deleted.
    pub fn is_applied(&self) -> bool {
        !(self.written.is_empty() && self.deleted.is_empty())
    }
}

/// Lists written, deleted and kept files, and kept files that lack something of a turn.
pub(super) fn tell_changes(
    project: &Project,
    writing: &RestoreTurn<'_>,
    tip: &Turn,
    target: TreeId,
    done: &mut RestoreResult,
) -> anyhow::Result<()> {
    let RestoreTurn {
        aim, files, wish, ..
    } = writing;
    for change in diff::changes(&project.repository, files.from, files.to)? {
        let path = lossy(&change.path);
        if change.new.is_some() {
            done.written.push(path)
        } else {
            done.deleted.push(path)
        }
    }

    // Turns that are not in the target can be applied. Their changes are not the user's.
    let unedited = match done.same_turns {
        true => target,
        false => with_turns(project, aim, wish, target).unwrap_or(target),
    };
    let own = diff::changes(&project.repository, unedited, files.to)?;
    let own_paths = own.iter().map(|change| lossy(&change.path));
    done.kept = own_paths
        .filter(|path| !done.deleted.contains(path))
        .collect();
    if done.same_turns {
        done.missing = missing(
            &project.checkout(),
            tip,
            aim.planner.stacks,
            (&aim.wanted, &own),
        )?;
    }

    Ok(())
}

/// Returns the files of the target plus all turns that remain applied.
fn with_turns(
    project: &Project,
    aim: &Aim<'_>,
    wish: &RestoreOptions,
    target: TreeId,
) -> anyhow::Result<TreeId> {
    let mut end = Stack::default();
    for (path, top) in aim.way.ends() {
        end.set(path, top);
    }
    let planner = Planner {
        here: &aim.wanted,
        ..aim.planner
    };
    let way = planner.to(&end, &wish.paths)?;
    let brought = bring(project, target, &way, OnOverlap::Ours, &BTreeSet::new())?;
    Ok(brought.tree)
}

/// Notes reverted turns of other sessions, and own turns that are still on a branch. `tip` was the
/// newest turn before.
pub(super) fn what_went(
    project: &Project,
    tip: &Turn,
    aim: &Aim<'_>,
) -> anyhow::Result<Vec<RestoreNote>> {
    let before = aim.planner.here;
    let stacks = Stacks::new(&project.repository);
    let now = stacks.after(&project.store().tip(&tip.session)?)?;
    let own = taken_of(&stacks, &tip.session, [before, &now])?;
    let landed = still_landed(project, aim.turns, &own)?;
    let mut others = taken_from_others(&stacks, &tip.session, &[], [before, &now])?;
    if !others.is_empty() {
        let over = turns_after(project, &stacks, tip, aim.turn)?;
        others = taken_from_others(&stacks, &tip.session, &over, [before, &now])?;
    }

    let landed = (!landed.is_empty()).then_some(RestoreNote::StillLanded(landed));
    let others = (!others.is_empty()).then_some(RestoreNote::TakenFromOthers(others));
    Ok(landed.into_iter().chain(others).collect())
}

/// Returns the changes of all turns after one of a session's turns.
fn turns_after(
    project: &Project,
    stacks: &Stacks<'_>,
    tip: &Turn,
    turn: &Turn,
) -> anyhow::Result<Vec<PatchId>> {
    let mut patches = Vec::new();
    for later in project.store().history(tip.clone()) {
        let later = later?;
        if later.number() <= turn.number() {
            break;
        }
        if is_patch(&later) {
            patches.push(stacks.id(&later)?);
        }
    }
    Ok(patches)
}
