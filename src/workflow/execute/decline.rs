//! Declines a plan: records the user's reply and makes a new plan from it.

use super::result::{DeclineReply, ExecuteResult, RecordedTurn, ReviewedPlan, TurnEnding};
use super::{ExecuteOptions, PlanInReview, execute, execute_text, record};
use crate::host::interrupt;
use crate::session::artifact;
use crate::workflow::context::message::without_keys;
use crate::workflow::notice::Notice;
use crate::workflow::plan::{self, plan_next_turn};
use crate::workflow::project::Project;
use crate::workflow::user::{Event, Question, User};

/// Executes the given text or the waiting plan. If the user declines and says what they want
/// instead, makes a new plan.
pub fn execute_or_plan(
    project: &mut Project,
    text: Option<&str>,
    options: &ExecuteOptions,
    user: &mut dyn User,
) -> anyhow::Result<ExecuteResult> {
    let mut result = match text {
        Some(text) => execute_text(project, text, options, user)?,
        None => ExecuteResult::Reviewed(execute(project, options, user)?),
    };
    let ExecuteResult::Reviewed(ReviewedPlan::Recorded(recorded)) = &mut result else {
        return Ok(result);
    };
    let TurnEnding::Declined {
        reply: DeclineReply::Instead { replanned, .. },
        ..
    } = &mut recorded.ending
    else {
        return Ok(result);
    };

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

/// Records that the user declined the plan. What they want instead becomes the message of the next
/// turn.
pub(super) fn decline(
    project: &Project,
    case: PlanInReview<'_>,
    reason: Option<String>,
    user: &mut dyn User,
) -> anyhow::Result<RecordedTurn> {
    let reason = match reason {
        Some(reason) => Some(reason),
        None => user.ask(&Question::Instead {
            title: &case.validated.plan.title,
        })?,
    };
    anyhow::ensure!(
        !interrupt::requested(),
        "interrupted before the plan was declined; it is still waiting"
    );
    let reply = match reason.map(|reason| without_keys(reason, user)) {
        None => DeclineReply::Left,
        Some(reason) if reason.trim().is_empty() => DeclineReply::Nothing,
        Some(message) => DeclineReply::Instead {
            message,
            replanned: None,
        },
    };

    let mut recorded = record::record_declined(project, case, reply, user)?;
    if let Some(message) = recorded.instead() {
        let tip = project.store().tip(&recorded.session)?;
        let mut draft = project.store().draft(&tip)?;
        draft.artifacts.insert(artifact::USER_PROMPT, message);
        project.store().save_draft(&tip, &mut draft)?;
        // The message answers an open question too.
        recorded.question = None;
    }

    Ok(recorded)
}
