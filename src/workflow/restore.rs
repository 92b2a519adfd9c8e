//! Restore, undo and redo: one three-way merge into the user's files, recorded as a turn.
//!
//! The user's edits survive unless they conflict. Then nothing is written, unless an option chooses
//! a side (docs/decisions/0011-restore.md).

mod apply;

pub mod outcome;

mod record;
mod restore_plan;
pub mod steps;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use self::apply::{RestoredFiles, apply_plan};
use self::outcome::RestoreNote;
use self::record::{RestoreTurn, write_restore_turn};
use self::restore_plan::{Planner, RestorePlan};
use crate::git::diff;
use crate::git::object::{CommitId, EntryMode, TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::host::interrupt;
use crate::plan;
use crate::project::Project;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::{RestoreCommand, Restored};
use crate::session::publication::Stack;
use crate::session::store::back::TurnsBack;
use crate::session::turn::Turn;
use crate::text::path::{lossy, lossy_paths};
use crate::workflow::open_session::EnteredSession;
use crate::workflow::restore::apply::{HiddenFiles, find_blocked, find_hidden};
use crate::workflow::restore::outcome::{add_changes, predict_turns_of_others, summarize_turns};
use crate::workflow::restore::record::changes_nothing;
use crate::workflow::restore::restore_plan::{check_paths, restrict_to_paths};
use crate::workflow::restore::steps::PassedOver;
use crate::workflow::user::User;
use crate::workspace::complete::Completed;
use crate::workspace::draft_transfer::{self, TransferScope};
use crate::workspace::drift::MissingChange;
use crate::workspace::drift::{first_turn_after, turn_tree};
use crate::workspace::fit::FileMove;
use crate::workspace::fit::find_conflict_markers;
use crate::workspace::notice::obstacles;
use crate::workspace::snapshot::{RecordedFiles, commit_of};
use crate::workspace::stack::{PatchId, Stacks};
use crate::workspace::transaction::Transaction;

/// If the user's edits conflict with the turn's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnOverlap {
    /// Change nothing and report the conflicts.
    #[default]
    Stop,
    Ours,
    Theirs,
    Markers,
    /// Make the files equal to the turn's and discard the user's edits.
    Exact,
}

impl OnOverlap {
    /// The turn's version replaces a conflicting one of the user's.
    pub fn replaces(self) -> bool {
        matches!(self, OnOverlap::Theirs | OnOverlap::Exact)
    }
}

#[derive(Debug, Clone, Default)]
pub struct RestoreOptions {
    /// To restrict the restore to. Empty for all.
    pub paths: Vec<String>,
    pub on_overlap: OnOverlap,
    /// Keeps the context.
    pub files_only: bool,
    /// Only shows what would change.
    pub dry_run: bool,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct RestoreResult {
    pub turn: u64,
    /// Records the restore. `None` after a dry run or a conflict, and if nothing had to change.
    pub commit: Option<CommitId>,
    /// Reverted or applied by an undo or redo.
    pub over: Vec<u64>,
    pub passed_over: Vec<PassedOver>,
    /// Exactly the turns are applied that were applied after the target.
    pub same_turns: bool,
    pub written: Vec<String>,
    pub deleted: Vec<String>,
    /// With edits of the user's that were kept.
    pub kept: Vec<String>,
    /// Kept files that lack something of a turn.
    pub missing: Vec<MissingChange>,
    /// Written with conflict markers.
    pub conflicts: Vec<String>,
    /// Conflicting files, unchanged; once the turn is recorded, files that could not be written.
    pub overlaps: Vec<String>,
    /// The user's side of a conflict was kept, so turns are reverted or applied only in part.
    #[serde(skip)]
    pub is_partial: bool,
    #[serde(skip)]
    pub notes: Vec<RestoreNote>,
    /// Outside of snapshots, unchanged.
    pub not_captured: Vec<String>,
}

pub fn restore(
    project: &Project,
    name: &str,
    options: &RestoreOptions,
    user: &mut dyn User,
) -> anyhow::Result<RestoreResult> {
    let session = project.session()?;
    let entered = EnteredSession::enter(project, &session, "restore", user)?;
    let tip = &entered.tip;
    let turn = project.store().turn(&session, name)?;
    turn.session.writable()?;
    let stacks = Stacks::new(&project.repository);
    let current = stacks.current(tip)?;
    let stack = find_target_stack(project, &stacks, &turn)?;
    let planner = Planner {
        repository: &project.repository,
        stacks: &stacks,
        current: &current,
    };

    let turns = project.store().back_from(tip.clone());
    let goal = RestoreTarget {
        turns: &turns,
        turn: &turn,
        title: format!("Restore {}: {}", turn.number(), turn.title),
        restored: Restored {
            turn: turn.number(),
            by: RestoreCommand::Restore,
            redo: Vec::new(),
            over: Vec::new(),
        },
        plan: planner.plan_to(&stack, &options.paths)?,
        planner,
        stack,
    };
    carry_out(&entered, &goal, options)
}

struct RestoreTarget<'a> {
    planner: Planner<'a>,
    turns: &'a TurnsBack<'a>,
    turn: &'a Turn,
    title: String,
    restored: Restored,
    plan: RestorePlan,
    /// Applied in the target.
    stack: Stack<PatchId>,
}

