//! Runs an approved plan and records its turn, or records that it was declined.
//!
//! A run that is interrupted before the commit point changes no file of the user's
//! (docs/decisions/0010-locks-and-crashes.md).

use super::result::{DeclineReply, RecordedTurn, TurnEnding};
use super::stage::{RunResult, perform};
use super::turn::{EndedTurn, finish};
use crate::config::settings::OnFailure;
use crate::git::object::{CommitId, TreeId};
use crate::git::{diff, refs};
use crate::host::interrupt;
use crate::host::lock::LockError;
use crate::plan::action::Action;
use crate::plan::reading::ProseKind;
use crate::plan::run::{Effect, Ending, Interruption, Outcome};
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::{ModelUse, NotCaptured, Status, Workspace};
use crate::session::requests::Requests;
use crate::session::transition::{self, Agent, Caller, Current, Next, Others};
use crate::session::turn::{self, Turn};
use crate::text::context_list;
use crate::text::path::lossy_paths;
use crate::text::resource::Resource;
use crate::workflow::context::lists::ContextLists;
use crate::workflow::execute::prepare::{Reach, RunEnv};
use crate::workflow::model::agents;
use crate::workflow::project::Project;
use crate::workflow::user::Notice;
use crate::workflow::user::{Approved, Event, User};
use crate::workflow::validation::ValidatedPlan;
use crate::workflow::validation::review_content::{modifications, render_as_run};
use crate::workspace::drift::Drift;
use crate::workspace::fit::{Fit, fit};
use crate::workspace::snapshot::{self, RecordedFiles, newly_left_out};
use crate::workspace::transaction::Transaction;

// Each wait lasts `TEDDY_LOCK_TIMEOUT`.
const MAX_WAITS: u32 = 20;

pub(super) fn run_and_record(
    project: &Project,
    mut case: PlanInReview<'_>,
    approved: Approved,
    user: &mut dyn User,
) -> anyhow::Result<RecordedTurn> {
    anyhow::ensure!(
        !interrupt::requested(),
        "interrupted before anything was run"
    );
    let dir_name = case.tip.session.dir_name();
    let env = RunEnv {
        name: &dir_name,
        tip: case.tip,
        before: case.recorded.commit,
        tree: case.recorded.tree,
        users_own: true,
        reach: Reach::AsConfigured,
        artifacts: &case.draft.artifacts,
    };

    let result = perform(project, &env, &approved, user)?;
    result.pages.keep_in(&mut case.draft.artifacts);
    let mut run = FinishedRun {
        case,
        approved,
        result,
    };

    // The repository was not locked during the run. Other turns can have been recorded meanwhile.
    let transaction = enter_at_last(project, user)?;
    if run.result.ran.interruption.is_none() && !interrupt::requested() {
        match apply_result(&transaction, project, &run) {
            // Nothing was committed, so the run can still be recorded as interrupted.
            Err(error) if !is_recorded(project, &run.case)? => run.result.ran.cut_short(&error),
            recorded => return recorded,
        }
    }

    if interrupt::requested() {
        run.result.ran.interruption = Some(Interruption::User);
    }

    record_interrupted(&transaction, project, run, user)
}

fn is_recorded(project: &Project, case: &PlanInReview<'_>) -> anyhow::Result<bool> {
    let tip = refs::read(&project.repository, &case.tip.session.reference())?;
    Ok(tip != Some(case.tip.commit))
}

