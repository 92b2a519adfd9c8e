//! Restore, undo and redo: one three-way merge into the user's files, recorded as a turn.

mod bring;
mod landed;
mod locked;
pub mod note;
mod obstacle;
mod paths;
mod record;
pub mod steps;
mod summary;
mod unchanged;
mod walk;
mod way;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use self::bring::{RestoredFiles, bring};
use self::note::RestoreNote;
use self::obstacle::{HiddenFiles, blocked, hidden};
use self::paths::{check_paths, restrict};
use self::record::{RestoreTurn, write};
use self::summary::{tell_changes, what_went};
use self::unchanged::changes_nothing;
use self::walk::PassedOver;
use self::way::{Planner, Way};
use crate::git::diff;
use crate::git::object::{CommitId, EntryMode, TreeEntry, TreeId};
use crate::git::refs::Expected;
use crate::git::repository::Repository;
use crate::host::interrupt;
use crate::plan;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::{RestoreCommand, Restored};
use crate::session::publication::Stack;
use crate::session::store::back::TurnsBack;
use crate::session::turn::Turn;
use crate::text::path::{lossy, shown};
use crate::workflow::project::Project;
use crate::workflow::user::User;
use crate::workspace::carry::{self, Carried};
use crate::workspace::complete::{Completed, SessionMove};
use crate::workspace::file_move::FileMove;
use crate::workspace::marks::marked;
use crate::workspace::missing::MissingChange;
use crate::workspace::notice::obstacles;
use crate::workspace::snapshot::{RecordedFiles, commit_of};
use crate::workspace::stack::{PatchId, Stacks};
use crate::workspace::transaction::Transaction;
use crate::workspace::turn_files::{files_of, first_after};

/// What to do if the user's edits conflict with the turn's version.
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
    /// Returns whether the turn's version replaces a conflicting one of the user's.
    pub fn replaces(self) -> bool {
        matches!(self, OnOverlap::Theirs | OnOverlap::Exact)
    }
}

/// Options of a restore.
#[derive(Debug, Clone, Default)]
pub struct RestoreOptions {
    /// Paths to restrict it to.
    pub paths: Vec<String>,
    pub on_overlap: OnOverlap,
    /// Keep the context.
    pub files_only: bool,
    /// Only show what would change.
    pub dry_run: bool,
}

/// What a restore did.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RestoreResult {
    /// The target.
    pub turn: u64,
    /// The turn that records it. `None` after a dry run or a conflict, and if nothing had to change.
    pub commit: Option<CommitId>,
    /// Turns that an undo or redo reverted or applied.
    pub over: Vec<u64>,
    /// Skipped turns.
    pub passed_over: Vec<PassedOver>,
    /// Whether exactly the turns are applied that were applied after the target.
    pub same_turns: bool,
    pub written: Vec<String>,
    pub deleted: Vec<String>,
    /// Files with edits of the user's that were kept.
    pub kept: Vec<String>,
    /// Kept files that lack something of a turn, with the reason.
    pub missing: Vec<MissingChange>,
    /// Files written with conflict markers.
    pub conflicts: Vec<String>,
    /// Conflicting files, unchanged; once the turn is recorded, files that could not be written.
    pub overlaps: Vec<String>,
    /// Whether the user's side of a conflict was kept, so turns are reverted or applied only in part.
    #[serde(skip)]
    pub is_partial: bool,
    #[serde(skip)]
    pub notes: Vec<RestoreNote>,
    /// Files outside of snapshots, unchanged.
    pub not_captured: Vec<String>,
}

/// Restores the user's files to a turn.
pub fn restore(
    project: &Project,
    name: &str,
    wish: &RestoreOptions,
    user: &mut dyn User,
) -> anyhow::Result<RestoreResult> {
    let session = project.session()?;
    let _session_lock = project.lock_session(&session, "restore")?;
    let transaction = project.enter("restore", user)?;
    let tip = project.store().tip(&session)?;
    let turn = project.store().turn(&session, name)?;
    turn.session.writable()?;
    let stacks = Stacks::new(&project.repository);
    let here = stacks.here(&tip)?;
    let wanted = wanted(project, &stacks, &turn)?;
    let planner = Planner {
        repository: &project.repository,
        stacks: &stacks,
        here: &here,
    };

    let turns = project.store().back_from(tip.clone());
    let aim = Aim {
        turns: &turns,
        turn: &turn,
        title: format!("Restore {}: {}", turn.number(), turn.title),
        restored: Restored {
            turn: turn.number(),
            by: RestoreCommand::Restore,
            redo: Vec::new(),
            over: Vec::new(),
        },
        way: planner.to(&wanted, &wish.paths)?,
        planner,
        wanted,
    };
    carry_out(&transaction, project, &tip, &aim, wish)
}