fn carry_out(
    entered: &EnteredSession<'_>,
    goal: &RestoreTarget<'_>,
    options: &RestoreOptions,
) -> anyhow::Result<RestoreResult> {
    let EnteredSession {
        project,
        tip,
        transaction,
        ..
    } = entered;
    let restore = Restore {
        transaction,
        project,
        tip,
        goal,
        options,
    };
    let mut result = RestoreResult {
        turn: goal.turn.number(),
        over: goal.restored.over.clone(),
        ..RestoreResult::default()
    };
    let Some(fitted) = restore.fit(&mut result)? else {
        return Ok(result);
    };

    let files = FileMove {
        from: fitted.recorded.tree,
        to: leave_repositories(
            &project.repository,
            fitted.recorded.tree,
            fitted.restored.tree,
        )?,
    };
    let waiting = draft_transfer::waiting(&project.checkout(), tip)?;
    let writing = RestoreTurn {
        goal,
        recorded: &fitted.recorded,
        files: &files,
        restored: &fitted.restored,
        options,
        waits: waiting.is_some(),
    };
    add_changes(project, &writing, tip, fitted.target, &mut result)?;
    if options.dry_run && options.on_overlap != OnOverlap::Exact {
        let others = predict_turns_of_others(project, tip, goal)?;
        result.notes.extend(others);
    }
    if options.dry_run || changes_nothing(project, tip, &writing)? {
        return Ok(result);
    }

    anyhow::ensure!(
        !interrupt::requested(),
        "interrupted before anything was changed"
    );
    restore.finish(&writing, waiting, &mut result)?;
    Ok(result)
}

struct Restore<'a> {
    transaction: &'a Transaction,
    project: &'a Project,
    tip: &'a Turn,
    goal: &'a RestoreTarget<'a>,
    options: &'a RestoreOptions,
}

struct FittedFiles {
    recorded: RecordedFiles,
    restored: RestoredFiles,
    /// On the requested paths.
    target: TreeId,
}

