//! Recording a turn whose plan ran, or was declined.

use super::stage::{Left, Reach, Scene, perform, runs_commands};
use super::turn::{Writing, finish};
use super::{Case, Executed, interrupted};
use crate::config::settings::OnFailure;
use crate::git::object::{CommitId, TreeId};
use crate::host::interrupt;
use crate::host::lock::{Lock, LockError};
use crate::plan::run::{Effect, Ending, Interruption, Outcome};
use crate::session::artifact;
use crate::session::meta::{NotCaptured, Status, Workspace};
use crate::session::transition::{self, Agent, Current, Next, Others};
use crate::text::context_list;
use crate::workflow::complete::Fit;
use crate::workflow::modified::{as_run, modifications};
use crate::workflow::project::Project;
use crate::workflow::restore::shown;
use crate::workflow::user::{Approved, Event, User};
use crate::workflow::workspace::left_out;

/// How often the lock is waited for again once a plan has run.
const MAX_WAITS: u32 = 20;

/// A plan that has run, before its turn is recorded.
pub(super) struct Run<'a> {
    /// The turn.
    pub case: Case<'a>,
    /// What was to run.
    pub approved: Approved,
    /// What it left.
    pub left: Left,
}

impl Run<'_> {
    /// Returns the workspace commit with what the plan did.
    pub(super) fn commit(
        &self,
        project: &Project,
        base: CommitId,
        tree: TreeId,
    ) -> anyhow::Result<CommitId> {
        let title = crate::session::message::subject(&self.approved.plan.title);
        let message = format!(
            "{title}\n\nTeddy-Session: {}\nTeddy-Turn: {}\n",
            self.case.tip.session, self.case.draft.meta.number
        );
        project.advance(base, tree, &message)
    }
}

/// Runs what was approved and records the turn.
///
/// # Errors
/// Where nothing could be run, or not even that it was interrupted can be recorded.
pub(super) fn run_and_record(
    project: &Project,
    mut case: Case<'_>,
    approved: Approved,
    user: &mut dyn User,
) -> anyhow::Result<Executed> {
    anyhow::ensure!(
        !interrupt::requested(),
        "interrupted before anything was run"
    );
    let folder = case.tip.session.folder();
    let scene = Scene {
        name: &folder,
        tip: case.tip,
        before: case.recorded.commit,
        tree: case.recorded.tree,
        reach: Reach::AsConfigured,
    };
    let left = perform(project, &scene, &approved, user)?;
    left.pages.keep_in(&mut case.draft.artifacts);
    let mut run = Run {
        case,
        approved,
        left,
    };

    let _lock = enter_at_last(project, user)?;
    if run.left.ran.interruption.is_none() && !interrupt::requested() {
        match bring(project, &run) {
            Err(error) if !is_recorded(project, &run.case)? => run.left.ran.cut_short(&error),
            done => return done,
        }
    }
    if interrupt::requested() {
        run.left.ran.interruption = Some(Interruption::User);
    }
    interrupted::record(project, run, user)
}

/// Returns whether the session has gone on from the turn that the case began at.
fn is_recorded(project: &Project, case: &Case<'_>) -> anyhow::Result<bool> {
    let tip = project
        .repository
        .reference(&case.tip.session.reference())?;
    Ok(tip != Some(case.tip.commit))
}

/// Records what a plan did and brings it to the user's files. The caller holds the lock.
fn bring(project: &Project, run: &Run<'_>) -> anyhow::Result<Executed> {
    let Run {
        case,
        approved,
        left,
    } = run;
    let rolled_back = left.ran.failed && project.settings.on_failure == OnFailure::Rollback;
    let (base, tree) = if rolled_back {
        (case.recorded.commit, case.recorded.tree)
    } else {
        (left.taken.base, left.taken.tree)
    };
    let after = run.commit(project, base, tree)?;
    // A command may have changed the user's files too, and takes its time.
    let now = if case.recorded.is_fresh() && !runs_commands(approved) {
        case.recorded.clone()
    } else {
        project.record(case.tip, &super::forced(&approved.plan))?
    };
    let (files, overlaps) = match project.fit(case.recorded.tree, now.tree, tree)? {
        Fit::Clean(files) => (Some(files), Vec::new()),
        Fit::Overlap(paths, _) => (None, shown(&paths)),
    };

    let modifications = modifications(&case.judged.plan, approved, &case.judged.simulation);
    let writing = Writing {
        status: if left.ran.failed {
            Status::Failed
        } else {
            Status::Executed
        },
        plan: &approved.plan,
        approved: as_run(&case.judged.plan, approved),
        outcomes: &left.ran.outcomes,
        memos: if left.ran.failed {
            &[]
        } else {
            &approved.memos
        },
        interruption: None,
        modifications: &modifications,
        next: next_state(project, case, &left.ran.outcomes)?,
        workspace: Workspace {
            worktree: project.repository.worktree_name(),
            branch: Some(project.repository.branch_or_head()?),
            before: case.recorded.commit,
            after,
            synced: files.is_some(),
            overlaps,
        },
        repository_changes: left.taken.repository_changes.clone(),
        not_captured: union(&case.recorded.not_captured, &left.taken.not_captured),
    };
    let mut executed = finish(project, case, &writing, files.as_ref())?;
    executed.conclusion = writing.next.conclusion;
    executed.notes.extend(left_out(
        &[&case.recorded.not_captured, &case.tip.meta.not_captured],
        &left.taken.not_captured,
        "stays in the session's worktree",
    ));
    executed.outcomes.clone_from(&left.ran.outcomes);
    Ok(executed)
}