/// Target of a restore and the plan that leads there.
struct Aim<'a> {
    /// Applied patches.
    planner: Planner<'a>,
    turns: &'a TurnsBack<'a>,
    turn: &'a Turn,
    title: String,
    restored: Restored,
    way: Way,
    /// Applied patches in the target.
    wanted: Stack<PatchId>,
}

/// Merges the plan into the user's files, writes them and records the turn.
fn carry_out(
    transaction: &Transaction,
    project: &Project,
    tip: &Turn,
    aim: &Aim<'_>,
    wish: &RestoreOptions,
) -> anyhow::Result<RestoreResult> {
    let restore = Restore {
        transaction,
        project,
        tip,
        aim,
        wish,
    };
    let mut done = RestoreResult {
        turn: aim.turn.number(),
        over: aim.restored.over.clone(),
        ..RestoreResult::default()
    };
    let Some(fitted) = restore.fit(&mut done)? else {
        return Ok(done);
    };

    let files = FileMove {
        from: fitted.recorded.tree,
        to: leave_repositories(
            &project.repository,
            fitted.recorded.tree,
            fitted.brought.tree,
        )?,
    };
    let waiting = carry::waiting(&project.checkout(), tip)?;
    let writing = RestoreTurn {
        aim,
        recorded: &fitted.recorded,
        files: &files,
        brought: &fitted.brought,
        wish,
        waits: waiting.is_some(),
    };
    tell_changes(project, &writing, tip, fitted.target, &mut done)?;
    if wish.dry_run || changes_nothing(project, tip, &writing)? {
        return Ok(done);
    }

    anyhow::ensure!(
        !interrupt::requested(),
        "interrupted before anything was changed"
    );
    restore.finish(&writing, waiting, &mut done)?;
    Ok(done)
}

/// A restore, undo or redo in progress.
struct Restore<'a> {
    transaction: &'a Transaction,
    project: &'a Project,
    /// The newest turn of the session.
    tip: &'a Turn,
    aim: &'a Aim<'a>,
    wish: &'a RestoreOptions,
}

/// The user's files before and after the merge.
struct FittedFiles {
    recorded: RecordedFiles,
    brought: RestoredFiles,
    /// Files of the target, on the requested paths.
    target: TreeId,
}

