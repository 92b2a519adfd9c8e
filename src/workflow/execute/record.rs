//! Runs an approved plan and records its turn.
//!
//! A run that is interrupted before the commit point changes no file of the user's
//! (docs/decisions/0010-locks-and-crashes.md).

use super::planned::{PlannedTurn, forced};
use super::result::{RecordedTurn, TurnEnding};
use super::stage::{RunResult, perform};
use super::turn::EndedTurn;
use crate::config::settings::OnFailure;
use crate::git::merge::merge_trees;
use crate::git::object::{CommitId, TreeId};
use crate::git::{diff, refs};
use crate::host::interrupt;
use crate::host::lock::LockError;
use crate::plan::action::Action;
use crate::plan::reading::ProseKind;
use crate::plan::run::{Effect, Ending, Interruption, Outcome};
use crate::project::{PlanActivity, Project, note_activity};
use crate::session::artifact;
use crate::session::meta::{Approver, ModelUse, NotCaptured, Status, Workspace};
use crate::session::transition::{self, Agent, Next, Others};
use crate::session::turn;
use crate::text::path::lossy_paths;
use crate::text::resource::Resource;
use crate::workflow::execute::prepare::RunEnv;
use crate::workflow::model::agents;
use crate::workflow::open_session::OpenSession;
use crate::workflow::user::{Approved, Event, Notice, User, WithoutActions};
use crate::workflow::validation::review_content::{modifications, render_as_run};
use crate::workspace::file_move::FileMove;
use crate::workspace::snapshot;
use crate::workspace::transaction::Transaction;

// Each wait lasts `TEDDY_LOCK_TIMEOUT`.
const MAX_WAITS: u32 = 20;

/// A plan as the user approved it.
pub(super) struct ApprovedTurn<'p> {
    pub planned: PlannedTurn<'p>,
    pub approved: Approved,
}

impl<'p> ApprovedTurn<'p> {
    /// Runs the actions in the session's worktree. The repository is not locked meanwhile.
    pub fn run(self, user: &mut dyn User) -> anyhow::Result<RanTurn<'p>> {
        anyhow::ensure!(
            !interrupt::requested(),
            "interrupted before anything was run"
        );
        let ApprovedTurn {
            mut planned,
            approved,
        } = self;
        let OpenSession {
            project,
            tip,
            draft,
            ..
        } = &mut planned.session;
        let activity = PlanActivity::Run(draft.meta.number);
        note_activity(project, &tip.session, Some(activity));
        let dir_name = tip.session.dir_name();
        let env = RunEnv {
            name: &dir_name,
            tip,
            before: planned.recorded.commit,
            tree: planned.recorded.tree,
            users_own: true,
            is_replay: false,
            artifacts: &draft.artifacts,
        };

        let is_message = |action: &Action| action.kind.message().is_some();
        let only_tells = approved.running().all(is_message);
        // A message that needed no approval is shown after the turn.
        let result = match draft.meta.approved_by == Some(Approver::Reads) && only_tells {
            true => perform(project, &env, &approved, &mut WithoutActions(user)),
            false => perform(project, &env, &approved, user),
        };
        note_activity(project, &tip.session, None);
        let result = result?;
        result.pages.keep_in(&mut draft.artifacts);
        Ok(RanTurn {
            planned,
            approved,
            result,
        })
    }
}

/// A plan that ran in the session's worktree. Nothing of it is recorded, or in the user's files.
pub(super) struct RanTurn<'p> {
    planned: PlannedTurn<'p>,
    approved: Approved,
    result: RunResult,
}