/// Takes the lock to record what a plan did, which is worth a longer wait than a command is.
fn enter_at_last(project: &Project, user: &mut dyn User) -> anyhow::Result<Lock> {
    for _ in 0..MAX_WAITS {
        match project.enter("execute", user) {
            Err(error)
                if matches!(error.downcast_ref(), Some(LockError::Busy { .. }))
                    && !interrupt::requested() =>
            {
                user.tell(Event::Warning(&format!(
                    "{error}; waiting to record what the plan did"
                )));
            }
            entered => return entered,
        }
    }
    project.enter("execute", user)
}

/// Records that the user did not want the plan.
pub(super) fn record_declined(
    project: &Project,
    mut case: Case<'_>,
    words: &str,
    user: &mut dyn User,
) -> anyhow::Result<Executed> {
    let next = transition::without_effects(&current(&case, &case.lists.turn(), &prompt_of(&case)));
    let _lock = project.enter("execute", user)?;
    if !words.trim().is_empty() {
        case.draft.artifacts.put("declined.txt", words);
    }
    let plan = case.judged.plan.clone();
    let outcomes: Vec<Outcome> = plan
        .actions
        .iter()
        .map(|_| Outcome::of(Ending::Skipped, "the user declined the plan"))
        .collect();
    let writing = Writing {
        status: Status::Declined,
        plan: &plan,
        approved: None,
        outcomes: &outcomes,
        memos: &[],
        interruption: None,
        modifications: &[],
        next,
        workspace: still(project, &case),
        repository_changes: Vec::new(),
        not_captured: case.recorded.not_captured.clone(),
    };
    let mut executed = finish(project, &case, &writing, None)?;
    executed.outcomes = outcomes;
    Ok(executed)
}

/// Joins what was left out of two snapshots.
fn union(before: &[NotCaptured], after: &[NotCaptured]) -> Vec<NotCaptured> {
    let new = after
        .iter()
        .filter(|left| before.iter().all(|known| known.path != left.path));
    before.iter().chain(new).cloned().collect()
}

/// Returns the workspace of a turn that changed nothing.
pub(super) fn still(project: &Project, case: &Case<'_>) -> Workspace {
    let here = case.recorded.commit;
    Workspace {
        worktree: project.repository.worktree_name(),
        branch: project.repository.branch_or_head().ok(),
        before: here,
        after: here,
        synced: true,
        overlaps: Vec::new(),
    }
}

/// Returns the turn that ends, as the transition sees it.
pub(super) fn current<'a>(
    case: &'a Case<'_>,
    context: &'a [context_list::Entry],
    prompt: &'a str,
) -> Current<'a> {
    Current {
        session: &case.tip.session,
        number: case.draft.meta.number,
        turn_id: case.draft.meta.turn_id,
        caller_turn_id: case.draft.meta.caller_turn_id,
        agent: &case.draft.meta.agent,
        system_prompt: prompt,
        context,
        // A piece of work goes to the model only with the answer to what it asked before.
        is_asked: case.draft.is_asked_by_user() || case.draft.meta.work.is_some(),
        question: case.question.as_deref(),
        requests: &case.requests,
    }
}

/// Returns the instructions of the turn that ends.
pub(super) fn prompt_of(case: &Case<'_>) -> String {
    case.draft.artifacts.text_or_empty(artifact::SYSTEM_PROMPT)
}

/// Returns the state after the run.
fn next_state(project: &Project, case: &Case<'_>, outcomes: &[Outcome]) -> anyhow::Result<Next> {
    let effects: Vec<Effect> = outcomes
        .iter()
        .filter_map(|outcome| outcome.effect.clone())
        .collect();
    let invoked = effects.iter().find_map(|effect| {
        if let Effect::Invoke { agent, .. } = effect {
            Some(agent)
        } else {
            None
        }
    });
    let invoked: Option<Agent> = invoked.map(|name| project.agent(name)).transpose()?;
    let (context, prompt) = (case.lists.turn(), prompt_of(case));
    Ok(transition::after_run(
        &current(case, &context, &prompt),
        &effects,
        &Others {
            invoked,
            caller: case.caller.clone(),
        },
    ))
}