impl Restore<'_> {
    /// Records the user's files and merges the plan into them. `None` if a conflict stops the restore;
    /// `done` reports it.
    fn fit(&self, done: &mut RestoreResult) -> anyhow::Result<Option<FittedFiles>> {
        let (project, aim, wish) = (self.project, self.aim, self.wish);
        let repository = &project.repository;
        let target = files_of(&project.checkout(), aim.turn)?;
        let (mut recorded, hidden) = self.record(target)?;
        check_paths(repository, aim.turn, wish, [target, recorded.tree])?;
        let left_out = recorded.not_captured.iter();
        done.not_captured = left_out.map(|left| left.path.clone()).collect();

        let (target, outside) = restrict(repository, recorded.tree, target, &wish.paths)?;
        if wish.on_overlap == OnOverlap::Exact && !outside.is_empty() {
            done.overlaps = shown(&outside);
            done.notes.push(RestoreNote::OutsidePaths(outside));
            return Ok(None);
        }

        let bring_to = |closed: &BTreeSet<Vec<u8>>| match wish.on_overlap {
            OnOverlap::Exact => Ok(RestoredFiles::exactly(target)),
            on_overlap => bring(project, recorded.tree, &aim.way, on_overlap, closed),
        };
        let mut brought = bring_to(&BTreeSet::new())?;
        if wish.on_overlap == OnOverlap::Stop && !brought.overlaps.is_empty() {
            done.overlaps = brought.overlaps.iter().map(|path| lossy(path)).collect();
            return Ok(None);
        }

        let mut in_the_way = blocked(project, [recorded.tree, brought.tree])?;
        if wish.on_overlap == OnOverlap::Ours && !in_the_way.is_empty() {
            brought = bring_to(&in_the_way.into_keys().collect())?;
            in_the_way = blocked(project, [recorded.tree, brought.tree])?;
        }
        if !in_the_way.is_empty() {
            done.overlaps = in_the_way.keys().map(|path| lossy(path)).collect();
            let files: BTreeSet<Vec<u8>> = in_the_way.into_values().collect();
            let note = RestoreNote::NotInSnapshot(files.into_iter().collect());
            done.notes.push(note);
            return Ok(None);
        }

        let unchanged = hidden.unchanged(repository, [recorded.tree, brought.tree])?;
        if !unchanged.is_empty() {
            let without = unchanged.into_iter().map(|path| (path, None)).collect();
            brought.tree = diff::tree_with(repository, brought.tree, &without)?;
            recorded.tree = diff::tree_with(repository, recorded.tree, &without)?;
            recorded.commit = commit_of(&project.checkout(), recorded.tree, self.tip)?;
        }

        self.compare_turns(&brought, target, done)?;
        Ok(Some(FittedFiles {
            recorded,
            brought,
            target,
        }))
    }

    /// Records the user's files, including files outside of snapshots that the restore can replace.
    fn record(&self, target: TreeId) -> anyhow::Result<(RecordedFiles, HiddenFiles)> {
        let (project, wish) = (self.project, self.wish);
        let checkout = project.checkout();
        let recorded = self.transaction.record(&checkout, self.tip, &[])?;
        let legs = self.aim.way.legs();
        let mut moves: Vec<[TreeId; 2]> = legs.map(|leg| [leg.from, leg.to]).collect();
        if wish.on_overlap == OnOverlap::Exact {
            let (target, _) = restrict(&project.repository, recorded.tree, target, &wish.paths)?;
            moves.push([recorded.tree, target]);
        }

        let hidden = hidden(project, recorded.tree, &moves)?;
        if hidden.is_empty() {
            return Ok((recorded, hidden));
        }
        let recorded = self
            .transaction
            .record(&checkout, self.tip, &hidden.all())?;
        Ok((recorded, hidden))
    }

    /// Sets whether the turns of the target are applied at the end.
    fn compare_turns(
        &self,
        brought: &RestoredFiles,
        target: TreeId,
        done: &mut RestoreResult,
    ) -> anyhow::Result<()> {
        let (aim, wish) = (self.aim, self.wish);
        let stacks = aim.planner.stacks;
        // Unknown turns count as the user's edits, so only a comparison of the files shows it.
        let is_known = stacks.are_known()? || brought.tree == target;
        done.is_partial = !brought.stopped.is_empty();
        done.same_turns = wish.on_overlap == OnOverlap::Exact
            || is_known && !done.is_partial && aim.way.ends_in(stacks, &aim.wanted, wish)?;
        if !is_known {
            done.notes.push(RestoreNote::NoRecord);
        }

        if wish.on_overlap == OnOverlap::Markers {
            let suspects: Vec<Vec<u8>> = brought.overlaps.iter().cloned().collect();
            let repository = &self.project.repository;
            done.conflicts = shown(&marked(repository, brought.tree, &suspects)?);
        }
        Ok(())
    }

    /// Writes the files and records the turn.
    fn finish(
        &self,
        writing: &RestoreTurn<'_>,
        waiting: Option<Draft>,
        done: &mut RestoreResult,
    ) -> anyhow::Result<()> {
        let (project, tip, aim) = (self.project, self.tip, self.aim);
        let (commit, published) = write(project, tip, writing)?;
        let step = SessionMove {
            expected: Expected::At(tip.commit),
            new: commit,
            published,
            log: format!("teddy: restore turn {}", aim.turn.number()),
            anyway: false,
            overwrite: self.wish.on_overlap.replaces(),
        };

        let (checkout, files) = (project.checkout(), Some(writing.files));
        let Completed {
            commit, published, ..
        } = self
            .transaction
            .complete(&checkout, &tip.session, &step, files)?;
        if let Some(waiting) = waiting {
            let carried = match self.wish.files_only {
                true => Carried::Whole,
                false => Carried::Answer,
            };
            let plan = waiting.artifacts.text_or_empty(artifact::PLAN);
            let is_planned = waiting.is_planned();
            if carry::carry_over_restore(&checkout, tip, waiting, carried)? && is_planned {
                let title = plan::parse(&plan).0.title;
                done.notes.push(RestoreNote::PlanWaits(title));
            }
        }

        if !published.conflicts.is_empty() {
            done.tell_unapplied(&published);
        }
        let obstacles = obstacles(&published).into_iter();
        done.notes.extend(obstacles.map(RestoreNote::Obstacle));
        done.commit = Some(commit);

        // The files are written: a summary that fails must not fail the restore.
        let notes = what_went(project, tip, aim);
        done.notes.extend(notes.unwrap_or_default());
        Ok(())
    }
}

/// Returns a tree with the nested repositories of the files: a restore neither creates nor changes
/// them, so its summary must not list them.
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

fn wanted(project: &Project, stacks: &Stacks<'_>, turn: &Turn) -> anyhow::Result<Stack<PatchId>> {
    match first_after(&project.checkout(), turn)? {
        Some(next) => stacks.below(&next),
        None => stacks.wanted(turn),
    }
}