impl RanTurn<'_> {
    /// Records the turn and updates the user's files. A run that was interrupted changes no file, and
    /// its plan becomes the next draft.
    pub fn record(mut self, user: &mut dyn User) -> anyhow::Result<RecordedTurn> {
        let project = self.planned.session.project;
        // The repository was not locked during the run. Other turns can have been recorded meanwhile.
        let transaction = enter_at_last(project, user)?;
        if self.result.ran.interruption.is_none() && !interrupt::requested() {
            match self.apply(&transaction) {
                // Nothing was committed, so the run can still be recorded as interrupted.
                Err(error) if !self.is_recorded()? => self.result.ran.cut_short(&error),
                recorded => return recorded,
            }
        }

        if interrupt::requested() {
            self.result.ran.interruption = Some(Interruption::User);
        }

        self.record_interrupted(&transaction, user)
    }

    fn is_recorded(&self) -> anyhow::Result<bool> {
        let OpenSession { project, tip, .. } = &self.planned.session;
        let newest = refs::read(&project.repository, &tip.session.reference())?;
        Ok(newest != Some(tip.commit))
    }

    fn apply(&self, transaction: &Transaction) -> anyhow::Result<RecordedTurn> {
        let RanTurn {
            planned,
            approved,
            result,
        } = self;
        let OpenSession { project, tip, .. } = &planned.session;
        let repository = &project.repository;
        let rolled_back = result.ran.failed && project.settings.on_failure == OnFailure::Rollback;
        let (base, tree) = if rolled_back {
            (planned.recorded.commit, planned.recorded.tree)
        } else {
            (result.worktree.base, result.worktree.tree)
        };

        let after = self.commit(base, tree)?;
        let now = self.files_now(tree, transaction)?;
        // Merged into the files as they are now: the user and other turns can have changed them.
        let merged = merge_trees(repository, planned.recorded.tree, now, tree)?;
        let files = merged.is_clean().then_some(FileMove {
            from: now,
            to: merged.ours,
        });

        let next = next_state(planned, approved, &result.ran.outcomes)?;
        let ending = TurnEnding::Ran {
            outcomes: result.ran.outcomes.clone(),
            failed: result.ran.failed,
            conclusion: next.conclusion.clone(),
        };
        let workspace = Workspace {
            branch: Some(refs::branch_or_head(repository)?),
            after,
            synced: files.is_some(),
            overlaps: lossy_paths(&merged.paths),
            ..planned.unchanged_workspace()
        };
        let ended = EndedTurn {
            // A memo describes the state after the whole plan.
            memos: if result.ran.failed {
                &[]
            } else {
                &approved.memos
            },
            not_captured: union(
                &planned.recorded.not_captured,
                &result.worktree.not_captured,
            ),
            ..self.ended(ending, next, workspace)
        };

        let mut recorded = ended.record(planned, transaction, files.as_ref())?;
        recorded.not_captured = result
            .worktree
            .unreported(&planned.recorded.not_captured, &tip.meta.not_captured);
        Ok(recorded)
    }

    fn files_now(&self, result: TreeId, transaction: &Transaction) -> anyhow::Result<TreeId> {
        let (planned, approved) = (&self.planned, &self.approved);
        // Only paths that the plan changed matter. Other edits of the user's do not require a new
        // snapshot.
        if self.is_unchanged(result)? {
            return Ok(planned.recorded.tree);
        }
        let OpenSession { project, tip, .. } = &planned.session;
        let forced = forced(&approved.plan);
        Ok(transaction.record(&project.checkout(), tip, &forced)?.tree)
    }

    /// Compares only the paths in which `tree` differs from the reviewed files.
    fn is_unchanged(&self, tree: TreeId) -> anyhow::Result<bool> {
        let (planned, repository) = (&self.planned, &self.planned.session.project.repository);
        let changes = diff::changes(repository, planned.recorded.tree, tree)?;
        let paths: Vec<_> = changes.into_iter().map(|change| change.path).collect();
        Ok(planned.recorded.still_has(repository, &paths))
    }

    /// The files as the plan left them, on `base`.
    fn commit(&self, base: CommitId, tree: TreeId) -> anyhow::Result<CommitId> {
        let OpenSession {
            project,
            tip,
            draft,
            ..
        } = &self.planned.session;
        let title = turn::commit_subject(&self.approved.plan.title);
        let (session, number) = (&tip.session, draft.meta.number);
        let text = format!("{title}\n\nTeddy-Session: {session}\nTeddy-Turn: {number}\n");
        snapshot::advance(&project.repository, base, tree, &text)
    }

    fn ended(&self, ending: TurnEnding, next: Next, workspace: Workspace) -> EndedTurn<'_> {
        let (planned, approved) = (&self.planned, &self.approved);
        let validated = &planned.validated;
        EndedTurn {
            ending,
            plan: &approved.plan,
            approved: render_as_run(&validated.plan, approved),
            memos: &[],
            modifications: modifications(&validated.plan, approved, &validated.simulation),
            next,
            workspace,
            repository_changes: self.result.worktree.repository_changes.clone(),
            not_captured: planned.recorded.not_captured.clone(),
        }
    }

    /// The turn reports what ran.
    fn record_interrupted(
        mut self,
        transaction: &Transaction,
        user: &mut dyn User,
    ) -> anyhow::Result<RecordedTurn> {
        // The result itself might be what cannot be written, for example on a full disk. Record at
        // least that the plan ran.
        let commit = self.commit(self.result.worktree.base, self.result.worktree.tree);
        let after = commit.or_else(|error| {
            self.result.ran.cut_short(&error);
            self.commit(self.planned.recorded.commit, self.planned.recorded.tree)
        })?;
        let (planned, ran) = (&self.planned, &self.result.ran);
        let (context, prompt) = (planned.lists.turn(), planned.prompt()?);
        let ending = TurnEnding::Interrupted {
            outcomes: ran.outcomes.clone(),
            cause: ran.interruption.clone().unwrap_or(Interruption::User),
        };
        let next = transition::without_effects(&planned.current(&context, &prompt));
        let workspace = Workspace {
            after,
            synced: false,
            ..planned.unchanged_workspace()
        };
        let ended = self.ended(ending, next, workspace);
        let approved = ended.approved.clone();
        let recorded = ended.record(planned, transaction, None)?;
        if let Err(error) = keep_interrupted_plan(self.planned.session, approved) {
            user.report(Event::Notice(Notice::PlanNotKept(format!("{error:#}"))));
        }

        Ok(recorded)
    }
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

