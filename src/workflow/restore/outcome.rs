//! Notes of a restore besides its changed files; `ui` formats them.

use std::collections::BTreeSet;

use super::apply::apply_plan;
use super::record::RestoreTurn;
use super::restore_plan::Planner;
use super::{OnOverlap, RestoreOptions, RestoreResult, RestoreTarget};
use crate::git::object::{CommitId, TreeId};
use crate::git::publish::Published;
use crate::git::{diff, refs};
use crate::project::Project;
use crate::session::publication::Stack;
use crate::session::store::back::TurnsBack;
use crate::session::turn::Turn;
use crate::text::path::{lossy, lossy_paths};
use crate::workspace::drift::find_missing_changes;
use crate::workspace::drift::{TurnName, taken_from_others, taken_of};
use crate::workspace::landing::landed_as;
use crate::workspace::notice::FileObstacle;
use crate::workspace::stack::{PatchId, Stacks, is_patch};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreNote {
    /// The ref with the applied turns is missing.
    NoRecord,
    /// Occupied path, or another reason why a file could not be written.
    Obstacle(FileObstacle),
    /// Reverted turns are still on a branch.
    StillLanded(Vec<UndoneCommit>),
    /// Files outside of snapshots occupy paths that were to be written.
    NotInSnapshot(Vec<Vec<u8>>),
    /// Files outside of the requested paths occupy the path of a directory.
    OutsidePaths(Vec<Vec<u8>>),
    /// Title.
    PlanWaits(String),
    /// Reverted together with the session's own turns.
    TakenFromOthers(Vec<TurnName>),
    /// The same, if a dry run were carried out.
    WouldTakeFromOthers(Vec<TurnName>),
}

impl RestoreNote {
    /// Explains why nothing changed.
    pub fn explains_overlap(&self) -> bool {
        matches!(
            self,
            RestoreNote::NotInSnapshot(_) | RestoreNote::OutsidePaths(_)
        )
    }
}

/// On a branch, with reverted turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneCommit {
    pub commit: CommitId,
    pub turns: Vec<u64>,
    pub branch: String,
    pub is_current: bool,
}

/// Landed turns whose commits are on their branch still.
pub(super) fn still_landed(
    project: &Project,
    turns: &TurnsBack<'_>,
    undone: &[u64],
) -> anyhow::Result<Vec<UndoneCommit>> {
    let Some(oldest) = undone.iter().min() else {
        return Ok(Vec::new());
    };
    let current = refs::branch_or_head(&project.repository)?;
    let mut landed_commits = Vec::new();
    // A turn lands after it was recorded.
    for turn in turns.landings_after(*oldest)? {
        let Some(landed) = turn.meta.landed else {
            continue;
        };
        for commit in landed.commits {
            let numbers = commit.turns.iter().map(|turn| turn.number);
            let turns: Vec<u64> = numbers.filter(|number| undone.contains(number)).collect();
            if turns.is_empty() {
                continue;
            }
            if let Some(id) = landed_as(&project.repository, &landed.branch, &commit)? {
                landed_commits.push(UndoneCommit {
                    commit: id,
                    turns,
                    branch: landed.branch.clone(),
                    is_current: landed.branch == current,
                });
            }
        }
    }

    Ok(landed_commits)
}

impl RestoreResult {
    /// Some files could not be written: reports what really changed.
    pub(super) fn add_unapplied(&mut self, published: &Published) {
        self.overlaps = lossy_paths(&published.conflict_paths());
        self.written = lossy_paths(&published.written);
        self.deleted = lossy_paths(&published.deleted);
        self.conflicts.retain(|path| self.written.contains(path));
        self.kept.clear();
        self.missing.clear();
        self.same_turns = false;
        if !self.is_applied() {
            self.over.clear();
        }
    }

    pub fn is_applied(&self) -> bool {
        !(self.written.is_empty() && self.deleted.is_empty())
    }
}