fn apply_result(
    transaction: &Transaction,
    project: &Project,
    run: &FinishedRun<'_>,
) -> anyhow::Result<RecordedTurn> {
    let FinishedRun {
        case,
        approved,
        result,
    } = run;
    let rolled_back = result.ran.failed && project.settings.on_failure == OnFailure::Rollback;
    let (base, tree) = if rolled_back {
        (case.recorded.commit, case.recorded.tree)
    } else {
        (result.worktree.base, result.worktree.tree)
    };

    let after = run.commit(project, base, tree)?;
    // Only paths that the plan changed matter. Other edits of the user's do not require a new
    // snapshot.
    let now = match is_still_so(project, case, tree)? {
        true => case.recorded.clone(),
        false => transaction.record(
            &project.checkout(),
            case.tip,
            &super::forced(&approved.plan),
        )?,
    };

    // Merged into the files as they are now: the user and other turns can have changed them.
    let (files, overlaps) = match fit(&project.repository, case.recorded.tree, now.tree, tree)? {
        Fit::Clean(files) => (Some(files), Vec::new()),
        Fit::Overlap(paths, _) => (None, lossy_paths(&paths)),
    };

    let modifications = modifications(&case.validated.plan, approved, &case.validated.simulation);
    let next = next_state(project, case, approved, &result.ran.outcomes)?;
    let writing = EndedTurn {
        ending: TurnEnding::Ran {
            outcomes: result.ran.outcomes.clone(),
            failed: result.ran.failed,
            conclusion: next.conclusion.clone(),
        },
        plan: &approved.plan,
        approved: render_as_run(&case.validated.plan, approved),
        // A memo describes the state after the whole plan.
        memos: if result.ran.failed {
            &[]
        } else {
            &approved.memos
        },
        modifications: &modifications,
        next,
        workspace: Workspace {
            worktree: project.repository.worktree_name(),
            branch: Some(refs::branch_or_head(&project.repository)?),
            before: case.recorded.commit,
            after,
            synced: files.is_some(),
            overlaps,
        },
        repository_changes: result.worktree.repository_changes.clone(),
        not_captured: union(&case.recorded.not_captured, &result.worktree.not_captured),
    };

    let mut recorded = finish(transaction, project, case, writing, files.as_ref())?;
    recorded.not_captured = newly_left_out(
        &[&case.recorded.not_captured, &case.tip.meta.not_captured],
        &result.worktree.not_captured,
    );
    Ok(recorded)
}

/// Compares only the paths in which `tree` differs from the reviewed files.
fn is_still_so(project: &Project, case: &PlanInReview<'_>, tree: TreeId) -> anyhow::Result<bool> {
    let repository = &project.repository;
    let changes = diff::changes(repository, case.recorded.tree, tree)?;
    let paths: Vec<_> = changes.into_iter().map(|change| change.path).collect();
    Ok(case.recorded.still_has(repository, &paths))
}

/// Waits longer than usual, because the result of the run would be lost.
fn enter_at_last(project: &Project, user: &mut dyn User) -> anyhow::Result<Transaction> {
    for _ in 0..MAX_WAITS {
        match project.enter("execute", user) {
            Err(error)
                if matches!(error.downcast_ref(), Some(LockError::Busy { .. }))
                    && !interrupt::requested() =>
            {
                user.report(Event::Notice(Notice::WaitingToRecord(error.to_string())));
            }
            entered => return entered,
        }
    }

    project.enter("execute", user)
}

pub(super) fn record_declined(
    project: &Project,
    mut case: PlanInReview<'_>,
    reply: DeclineReply,
    user: &mut dyn User,
) -> anyhow::Result<RecordedTurn> {
    let next =
        transition::without_effects(&case.current(&case.lists.turn(), &case.prompt(project)?));
    let transaction = project.enter("execute", user)?;
    if let DeclineReply::Instead { message, .. } = &reply {
        case.draft
            .artifacts
            .insert(artifact::DECLINED, message.as_str());
    }

    let plan = case.validated.plan.clone();
    let outcomes: Vec<Outcome> = plan
        .actions
        .iter()
        .map(|_| Outcome::of(Ending::Skipped, "the user declined the plan"))
        .collect();
    let writing = EndedTurn {
        ending: TurnEnding::Declined { outcomes, reply },
        plan: &plan,
        approved: None,
        memos: &[],
        modifications: &[],
        next,
        workspace: case.unchanged_workspace(project),
        repository_changes: Vec::new(),
        not_captured: case.recorded.not_captured.clone(),
    };

    finish(&transaction, project, &case, writing, None)
}

fn union(before: &[NotCaptured], after: &[NotCaptured]) -> Vec<NotCaptured> {
    let new = after
        .iter()
        .filter(|file| before.iter().all(|other| other.path != file.path));
    before.iter().chain(new).cloned().collect()
}