fn union(before: &[NotCaptured], after: &[NotCaptured]) -> Vec<NotCaptured> {
    let new = after
        .iter()
        .filter(|file| before.iter().all(|other| other.path != file.path));
    before.iter().chain(new).cloned().collect()
}

fn next_state(
    planned: &PlannedTurn<'_>,
    approved: &Approved,
    outcomes: &[Outcome],
) -> anyhow::Result<Next> {
    let OpenSession {
        project,
        tip,
        draft,
        ..
    } = &planned.session;
    let actions = approved.plan.actions.iter().zip(outcomes);
    let effects: Vec<Effect> = actions
        .filter_map(|(action, outcome)| {
            let effect = outcome.effect.clone();
            effect.or_else(|| writing_effect(planned, action, outcome))
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
    let (context, prompt) = (planned.lists.turn(), planned.prompt()?);
    let current = planned.current(&context, &prompt);
    if planned.validated.prose == Some(ProseKind::Statement) {
        return Ok(transition::after_answer(&current, &effects, None));
    }
    if draft.meta.question {
        let conclusion = tip.conclusion(&project.repository)?;
        return Ok(transition::after_answer(&current, &effects, conclusion));
    }

    let others = Others {
        invoked,
        caller: planned.caller.clone(),
    };
    Ok(transition::after_run(&current, &effects, &others))
}

/// Returns the effect of writing a file: the model knows its text, so it is in the context of the next
/// turn. An agent reads files itself, and can change thousands.
fn writing_effect(planned: &PlannedTurn<'_>, action: &Action, outcome: &Outcome) -> Option<Effect> {
    let is_written = outcome.ending == Ending::Success && !planned.session.draft.meta.made;
    let path = action.kind.path().filter(|_| is_written)?;
    let resource = Resource::File(path.clone());
    (!planned.lists.has(&resource)).then_some(Effect::Add(resource))
}

const REUSED_ARTIFACTS: [&str; 4] = [
    artifact::INPUT,
    artifact::USER_PROMPT,
    artifact::REPLY,
    artifact::PLAN,
];

/// Makes the plan of the interrupted turn the next draft, with the user's changes of it.
fn keep_interrupted_plan(session: OpenSession<'_>, approved: Option<String>) -> anyhow::Result<()> {
    let old = session.draft.clone();
    let mut next = session.continued()?;
    let draft = &mut next.draft;
    let is_kept = |name: &str| {
        REUSED_ARTIFACTS.contains(&name)
            || name.starts_with(artifact::STEPS)
            || name.starts_with(artifact::TAKEN_FILES)
            || name.starts_with(artifact::PAGES)
    };

    for (name, contents) in old.artifacts.0.iter().filter(|(name, _)| is_kept(name)) {
        draft.artifacts.insert(name, contents.as_slice());
    }
    if let Some(approved) = approved {
        draft.artifacts.insert(artifact::PLAN, approved);
        // Otherwise it is read in place of the plan.
        draft.artifacts.remove(artifact::REPLY);
    }

    draft.meta.status = Status::Planned;
    draft.meta.origin = old.meta.origin;
    draft.meta.replans = old.meta.replans;
    draft.meta.made = old.meta.made;
    draft.meta.planned_on = old.meta.planned_on;
    draft.meta.pipeline.clone_from(&old.meta.pipeline);
    draft.meta.repair.clone_from(&old.meta.repair);

    // The interrupted turn has already accounted for the cost.
    draft.meta.model = old.meta.model.map(ModelUse::accounted);
    draft.begin();
    next.save_draft()
}