pub(super) fn add_changes(
    project: &Project,
    writing: &RestoreTurn<'_>,
    tip: &Turn,
    target: TreeId,
    result: &mut RestoreResult,
) -> anyhow::Result<()> {
    let RestoreTurn {
        goal,
        files,
        options,
        ..
    } = writing;
    for change in diff::changes(&project.repository, files.from, files.to)? {
        let path = lossy(&change.path);
        if change.new.is_some() {
            result.written.push(path)
        } else {
            result.deleted.push(path)
        }
    }

    // Turns that are not in the target can be applied. Their changes are not the user's.
    let unedited = match result.same_turns {
        true => target,
        false => target_with_turns(project, goal, options, target).unwrap_or(target),
    };
    let own = diff::changes(&project.repository, unedited, files.to)?;
    let own_paths = own.iter().map(|change| lossy(&change.path));
    result.kept = own_paths
        .filter(|path| !result.deleted.contains(path))
        .collect();
    if result.same_turns {
        result.missing = find_missing_changes(
            &project.checkout(),
            tip,
            goal.planner.stacks,
            &goal.stack,
            &own,
        )?;
    }

    Ok(())
}

/// The files of the target plus all turns that remain applied.
fn target_with_turns(
    project: &Project,
    goal: &RestoreTarget<'_>,
    options: &RestoreOptions,
    target: TreeId,
) -> anyhow::Result<TreeId> {
    let end = final_stack(goal);
    let planner = Planner {
        current: &goal.stack,
        ..goal.planner
    };
    let plan = planner.plan_to(&end, &options.paths)?;
    let restored = apply_plan(project, target, &plan, OnOverlap::Ours, &BTreeSet::new())?;
    Ok(restored.tree)
}

/// `tip` was the newest turn before.
pub(super) fn summarize_turns(
    project: &Project,
    tip: &Turn,
    goal: &RestoreTarget<'_>,
) -> anyhow::Result<Vec<RestoreNote>> {
    let before = goal.planner.current;
    let stacks = Stacks::new(&project.repository);
    let now = stacks.after(&project.store().tip(&tip.session)?)?;
    let unknown = taken_from_others(&stacks, &tip.session, &[], before, &now)?;
    // Turns from before a rename carry another name. Their commits say whose they are.
    let later = match unknown.is_empty() {
        true => Vec::new(),
        false => turns_after(project, &stacks, tip, goal.turn)?,
    };
    let own = taken_of(&stacks, &tip.session, &later, before, &now)?;
    let landed = still_landed(project, goal.turns, &own)?;
    let others = find_turns_of_others(project, tip, goal, &now)?;

    let landed = (!landed.is_empty()).then_some(RestoreNote::StillLanded(landed));
    let others = (!others.is_empty()).then_some(RestoreNote::TakenFromOthers(others));
    Ok(landed.into_iter().chain(others).collect())
}

/// Names the turns of other sessions that would be reverted as well.
pub(super) fn predict_turns_of_others(
    project: &Project,
    tip: &Turn,
    goal: &RestoreTarget<'_>,
) -> anyhow::Result<Option<RestoreNote>> {
    let others = find_turns_of_others(project, tip, goal, &final_stack(goal))?;
    Ok((!others.is_empty()).then_some(RestoreNote::WouldTakeFromOthers(others)))
}

/// Turns of other sessions that are in the files now and not in `after`.
fn find_turns_of_others(
    project: &Project,
    tip: &Turn,
    goal: &RestoreTarget<'_>,
    after: &Stack<PatchId>,
) -> anyhow::Result<Vec<TurnName>> {
    let before = goal.planner.current;
    let stacks = Stacks::new(&project.repository);
    let others = taken_from_others(&stacks, &tip.session, &[], before, after)?;
    if others.is_empty() {
        return Ok(others);
    }
    let later = turns_after(project, &stacks, tip, goal.turn)?;
    taken_from_others(&stacks, &tip.session, &later, before, after)
}

/// The stack in the files if every step of the plan is applied.
fn final_stack(goal: &RestoreTarget<'_>) -> Stack<PatchId> {
    let mut end = Stack::default();
    for (path, top) in goal.plan.ends() {
        end.set(path, top);
    }
    end
}

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