fn next_state(
    project: &Project,
    case: &PlanInReview<'_>,
    approved: &Approved,
    outcomes: &[Outcome],
) -> anyhow::Result<Next> {
    let actions = approved.plan.actions.iter().zip(outcomes);
    let effects: Vec<Effect> = actions
        .filter_map(|(action, outcome)| {
            let effect = outcome.effect.clone();
            effect.or_else(|| writing_effect(case, action, outcome))
        })
        .collect();
    let invoked = effects.iter().find_map(|effect| {
        if let Effect::Invoke { agent, .. } = effect {
            Some(agent)
        } else {
            None
        }
    });

    let invoked: Option<Agent> = invoked
        .map(|name| agents::agent(project, name))
        .transpose()?;
    let (context, prompt) = (case.lists.turn(), case.prompt(project)?);
    if case.validated.prose == Some(ProseKind::Statement) {
        let current = case.current(&context, &prompt);
        return Ok(transition::after_answer(&current, &effects, None));
    }
    if case.draft.meta.question {
        let conclusion = case.tip.conclusion(&project.repository)?;
        let current = case.current(&context, &prompt);
        return Ok(transition::after_answer(&current, &effects, conclusion));
    }

    Ok(transition::after_run(
        &case.current(&context, &prompt),
        &effects,
        &Others {
            invoked,
            caller: case.caller.clone(),
        },
    ))
}

/// Returns the effect of writing a file: the model knows its text, so it is in the context of the next
/// turn. An agent reads files itself, and can change thousands.
fn writing_effect(case: &PlanInReview<'_>, action: &Action, outcome: &Outcome) -> Option<Effect> {
    let is_written = outcome.ending == Ending::Success && !case.draft.meta.made;
    let path = action.kind.path().filter(|_| is_written)?;
    let resource = Resource::File(path.clone());
    (!case.lists.has(&resource)).then_some(Effect::Add(resource))
}

/// A validated plan with everything that its review and run need.
pub(super) struct PlanInReview<'a> {
    pub(super) tip: &'a Turn,
    pub(super) draft: Draft,
    pub(super) recorded: RecordedFiles,
    pub(super) lists: ContextLists,
    pub(super) caller: Option<Caller>,
    /// Answered by this turn.
    pub(super) question: Option<String>,
    pub(super) requests: Requests,
    pub(super) validated: ValidatedPlan,
    /// From the newest turn.
    pub(super) drift: Drift,
    /// Set if the user's files changed during the review.
    pub(super) earlier: Option<Approved>,
}

impl PlanInReview<'_> {
    pub(super) fn current<'a>(
        &'a self,
        context: &'a [context_list::ListEntry],
        prompt: &'a str,
    ) -> Current<'a> {
        Current {
            session: &self.tip.session,
            number: self.draft.meta.number,
            turn_id: self.draft.meta.turn_id,
            caller_turn_id: self.draft.meta.caller_turn_id,
            agent: &self.draft.meta.agent,
            system_prompt: prompt,
            context,
            // Task text reaches the model only together with the user's answer to its question. A
            // question by the user does not count as an answer.
            is_asked: (self.draft.is_asked_by_user() && !self.draft.meta.question)
                || self.draft.meta.work.is_some(),
            question: self.question.as_deref(),
            requests: &self.requests,
        }
    }

    /// For the next turn. A question has a prompt of its own, which must not be carried over.
    pub(super) fn prompt(&self, project: &Project) -> anyhow::Result<String> {
        let meta = &self.draft.meta;
        if meta.question {
            return agents::standing_prompt(project, self.tip, &meta.agent);
        }
        Ok(self.draft.artifacts.text_or_empty(artifact::SYSTEM_PROMPT))
    }

    pub(super) fn unchanged_workspace(&self, project: &Project) -> Workspace {
        let commit = self.recorded.commit;
        Workspace {
            worktree: project.repository.worktree_name(),
            branch: refs::branch_or_head(&project.repository).ok(),
            before: commit,
            after: commit,
            synced: true,
            overlaps: Vec::new(),
        }
    }
}

pub(super) struct FinishedRun<'a> {
    pub case: PlanInReview<'a>,
    pub approved: Approved,
    pub result: RunResult,
}

