//! Bringing the workspace back to a turn, forward again, or partly: one operation, three-way,
//! itself a turn.

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

/// What to do where the user's own edits and the turn's meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnOverlap {
    /// Change nothing and say where.
    #[default]
    Stop,
    /// Keep the user's side.
    Ours,
    /// Take the turn's side.
    Theirs,
    /// Write conflict markers.
    Markers,
    /// Make the files equal to the turn's, whatever the user did since.
    Exact,
}

impl OnOverlap {
    /// Returns whether the turn's version replaces bytes of the user's that it does not fit.
    pub fn replaces(self) -> bool {
        matches!(self, OnOverlap::Theirs | OnOverlap::Exact)
    }
}

/// What is wanted of a restore.
#[derive(Debug, Clone, Default)]
pub struct RestoreOptions {
    /// Paths or folders to restrict it to.
    pub paths: Vec<String>,
    /// What to do where edits meet.
    pub on_overlap: OnOverlap,
    /// Leave the context as it is.
    pub files_only: bool,
    /// Only show what would change.
    pub dry_run: bool,
}

/// What a restore did.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RestoreResult {
    /// The turn to which the files were brought.
    pub turn: u64,
    /// The turn that records it. `None` after a dry run or an overlap, and if a restore had nothing to
    /// change.
    pub commit: Option<CommitId>,
    /// The turns that an undo or redo went over.
    pub over: Vec<u64>,
    /// The turns that it did not count.
    pub passed_over: Vec<PassedOver>,
    /// Whether exactly the turns are in the files that were in them after that turn.
    pub same_turns: bool,
    /// Files that were written.
    pub written: Vec<String>,
    /// Files that were deleted.
    pub deleted: Vec<String>,
    /// Files of the user's own that were kept.
    pub kept: Vec<String>,
    /// Those among them in which something of a turn is missing, and why.
    pub missing: Vec<MissingChange>,
    /// Those that were written with conflict markers.
    pub conflicts: Vec<String>,
    /// Files where edits meet, left as they are; after the turn is recorded, those that could not be
    /// written.
    pub overlaps: Vec<String>,
    /// Whether the user's side was kept where it overlapped, so that turns are undone or redone only in
    /// part.
    #[serde(skip)]
    pub is_partial: bool,
    /// What the user must be told about files that were not simply written.
    #[serde(skip)]
    pub notes: Vec<RestoreNote>,
    /// Files that no snapshot has, left as they are.
    pub not_captured: Vec<String>,
}

/// Brings the workspace to a turn.
///
/// # Errors
/// Where there is no such turn, or the repository or the files cannot be written.
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

/// Where a restore goes, and how.
struct Aim<'a> {
    /// What is in the files.
    planner: Planner<'a>,
    /// The session's turns.
    turns: &'a TurnsBack<'a>,
    /// The turn whose state it is.
    turn: &'a Turn,
    /// The title of the turn that records it.
    title: String,
    /// What that turn says of itself.
    restored: Restored,
    /// The way there.
    way: Way,
    /// What is in the files in that state.
    wanted: Stack<PatchId>,
}

/// Fits what lies on the way into the user's files, writes them and records it.
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

/// A restore, undo or redo under way.
struct Restore<'a> {
    transaction: &'a Transaction,
    project: &'a Project,
    /// The newest turn of the session.
    tip: &'a Turn,
    aim: &'a Aim<'a>,
    wish: &'a RestoreOptions,
}

/// The user's files, and what a restore makes of them.
struct FittedFiles {
    recorded: RecordedFiles,
    brought: RestoredFiles,
    /// The files of the turn, on the paths that the restore is restricted to.
    target: TreeId,
}

impl Restore<'_> {
    /// Records the user's files and fits what lies on the way into them; `None` if the restore stops
    /// because something overlaps, which `done` says.
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

    /// Records the user's files, and those among them that the restore may replace although no snapshot
    /// has them.
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

    /// Says whether the turns of the target are in the files at the end.
    fn compare_turns(
        &self,
        brought: &RestoredFiles,
        target: TreeId,
        done: &mut RestoreResult,
    ) -> anyhow::Result<()> {
        let (aim, wish) = (self.aim, self.wish);
        let stacks = aim.planner.stacks;
        // What turns did that nobody knows of counts as the user's: only a look at the files tells.
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

        // The files are there: what cannot be told is no failure of theirs.
        let notes = what_went(project, tip, aim);
        done.notes.extend(notes.unwrap_or_default());
        Ok(())
    }
}

/// Returns a tree with the repositories within that the files have: a restore neither makes nor deletes
/// nor moves one, so it must not say so.
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
        // Files that are to take the place of a repository meet it when they are written.
        let is_dir = repository.entry(tree, &change.path)?;
        let is_dir = is_dir.is_some_and(|entry| entry.mode == EntryMode::Tree);
        if !is_dir && !is_other(&change.old) && !is_other(&change.new) {
            edits.insert(change.path, change.old);
        }
    }
    diff::tree_with(repository, tree, &edits)
}

/// Returns what is in the user's files in the state of a turn.
fn wanted(project: &Project, stacks: &Stacks<'_>, turn: &Turn) -> anyhow::Result<Stack<PatchId>> {
    match first_after(&project.checkout(), turn)? {
        Some(next) => stacks.below(&next),
        None => stacks.wanted(turn),
    }
}