impl Restore<'_> {
    /// `None` if a conflict stops the restore; `result` reports it.
    fn fit(&self, result: &mut RestoreResult) -> anyhow::Result<Option<FittedFiles>> {
        let (project, goal, options) = (self.project, self.goal, self.options);
        let repository = &project.repository;
        let target = turn_tree(&project.checkout(), goal.turn)?;
        let (mut recorded, hidden) = self.record(target)?;
        check_paths(repository, goal.turn, options, [target, recorded.tree])?;
        let left_out = recorded.not_captured.iter();
        result.not_captured = left_out.map(|file| file.path.clone()).collect();

        let (target, outside_paths) =
            restrict_to_paths(repository, recorded.tree, target, &options.paths)?;
        if options.on_overlap == OnOverlap::Exact && !outside_paths.is_empty() {
            result.overlaps = lossy_paths(&outside_paths);
            result.notes.push(RestoreNote::OutsidePaths(outside_paths));
            return Ok(None);
        }

        let apply_with = |unwritable: &BTreeSet<Vec<u8>>| match options.on_overlap {
            OnOverlap::Exact => Ok(RestoredFiles::exactly(target)),
            on_overlap => apply_plan(project, recorded.tree, &goal.plan, on_overlap, unwritable),
        };
        let mut restored = apply_with(&BTreeSet::new())?;
        if options.on_overlap == OnOverlap::Stop && !restored.overlaps.is_empty() {
            result.overlaps = restored.overlaps.iter().map(|path| lossy(path)).collect();
            return Ok(None);
        }

        // A file that no snapshot has cannot be replaced: its bytes would be lost.
        let mut in_the_way = find_blocked(project, recorded.tree, restored.tree)?;
        // `--ours` keeps the file in the way, so the steps conflict there.
        if options.on_overlap == OnOverlap::Ours && !in_the_way.is_empty() {
            restored = apply_with(&in_the_way.into_keys().collect())?;
            in_the_way = find_blocked(project, recorded.tree, restored.tree)?;
        }
        if !in_the_way.is_empty() {
            result.overlaps = in_the_way.keys().map(|path| lossy(path)).collect();
            let files: BTreeSet<Vec<u8>> = in_the_way.into_values().collect();
            let note = RestoreNote::NotInSnapshot(files.into_iter().collect());
            result.notes.push(note);
            return Ok(None);
        }

        // The next snapshot lacks these files, so the turn must not have them.
        let unchanged = hidden.unchanged(repository, recorded.tree, restored.tree)?;
        if !unchanged.is_empty() {
            let without = unchanged.into_iter().map(|path| (path, None)).collect();
            restored.tree = diff::tree_with(repository, restored.tree, &without)?;
            recorded.tree = diff::tree_with(repository, recorded.tree, &without)?;
            recorded.commit = commit_of(&project.checkout(), recorded.tree, self.tip)?;
        }

        self.compare_turns(&restored, target, result)?;
        Ok(Some(FittedFiles {
            recorded,
            restored,
            target,
        }))
    }

    /// Also files outside of snapshots that the restore can replace.
    fn record(&self, target: TreeId) -> anyhow::Result<(RecordedFiles, HiddenFiles)> {
        let (project, options) = (self.project, self.options);
        let checkout = project.checkout();
        let recorded = self.transaction.record(&checkout, self.tip, &[])?;
        let steps = self.goal.plan.steps();
        let mut moves: Vec<[TreeId; 2]> = steps.map(|step| [step.from, step.to]).collect();
        if options.on_overlap == OnOverlap::Exact {
            let (target, _) =
                restrict_to_paths(&project.repository, recorded.tree, target, &options.paths)?;
            moves.push([recorded.tree, target]);
        }

        let hidden = find_hidden(project, recorded.tree, &moves)?;
        if hidden.is_empty() {
            return Ok((recorded, hidden));
        }
        let recorded = self
            .transaction
            .record(&checkout, self.tip, &hidden.all())?;
        Ok((recorded, hidden))
    }

    fn compare_turns(
        &self,
        restored: &RestoredFiles,
        target: TreeId,
        result: &mut RestoreResult,
    ) -> anyhow::Result<()> {
        let (goal, options) = (self.goal, self.options);
        let stacks = goal.planner.stacks;
        // Unknown turns count as the user's edits, so only a comparison of the files shows it.
        let is_known = stacks.are_known()? || restored.tree == target;
        result.is_partial = !restored.stopped.is_empty();
        result.same_turns = options.on_overlap == OnOverlap::Exact
            || is_known && !result.is_partial && goal.plan.ends_in(stacks, &goal.stack, options)?;
        if !is_known {
            result.notes.push(RestoreNote::NoRecord);
        }

        if options.on_overlap == OnOverlap::Markers {
            let suspects: Vec<Vec<u8>> = restored.overlaps.iter().cloned().collect();
            let repository = &self.project.repository;
            result.conflicts = lossy_paths(&find_conflict_markers(
                repository,
                restored.tree,
                &suspects,
            )?);
        }
        Ok(())
    }

    fn finish(
        &self,
        writing: &RestoreTurn<'_>,
        waiting: Option<Draft>,
        result: &mut RestoreResult,
    ) -> anyhow::Result<()> {
        let (project, tip) = (self.project, self.tip);
        let step = write_restore_turn(project, tip, writing)?;
        let (checkout, files) = (project.checkout(), Some(writing.files));
        let Completed {
            commit, published, ..
        } = self
            .transaction
            .complete(&checkout, &tip.session, &step, files)?;
        if let Some(waiting) = waiting {
            // If the context stays, all of the draft still applies.
            let scope = match self.options.files_only {
                true => TransferScope::Whole,
                false => TransferScope::Answer,
            };
            let plan = waiting.artifacts.text_or_empty(artifact::PLAN);
            let is_planned = waiting.is_planned();
            if draft_transfer::transfer_over_restore(&checkout, tip, waiting, scope)? && is_planned
            {
                let title = plan::parse(&plan).0.title;
                result.notes.push(RestoreNote::PlanWaits(title));
            }
        }

        if !published.conflicts.is_empty() {
            result.add_unapplied(&published);
        }
        let obstacles = obstacles(&published).into_iter();
        result.notes.extend(obstacles.map(RestoreNote::Obstacle));
        result.commit = Some(commit);

        // The files are written already.
        let notes = summarize_turns(project, tip, self.goal);
        result.notes.extend(notes.unwrap_or_default());
        Ok(())
    }
}

/// A restore neither creates nor changes nested repositories, so its summary must not list them.
fn leave_repositories(
    repository: &Repository,
    files: TreeId,
    tree: TreeId,
) -> anyhow::Result<TreeId> {
    let is_other = |entry: &Option<TreeEntry>| {
        let entry = entry.as_ref();
        entry.is_some_and(|entry| entry.mode != EntryMode::Gitlink)
    };
    let mut edits = BTreeMap::new();
    for change in diff::changes(repository, files, tree)? {
        // A file at the path of a repository conflicts with it when it is written.
        let is_dir = repository.entry(tree, &change.path)?;
        let is_dir = is_dir.is_some_and(|entry| entry.mode == EntryMode::Tree);
        if !is_dir && !is_other(&change.old) && !is_other(&change.new) {
            edits.insert(change.path, change.old);
        }
    }
    diff::tree_with(repository, tree, &edits)
}

fn find_target_stack(
    project: &Project,
    stacks: &Stacks<'_>,
    turn: &Turn,
) -> anyhow::Result<Stack<PatchId>> {
    match first_turn_after(&project.checkout(), turn)? {
        Some(next) => stacks.base_of(&next),
        None => stacks.expected(turn),
    }
}
