//! `execute`: validates the plan, asks for a review, runs it in the session's worktree, records the
//! turn, and applies the result to the user's files.
//!
//! The session is locked throughout, the repository only while files and refs change. Nothing is
//! applied before the turn is recorded.

mod capture;
pub mod comments;
pub mod options;
pub(in crate::workflow) mod planned;
pub mod prepare;
mod record;
mod rejection;
pub mod result;
mod review;
pub(in crate::workflow) mod stage;
mod turn;

use self::options::ExecuteOptions;
use self::planned::PlannedTurn;
use self::result::{
    AnswerStatus, DeclineReply, ExecuteResult, RecordedTurn, RefusedPlan, ReviewedPlan, TurnEnding,
};
use self::review::Reviewed;
use crate::plan::reading::{self, Reading};
use crate::project::{NoSession, Project};
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::workflow::context::message::keep_in_draft;
use crate::workflow::lifecycle::{create_titled, current_name};
use crate::workflow::open_session::OpenSession;
use crate::workflow::plan::{self, plan_next_turn};
use crate::workflow::user::{Event, Notice, Question, User, report_drift};

/// Fails with [`NoPlan`], or with [`ForeignPlan`] if the plan came with someone else's refs.
pub fn execute(
    project: &Project,
    options: &ExecuteOptions,
    user: &mut dyn User,
) -> anyhow::Result<ReviewedPlan> {
    let session = OpenSession::current(project, "execute", user)?;
    let OpenSession { tip, draft, .. } = &session;
    anyhow::ensure!(draft.is_planned(), NoPlan(session.name().clone()));
    anyhow::ensure!(
        project.journal().owns_draft(&tip.session, draft),
        ForeignPlan(session.name().clone())
    );

    let planned = PlannedTurn::of_draft(session, None, options.recorded.clone(), user)?;
    finish(planned, options, user)
}

/// Without a current session, starts one named after the plan.
pub fn execute_text(
    project: &mut Project,
    text: &str,
    options: &ExecuteOptions,
    user: &mut dyn User,
) -> anyhow::Result<ExecuteResult> {
    let reading = reading::read(text);
    let session = match project.session() {
        Err(error) if error.is::<NoSession>() => {
            if !reading.diagnostics.is_empty() {
                return Ok(ExecuteResult::Refused(refused(reading, None, options)));
            }
            begin(project, &reading.plan.title, user)?
        }
        session => session?,
    };

    // A text without a plan is probably the wrong file. Do not record it, and do not ask a model to
    // correct it.
    if !reading.is_plan {
        return Ok(ExecuteResult::Refused(refused(
            reading,
            Some(session),
            options,
        )));
    }

    let session = OpenSession::open(project, &session, "execute", user)?;
    // The plan is the user's own, so it needs no check of its origin.
    let planned = PlannedTurn::of_text(session, text, reading, user)?;
    finish(planned, options, user).map(ExecuteResult::Reviewed)
}

/// From the plan to the turn: the user reviews it, it runs, and its turn is recorded and published.
fn finish(
    planned: PlannedTurn<'_>,
    options: &ExecuteOptions,
    user: &mut dyn User,
) -> anyhow::Result<ReviewedPlan> {
    let project = planned.session.project;
    report_drift(&planned.drift, planned.session.tip.number(), user);
    let mut recorded = match planned.review(options, user)? {
        Reviewed::Approved(approved) => approved.run(user)?.record(user)?,
        Reviewed::Ended(turn) => *turn,
        Reviewed::Undecided(plan) => return Ok(ReviewedPlan::Undecided(plan)),
    };
    if !options.leaves_question {
        ask_for_answer(project, &mut recorded, user);
    }
    Ok(ReviewedPlan::Recorded(Box::new(recorded)))
}

#[derive(Debug, thiserror::Error)]
#[error("no plan is waiting in session `{0}`")]
pub struct NoPlan(SessionName);