impl FinishedRun<'_> {
    pub(super) fn commit(
        &self,
        project: &Project,
        base: CommitId,
        tree: TreeId,
    ) -> anyhow::Result<CommitId> {
        let title = turn::commit_subject(&self.approved.plan.title);
        let text = format!(
            "{title}\n\nTeddy-Session: {}\nTeddy-Turn: {}\n",
            self.case.tip.session, self.case.draft.meta.number
        );
        snapshot::advance(&project.repository, base, tree, &text)
    }
}

// An interrupted run: the turn reports what ran, the user's files stay unchanged, and the plan
// becomes the next draft.

const REUSED_ARTIFACTS: [&str; 4] = [
    artifact::INPUT,
    artifact::USER_PROMPT,
    artifact::REPLY,
    artifact::PLAN,
];

pub(super) fn record_interrupted(
    transaction: &Transaction,
    project: &Project,
    mut run: FinishedRun<'_>,
    user: &mut dyn User,
) -> anyhow::Result<RecordedTurn> {
    // The result itself might be what cannot be written, for example on a full disk. Record at
    // least that the plan ran.
    let commit = run.commit(project, run.result.worktree.base, run.result.worktree.tree);
    let after = commit.or_else(|error| {
        run.result.ran.cut_short(&error);
        run.commit(project, run.case.recorded.commit, run.case.recorded.tree)
    })?;
    let FinishedRun {
        case,
        approved,
        result,
    } = &run;
    let (context, prompt) = (case.lists.turn(), case.prompt(project)?);
    let writing = EndedTurn {
        ending: TurnEnding::Interrupted {
            outcomes: result.ran.outcomes.clone(),
            cause: result
                .ran
                .interruption
                .clone()
                .unwrap_or(Interruption::User),
        },
        plan: &approved.plan,
        approved: render_as_run(&case.validated.plan, approved),
        memos: &[],
        modifications: &modifications(&case.validated.plan, approved, &case.validated.simulation),
        next: transition::without_effects(&case.current(&context, &prompt)),
        workspace: Workspace {
            worktree: project.repository.worktree_name(),
            branch: refs::branch_or_head(&project.repository).ok(),
            before: case.recorded.commit,
            after,
            synced: false,
            overlaps: Vec::new(),
        },
        repository_changes: result.worktree.repository_changes.clone(),
        not_captured: case.recorded.not_captured.clone(),
    };

    let recorded = finish(transaction, project, case, writing, None)?;

    if let Err(error) = restore_draft(project, &run) {
        user.report(Event::Notice(Notice::PlanNotKept(format!("{error:#}"))));
    }

    Ok(recorded)
}

fn restore_draft(project: &Project, run: &FinishedRun<'_>) -> anyhow::Result<()> {
    let old = &run.case.draft;
    let tip = project.store().tip(&run.case.tip.session)?;
    let mut draft = project.store().draft(&tip)?;
    let is_kept = |name: &str| {
        REUSED_ARTIFACTS.contains(&name)
            || name.starts_with(artifact::STEPS)
            || name.starts_with(artifact::TAKEN_FILES)
            || name.starts_with(artifact::PAGES)
    };

    for (name, contents) in old.artifacts.0.iter().filter(|(name, _)| is_kept(name)) {
        draft.artifacts.insert(name, contents.as_slice());
    }

    draft.meta.status = Status::Planned;
    draft.meta.origin = old.meta.origin;
    draft.meta.replans = old.meta.replans;
    draft.meta.made = old.meta.made;
    draft.meta.pipeline.clone_from(&old.meta.pipeline);
    draft.meta.repair.clone_from(&old.meta.repair);

    // The interrupted turn has already accounted for the cost.
    draft.meta.model = old.meta.model.as_ref().map(|model| ModelUse {
        asked: model.asked.clone(),
        answered: model.answered.clone(),
        tokens_in: model.tokens_in.map(|_| 0),
        tokens_out: model.tokens_out.map(|_| 0),
        cost: model.cost.map(|_| 0.0),
        ..ModelUse::default()
    });
    draft.begin();
    project.store().save_draft(&tip, &mut draft)
}
