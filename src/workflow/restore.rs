//! Restore, undo and redo: one three-way merge into the user's files, recorded as a turn.
//!
//! The user's edits survive unless they conflict. Then nothing is written, unless an option chooses
//! a side (docs/decisions/0011-restore.md).
//!
//! A [`Restore`] is built by `restore`, `undo` or `redo`. `fit` checks that nothing is in its way and
//! applies its plan to the recorded files, `report` says what that changes, and `finish` records it and
//! updates the user's files.

mod apply;
pub mod outcome;
mod restore_plan;
pub mod steps;

use std::collections::{BTreeMap, BTreeSet};

pub use self::outcome::RestoreResult;
pub use self::restore_plan::{OnOverlap, RestoreOptions};

use self::apply::{
    FittedRestore, HiddenFiles, RestoredFiles, apply_plan, find_blocked, find_hidden,
};
use self::outcome::{RestoreNote, UndoneCommit};
use self::restore_plan::{LockedSession, Planner, Restore, check_paths, restrict_to_paths};
use crate::git::object::{CommitId, EntryMode, TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::git::{diff, refs};
use crate::host::interrupt;
use crate::plan;
use crate::project::Project;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::{RestoreCommand, Restored, Status};
use crate::session::publication::{Publication, Stack};
use crate::session::turn::{Turn, in_next, restore_title, trailer};
use crate::text::path::{lossy, lossy_paths};
use crate::workflow::context::requests;
use crate::workflow::user::User;
use crate::workspace::complete::{Completed, SessionMove};
use crate::workspace::draft_transfer::{self, TransferScope};
use crate::workspace::drift::{
    MissingChange, TurnName, WhyMissing, compared_turn, find_missing_changes, find_unapplied,
    taken_from_others, taken_of, turn_tree,
};
use crate::workspace::file_move::{FileMove, find_conflict_markers};
use crate::workspace::files_turn::FilesTurn;
use crate::workspace::landing::{LandingClaims, landed_as};
use crate::workspace::notice::obstacles;
use crate::workspace::snapshot::{RecordedFiles, commit_of};
use crate::workspace::stack::record::{Recorder, Written, publication};
use crate::workspace::stack::{Stacks, is_patch};

pub fn restore(
    project: &Project,
    name: &str,
    options: &RestoreOptions,
    user: &mut dyn User,
) -> anyhow::Result<RestoreResult> {
    let session = LockedSession::enter(project, "restore", user)?;
    let turn = project.store().turn(&session.entered.tip.session, name)?;
    turn.session.writable()?;
    let current = session.current()?;
    let stack = session.target_stack(&turn)?;

    carry_out(&Restore {
        session: &session,
        options,
        title: restore_title(&turn, &options.paths),
        restored: Restored {
            turn: turn.number(),
            by: RestoreCommand::Restore,
            paths: options.paths.clone(),
            redo: Vec::new(),
            over: Vec::new(),
        },
        plan: session.planner(&current).plan_to(&stack, &options.paths)?,
        current,
        turn,
        stack,
    })
}

/// Returns files with the change from one stack to another. Where the user's edits conflict with a
/// turn, the result has the turn's version.
pub(in crate::workflow) fn files_between(
    project: &Project,
    files: TreeId,
    from: &Stack<CommitId>,
    to: &Stack<CommitId>,
) -> anyhow::Result<TreeId> {
    let planner = Planner {
        repository: &project.repository,
        stacks: &Stacks::new(&project.repository),
        current: from,
    };
    let plan = planner.plan_to(to, &[])?;
    let applied = apply_plan(project, files, &plan, OnOverlap::Theirs, &BTreeSet::new())?;
    Ok(applied.tree)
}

fn carry_out(restore: &Restore<'_>) -> anyhow::Result<RestoreResult> {
    let fitted = match restore.fit()? {
        Fitting::Clean(fitted) => fitted,
        Fitting::Stopped(result) => return Ok(*result),
    };
    let mut result = fitted.report()?;
    let is_dry = restore.options.dry_run;
    if is_dry && restore.options.on_overlap != OnOverlap::Exact {
        let end = restore.end();
        let landed = restore.still_landed(&restore.own_turns_lost(&end)?)?;
        let landed = (!landed.is_empty()).then_some(RestoreNote::WouldStayLanded(landed));
        result.notes.extend(landed);
        let others = restore.turns_of_others(&end)?;
        let others = (!others.is_empty()).then_some(RestoreNote::WouldTakeFromOthers(others));
        result.notes.extend(others);
    }
    if is_dry || fitted.changes_nothing()? {
        return Ok(result);
    }

    anyhow::ensure!(
        !interrupt::requested(),
        "interrupted before anything was changed"
    );
    fitted.finish(result)
}

enum Fitting<'a> {
    Clean(Box<FittedRestore<'a>>),
    /// By what the result names.
    Stopped(Box<RestoreResult>),
}

impl Restore<'_> {
    fn fit(&self) -> anyhow::Result<Fitting<'_>> {
        let (project, options) = (self.session.project, self.options);
        let repository = &project.repository;
        let target = turn_tree(&project.checkout(), &self.turn)?;
        let (mut recorded, hidden) = self.record(target)?;
        check_paths(repository, &self.turn, options, [target, recorded.tree])?;

        let (target, outside_paths) =
            restrict_to_paths(repository, recorded.tree, target, &options.paths)?;
        if options.on_overlap == OnOverlap::Exact && !outside_paths.is_empty() {
            let overlaps = lossy_paths(&outside_paths);
            let note = RestoreNote::OutsidePaths(outside_paths);
            return Ok(self.stopped(&recorded, overlaps, Some(note)));
        }

        let mut restored = self.apply(recorded.tree, target, &BTreeSet::new())?;
        if options.on_overlap == OnOverlap::Stop && !restored.overlaps.is_empty() {
            let overlaps = restored.overlaps.iter().map(|path| lossy(path)).collect();
            return Ok(self.stopped(&recorded, overlaps, None));
        }

        // A file that no snapshot has cannot be replaced: its bytes would be lost.
        let mut in_the_way = find_blocked(project, recorded.tree, restored.tree)?;
        // `--ours` keeps the file in the way, so the steps conflict there.
        if options.on_overlap == OnOverlap::Ours && !in_the_way.is_empty() {
            let unwritable = in_the_way.into_keys().collect();
            restored = self.apply(recorded.tree, target, &unwritable)?;
            in_the_way = find_blocked(project, recorded.tree, restored.tree)?;
        }
        if !in_the_way.is_empty() {
            let overlaps = in_the_way.keys().map(|path| lossy(path)).collect();
            let files: BTreeSet<Vec<u8>> = in_the_way.into_values().collect();
            let note = RestoreNote::NotInSnapshot(files.into_iter().collect());
            return Ok(self.stopped(&recorded, overlaps, Some(note)));
        }

        // The next snapshot lacks these files, so the turn must not have them.
        let unchanged = hidden.unchanged(repository, recorded.tree, restored.tree)?;
        if !unchanged.is_empty() {
            let without = unchanged.into_iter().map(|path| (path, None)).collect();
            restored.tree = diff::tree_with(repository, restored.tree, &without)?;
            recorded.tree = diff::tree_with(repository, recorded.tree, &without)?;
            recorded.commit = commit_of(&project.checkout(), recorded.tree, self.tip())?;
        }

        Ok(Fitting::Clean(Box::new(FittedRestore {
            restore: self,
            files: FileMove {
                from: recorded.tree,
                to: leave_repositories(repository, recorded.tree, restored.tree)?,
            },
            waiting: draft_transfer::waiting(&project.checkout(), self.tip())?,
            recorded,
            restored,
            target,
        })))
    }

    fn apply(
        &self,
        files: TreeId,
        target: TreeId,
        unwritable: &BTreeSet<Vec<u8>>,
    ) -> anyhow::Result<RestoredFiles> {
        match self.options.on_overlap {
            OnOverlap::Exact => Ok(RestoredFiles::exactly(target)),
            on_overlap => {
                let project = self.session.project;
                apply_plan(project, files, &self.plan, on_overlap, unwritable)
            }
        }
    }

    fn stopped(
        &self,
        recorded: &RecordedFiles,
        overlaps: Vec<String>,
        note: Option<RestoreNote>,
    ) -> Fitting<'_> {
        Fitting::Stopped(Box::new(RestoreResult {
            overlaps,
            over: Vec::new(),
            notes: note.into_iter().collect(),
            ..self.begin_result(recorded)
        }))
    }

    fn begin_result(&self, recorded: &RecordedFiles) -> RestoreResult {
        let left_out = recorded.not_captured.iter();
        RestoreResult {
            turn: self.turn.number(),
            over: self.restored.over.clone(),
            not_captured: left_out.map(|file| file.path.clone()).collect(),
            ..RestoreResult::default()
        }
    }

    /// Also files outside of snapshots that the restore can replace.
    fn record(&self, target: TreeId) -> anyhow::Result<(RecordedFiles, HiddenFiles)> {
        let (project, options) = (self.session.project, self.options);
        let (checkout, transaction) = (project.checkout(), &self.session.entered.transaction);
        let recorded = transaction.record(&checkout, self.tip(), &[])?;
        let steps = self.plan.steps();
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
        let recorded = transaction.record(&checkout, self.tip(), &hidden.all())?;
        Ok((recorded, hidden))
    }

    /// The files of the target plus all turns that remain applied.
    fn target_with_turns(&self, target: TreeId) -> anyhow::Result<TreeId> {
        let planner = self.session.planner(&self.stack);
        let plan = planner.plan_to(&self.end(), &self.options.paths)?;
        let (project, none) = (self.session.project, BTreeSet::new());
        Ok(apply_plan(project, target, &plan, OnOverlap::Ours, &none)?.tree)
    }

    /// Once the restore is recorded.
    fn turn_notes(&self) -> anyhow::Result<Vec<RestoreNote>> {
        let (project, tip) = (self.session.project, self.tip());
        let stacks = Stacks::new(&project.repository);
        let now = stacks.after(&project.store().tip(&tip.session)?)?;
        let landed = self.still_landed(&self.own_turns_lost(&now)?)?;
        let others = self.turns_of_others(&now)?;
        let (deleted, others): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|turn| turn.is_deleted);

        let by = self.restored.by;
        let landed = (!landed.is_empty()).then_some(RestoreNote::StillLanded(by, landed));
        let others = (!others.is_empty()).then_some(RestoreNote::TakenFromOthers(others));
        let deleted = (!deleted.is_empty()).then_some(RestoreNote::TakenFromDeleted(deleted));
        Ok(landed.into_iter().chain(others).chain(deleted).collect())
    }

    /// Numbers of turns that are in the files now and not in `after`.
    fn own_turns_lost(&self, after: &Stack<CommitId>) -> anyhow::Result<Vec<u64>> {
        let (session, before) = (&self.tip().session, &self.current);
        let stacks = Stacks::new(&self.session.project.repository);
        let unknown = taken_from_others(&stacks, session, &[], before, after)?;
        // Turns from before a rename carry another name. Their commits say whose they are.
        let later = match unknown.is_empty() {
            true => Vec::new(),
            false => self.turns_after(&stacks)?,
        };
        taken_of(&stacks, session, &later, before, after)
    }

    /// Turns of other sessions that are in the files now and not in `after`.
    fn turns_of_others(&self, after: &Stack<CommitId>) -> anyhow::Result<Vec<TurnName>> {
        let (session, before) = (&self.tip().session, &self.current);
        let stacks = Stacks::new(&self.session.project.repository);
        let others = taken_from_others(&stacks, session, &[], before, after)?;
        if others.is_empty() {
            return Ok(others);
        }
        taken_from_others(&stacks, session, &self.turns_after(&stacks)?, before, after)
    }

    /// Of the session, after the target.
    fn turns_after(&self, stacks: &Stacks<'_>) -> anyhow::Result<Vec<CommitId>> {
        let mut patches = Vec::new();
        for later in self.session.project.store().history(self.tip().clone()) {
            let later = later?;
            if later.number() <= self.turn.number() {
                break;
            }
            if is_patch(&later) {
                patches.push(stacks.id(&later)?);
            }
        }
        Ok(patches)
    }

    /// Landed turns whose commits are on the current branch, or still on theirs.
    fn still_landed(&self, undone: &[u64]) -> anyhow::Result<Vec<UndoneCommit>> {
        let Some(oldest) = undone.iter().min() else {
            return Ok(Vec::new());
        };
        let repository = &self.session.project.repository;
        let current = refs::branch(repository)?;
        let mut landed_commits: Vec<UndoneCommit> = Vec::new();
        let mut claims = LandingClaims::new(repository, &self.tip().session);
        let mut next = Some(self.tip().commit);
        // A turn lands after it was recorded.
        for _ in *oldest..self.tip().number() {
            let Some(id) = next else { break };
            let commit = repository.commit(id)?;
            next = commit.parents.first().copied();
            // There can be thousands of undos between, whose files need not be read.
            if trailer(&commit.message, "Teddy-Status") != Some(Status::Landed.word()) {
                continue;
            }
            let turn = Turn::read(repository, &self.tip().session, id)?;
            let Some(landed) = claims.of(&turn) else {
                continue;
            };
            for commit in landed.commits {
                let numbers = commit.turns.iter().map(|turn| turn.number);
                let turns: Vec<u64> = numbers.filter(|number| undone.contains(number)).collect();
                if turns.is_empty() {
                    continue;
                }
                for branch in current.iter().chain([&landed.branch]) {
                    let Some(id) = landed_as(repository, branch, &commit)? else {
                        continue;
                    };
                    // A squash has several of them.
                    match landed_commits.iter_mut().find(|found| found.commit == id) {
                        Some(found) => {
                            found.turns.extend(turns);
                            found.turns.sort_unstable();
                        }
                        None => landed_commits.push(UndoneCommit {
                            commit: id,
                            turns,
                            is_current: Some(branch) == current.as_ref(),
                            branch: branch.clone(),
                        }),
                    }
                    break;
                }
            }
        }

        Ok(landed_commits)
    }
}