/// Came with someone else's refs and was not adopted.
#[derive(Debug, thiserror::Error)]
#[error("the plan waiting in session `{0}` is not recorded as yours")]
pub struct ForeignPlan(pub SessionName);

fn refused(
    reading: Reading,
    session: Option<SessionName>,
    options: &ExecuteOptions,
) -> RefusedPlan {
    RefusedPlan {
        session,
        diagnostics: options.placed(&reading.diagnostics, &reading.repaired),
        plan: reading.plan,
    }
}

fn begin(project: &mut Project, title: &str, user: &mut dyn User) -> anyhow::Result<SessionName> {
    let (name, _) = create_titled(project, title, "new", user)?;
    project.use_session(&name)?;
    user.report(Event::Notice(Notice::SessionStarted(name.clone())));
    Ok(name)
}

fn ask_for_answer(project: &Project, recorded: &mut RecordedTurn, user: &mut dyn User) {
    let ran = matches!(recorded.ending, TurnEnding::Ran { .. });
    let Some(question) = recorded.question.as_mut().filter(|_| ran) else {
        return;
    };

    let prompt = Question::Answer {
        message: &question.text,
        turn_of_loop: None,
    };
    let answer = match user.ask(&prompt) {
        Ok(answer) => answer.filter(|answer| !answer.trim().is_empty()),
        // Not an error: the question stays open, and the next message answers it.
        Err(_) => return,
    };
    let Some(answer) = answer else {
        question.answer = AnswerStatus::UserLeft;
        return;
    };

    let is_kept = keep_answer(project, recorded, answer, user).unwrap_or_else(|error| {
        // The turn is recorded, even if its session is gone.
        user.report(Event::Notice(Notice::DraftNotKept(format!("{error:#}"))));
        false
    });
    if let Some(question) = recorded.question.as_mut().filter(|_| is_kept) {
        question.answer = AnswerStatus::Answered;
    }
}

/// Returns whether the answer is kept. Other processes can have renamed or continued the session since
/// the question was asked.
fn keep_answer(
    project: &Project,
    recorded: &mut RecordedTurn,
    answer: String,
    user: &mut dyn User,
) -> anyhow::Result<bool> {
    let turn = Turn::read(&project.repository, &recorded.session, recorded.commit)?;
    recorded.session = current_name(project, &turn, user)?;
    let mut session = OpenSession::open(project, &recorded.session, "execute", user)?;
    keep_in_draft(&mut session, answer, user)
}

/// If the user declines and says what they want instead, makes a new plan. `mention` adds the files
/// that this message names.
pub fn execute_or_plan(
    project: &mut Project,
    text: Option<&str>,
    options: &ExecuteOptions,
    user: &mut dyn User,
    mention: &dyn Fn(&Project, &str),
) -> anyhow::Result<ExecuteResult> {
    let mut result = match text {
        Some(text) => execute_text(project, text, options, user)?,
        None => ExecuteResult::Reviewed(execute(project, options, user)?),
    };
    let ExecuteResult::Reviewed(ReviewedPlan::Recorded(recorded)) = &mut result else {
        return Ok(result);
    };
    if let Some(text) = recorded.typed_instead() {
        mention(project, text);
    }
    let TurnEnding::Declined {
        reply: DeclineReply::Instead { replanned, .. },
        ..
    } = &mut recorded.ending
    else {
        return Ok(result);
    };

    // A plan from a file is the user's: no model is asked instead. The message is in the draft.
    if text.is_some() {
        return Ok(result);
    }

    // `plan` takes the message from the draft, where `decline` saved it.
    let plan_options = plan::PlanOptions {
        model: options.model.clone(),
        ..plan::PlanOptions::default()
    };
    match plan_next_turn(project, &plan_options, user) {
        Ok(planned) => *replanned = Some(Box::new(planned)),
        Err(error) => user.report(Event::Notice(Notice::NoPlanInstead(format!("{error:#}")))),
    }

    Ok(result)
}