impl FittedRestore<'_> {
    /// What carrying it out changes.
    fn report(&self) -> anyhow::Result<RestoreResult> {
        let (restore, options) = (self.restore, self.restore.options);
        let (project, stacks) = (restore.session.project, &restore.session.stacks);
        let repository = &project.repository;
        let mut result = restore.begin_result(&self.recorded);

        // Unknown turns count as the user's edits, so only a comparison of the files shows it.
        let is_known = stacks.are_known()? || self.restored.tree == self.target;
        result.is_partial = !self.restored.stopped.is_empty();
        let ends = || restore.plan.ends_in(stacks, &restore.stack, options);
        result.same_turns =
            options.on_overlap == OnOverlap::Exact || is_known && !result.is_partial && ends()?;
        if !is_known {
            result.notes.push(RestoreNote::NoRecord);
        }
        if options.on_overlap == OnOverlap::Markers {
            let suspects: Vec<Vec<u8>> = self.restored.overlaps.iter().cloned().collect();
            let marked = find_conflict_markers(repository, self.restored.tree, &suspects)?;
            result.conflicts = lossy_paths(&marked);
        }

        for change in diff::changes(repository, self.files.from, self.files.to)? {
            let paths = match change.new {
                Some(_) => &mut result.written,
                None => &mut result.deleted,
            };
            paths.push(lossy(&change.path));
        }

        // Turns that are not in the target can be applied. Their changes are not the user's.
        let unedited = match result.same_turns {
            true => self.target,
            false => restore
                .target_with_turns(self.target)
                .unwrap_or(self.target),
        };
        let own = diff::changes(repository, unedited, self.files.to)?;
        let own_paths = own.iter().map(|change| lossy(&change.path));
        result.kept = own_paths
            .filter(|path| !result.deleted.contains(path))
            .collect();
        if result.same_turns {
            self.find_missing(&mut result)?;
        }

        Ok(result)
    }

    fn find_missing(&self, result: &mut RestoreResult) -> anyhow::Result<()> {
        let restore = self.restore;
        let (project, stacks) = (restore.session.project, &restore.session.stacks);
        let (repository, checkout) = (&project.repository, project.checkout());
        let compared = compared_turn(&checkout, stacks, &restore.turn)?;
        let tree = turn_tree(&checkout, &compared)?;
        let paths = &restore.options.paths;
        let (tree, _) = restrict_to_paths(repository, self.recorded.tree, tree, paths)?;
        let own = diff::changes(repository, tree, self.files.to)?;

        result.compared = compared.number();
        result.missing =
            find_missing_changes(&checkout, restore.tip(), stacks, &restore.stack, &own)?;
        // What the restore would move if it could.
        for change in diff::changes(repository, self.files.to, self.restored.tree)? {
            let wanted = change.new.filter(TreeEntry::is_repository);
            let path = lossy(&change.path);
            if let Some(wanted) = wanted
                && !result.missing.iter().any(|missing| missing.path == path)
            {
                let commit = change.old.is_some().then(|| wanted.id.to_string());
                let why = WhyMissing::Repository { commit };
                result.missing.push(MissingChange { path, why });
            }
        }
        for missing in &mut result.missing {
            // What this restore deletes is still on disk.
            if missing.why == WhyMissing::Ignored && result.deleted.contains(&missing.path) {
                missing.why = WhyMissing::Deleted;
            }
        }
        // A file that is gone and that no turn changed is not kept.
        for change in own.iter().filter(|change| change.new.is_none()) {
            let path = lossy(&change.path);
            if !result.missing.iter().any(|missing| missing.path == path) {
                result.kept.retain(|kept| *kept != path);
            }
        }
        Ok(())
    }

    /// Records the turn and updates the user's files.
    fn finish(self, mut result: RestoreResult) -> anyhow::Result<RestoreResult> {
        let restore = self.restore;
        let (checkout, tip) = (restore.session.project.checkout(), restore.tip());
        let foreign_plan = draft_transfer::foreign_plan(&checkout, tip)?;
        let step = self.write()?;
        let transaction = &restore.session.entered.transaction;
        let Completed {
            commit, published, ..
        } = transaction.complete(&checkout, &tip.session, &step, Some(&self.files))?;
        if let Some(waiting) = self.waiting {
            // If the context stays, all of the draft still applies.
            let scope = match restore.options.keeps_context() {
                true => TransferScope::Whole,
                false => TransferScope::Answer,
            };
            let plan = waiting.artifacts.text_or_empty(artifact::PLAN);
            let is_planned = waiting.is_planned();
            if draft_transfer::transfer(&checkout, tip, waiting, scope)? && is_planned {
                let title = plan::parse(&plan).0.title;
                result.notes.push(RestoreNote::PlanWaits(title));
            }
        }

        let dropped = foreign_plan.map(RestoreNote::ForeignPlanDropped);
        result.notes.extend(dropped);
        if !published.conflicts.is_empty() {
            result.add_unapplied(&published);
        }
        let obstacles = obstacles(&published).into_iter();
        result.notes.extend(obstacles.map(RestoreNote::Obstacle));
        result.commit = Some(commit);

        // The files are written already.
        result
            .notes
            .extend(restore.turn_notes().unwrap_or_default());
        Ok(result)
    }

    /// Writes the turn. The session's ref does not move yet.
    fn write(&self) -> anyhow::Result<SessionMove> {
        let (restore, options) = (self.restore, self.restore.options);
        let (project, tip) = (restore.session.project, restore.tip());
        let repository = &project.repository;
        let from = match options.keeps_context() {
            true => tip,
            false => &restore.turn,
        };
        let stripped = self.strip_waiting_message(&project.store().own_draft(tip)?);
        let requests = requests::requests_back_at(project, tip, &stripped, from)?;

        let mut turn = FilesTurn::begin(repository, tip, Status::Restored, &self.recorded)?;
        turn.set_files(&restore.title, self.recorded.commit, self.files.to)?;
        turn.meta.restored = Some(restore.restored.clone());
        turn.continue_from(from)?;
        if options.keeps_context() {
            turn.keep_context_edits();
        }
        turn.artifacts
            .insert(&in_next(artifact::REQUESTS), requests.write());
        let summary = self.files.lines(repository)?;

        let log = format!("teddy: restore turn {}", restore.turn.number());
        Ok(SessionMove {
            overwrite: options.on_overlap.replaces(),
            ..turn.finish(&restore.title, &summary, self.publish()?, log)?
        })
    }

    /// No file, turn or context would change. An undo or redo always changes the position in the
    /// session.
    fn changes_nothing(&self) -> anyhow::Result<bool> {
        let (restore, files) = (self.restore, &self.files);
        let (project, stacks) = (restore.session.project, &restore.session.stacks);
        let is_restore = restore.restored.by == RestoreCommand::Restore;
        if !is_restore || files.from != files.to {
            return Ok(false);
        }

        // A path that keeps the user's side is one on which the stacks differ.
        let is_same_stack = stacks.last()?.is_some() && self.end() == restore.current;
        let is_whole = restore.options.paths.is_empty();
        let differs = || anyhow::Ok(is_whole || restore.plan.changes_parts(&project.repository)?);
        if !is_same_stack && differs()? {
            return Ok(false);
        }

        let now = || Ok(self.recorded.tree);
        let unapplied = find_unapplied(&project.checkout(), stacks, restore.tip(), &now)?;
        Ok(unapplied.is_none() && (restore.options.keeps_context() || self.has_same_context()?))
    }

    fn publish(&self) -> anyhow::Result<Written> {
        let (restore, stacks) = (self.restore, &self.restore.session.stacks);
        let repository = &restore.session.project.repository;
        let mut recorder = Recorder::new(stacks);
        let mut target = self.end();
        if !self.is_wholly_exact() {
            for (path, series) in &self.restored.stopped {
                target.set(path, recorder.top(path, series)?);
            }
        }

        let mut suspects: Vec<Vec<u8>> = self.restored.overlaps.iter().cloned().collect();
        if let Some((_, last)) = stacks.last()? {
            suspects.extend(last.marked);
        }

        suspects.sort();
        suspects.dedup();
        let tip = restore.tip();
        let below = restore.current.clone();
        let publication = Publication {
            target: Some(target),
            marked: find_conflict_markers(repository, self.files.to, &suspects)?,
            ..publication(tip.session.as_str(), tip.number() + 1, below)
        };

        recorder.write(&publication, self.files.to)
    }

    /// Without paths at which the user's side was kept.
    fn end(&self) -> Stack<CommitId> {
        match self.is_wholly_exact() {
            true => self.restore.stack.clone(),
            false => self.restore.end(),
        }
    }

    fn is_wholly_exact(&self) -> bool {
        let options = self.restore.options;
        options.on_overlap == OnOverlap::Exact && options.paths.is_empty()
    }

    /// The requests of a waiting turn do not belong to the restore.
    fn strip_waiting_message(&self, draft: &Draft) -> Draft {
        let mut stripped = draft.clone();
        if self.waiting.is_some() {
            stripped.artifacts.remove(artifact::USER_PROMPT);
        }
        stripped
    }

    fn has_same_context(&self) -> anyhow::Result<bool> {
        let (project, turn, tip) = (
            self.restore.session.project,
            &self.restore.turn,
            self.restore.tip(),
        );
        let repository = &project.repository;
        let draft = project.store().own_draft(tip)?;
        for name in [artifact::TURN_CONTEXT, artifact::SYSTEM_PROMPT] {
            let target = turn.text(repository, &in_next(name))?.unwrap_or_default();
            if draft.artifacts.text_or_empty(name) != target {
                return Ok(false);
            }
        }

        for name in [artifact::QUESTION, artifact::CONCLUSION] {
            if tip.text(repository, &in_next(name))? != turn.text(repository, &in_next(name))? {
                return Ok(false);
            }
        }

        let stripped = self.strip_waiting_message(&draft);
        let now = requests::requests(project, tip, &stripped)?.write();
        let then = requests::requests_back_at(project, tip, &stripped, turn)?.write();
        let [current, there] = [tip.next(repository)?, turn.next(repository)?];
        Ok(now == then
            && current.agent == there.agent
            && current.caller_turn_id == there.caller_turn_id)
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
        entry.is_some_and(|entry| entry.mode != EntryMode::Commit)
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
