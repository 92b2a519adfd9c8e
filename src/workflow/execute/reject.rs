//! Records an invalid plan as rejected, and sends it back to the model.

use super::ExecuteOptions;
use super::case::PlanInReview;
use super::result::{RecordedTurn, TurnEnding};
use super::turn::{EndedTurn, finish};
use crate::plan::diagnostic::Diagnostic;
use crate::session::artifact;
use crate::session::feedback;
use crate::session::meta::{MessageOrigin, Status};
use crate::session::transition;
use crate::session::turn::Turn;
use crate::workflow::judge::ASIDES;
use crate::workflow::model::choose::{self, NoModel};
use crate::workflow::notice::{NoReplan, Notice};
use crate::workflow::plan::{self, Start, WaitingPlan, plan_turn};
use crate::workflow::project::Project;
use crate::workflow::user::{Event, User};

/// Records the rejection. If requested and promising, asks the model for a corrected plan.
pub(super) fn reject(
    project: &Project,
    case: PlanInReview<'_>,
    options: &ExecuteOptions,
    user: &mut dyn User,
) -> anyhow::Result<RecordedTurn> {
    let session = case.tip.session.clone();
    let diagnostics = case.judged.simulation.diagnostics.clone();
    let in_doubt = is_in_doubt(&case);
    // The repaired plan no longer has the doubtful text.
    let reply = case.draft.artifacts.text(artifact::REPLY);
    let text = reply
        .filter(|_| in_doubt)
        .unwrap_or_else(|| case.draft.artifacts.text_or_empty(artifact::PLAN));
    let right = case.judged.simulation.right(&case.judged.plan);
    let outline = case.judged.outline.as_deref();
    let message = feedback::render(&feedback::Rejected {
        plan: &text,
        diagnostics: &diagnostics,
        outline,
        right: &right,
    });

    let question = case.draft.meta.question;
    let again = worth_asking(project, &case);
    let model = corrector(&case, options);

    let mut recorded = record(project, &case, &diagnostics, user)?;
    if !options.replan {
        return Ok(recorded);
    }

    if let Err(why) = again {
        user.tell(Event::Notice(Notice::NotReplanned(why)));
        return Ok(recorded);
    }

    let tip = project.store().tip(&session)?;
    recorded.ending = TurnEnding::Rejected {
        diagnostics,
        replanned: replan(
            project,
            &tip,
            message,
            ReplanRequest {
                model,
                question,
                user,
            },
        )?
        .map(Box::new),
        in_doubt,
    };
    Ok(recorded)
}

struct ReplanRequest<'a> {
    model: Option<String>,
    /// The plan is the answer to a question.
    question: bool,
    user: &'a mut dyn User,
}

fn record(
    project: &Project,
    case: &PlanInReview<'_>,
    diagnostics: &[Diagnostic],
    user: &mut dyn User,
) -> anyhow::Result<RecordedTurn> {
    let (context, prompt) = (case.lists.turn(), case.prompt(project)?);
    let next =
        transition::after_rejection(&case.current(&context, &prompt), &case.judged.mistaken());
    let transaction = project.enter("execute", user)?;
    let writing = EndedTurn {
        ending: TurnEnding::Rejected {
            diagnostics: diagnostics.to_vec(),
            replanned: None,
            in_doubt: is_in_doubt(case),
        },
        plan: &case.judged.plan,
        approved: None,
        memos: &[],
        modifications: &[],
        next,
        workspace: case.still(project),
        repository_changes: Vec::new(),
        not_captured: case.recorded.not_captured.clone(),
    };

    finish(&transaction, project, case, writing, None)
}

/// Returns whether words beside its commands are all that is wrong with a plan.
fn is_in_doubt(case: &PlanInReview<'_>) -> bool {
    let asides = case.judged.asides();
    !asides.is_empty() && case.judged.diagnostics() == asides
}

/// Returns whether the model can be asked to send a plan again without words beside its commands. It
/// is asked once.
pub(super) fn may_ask_about_asides(
    project: &Project,
    case: &PlanInReview<'_>,
    options: &ExecuteOptions,
) -> bool {
    let asked = case.draft.meta.origin == MessageOrigin::Validation
        && case.tip.meta.mistakes.iter().any(|name| name == ASIDES);
    let model = corrector(case, options).or_else(|| project.settings.model.clone());
    let has_model = model.is_some_and(|name| choose::model_settings(project, &name).is_ok());
    !asked && has_model && worth_asking(project, case).is_ok()
}

/// Returns the model that corrects a plan: the one that is named, or the one that wrote it.
fn corrector(case: &PlanInReview<'_>, options: &ExecuteOptions) -> Option<String> {
    let own = case.draft.meta.model.as_ref();
    let named = options.model.clone();
    named.or_else(|| own.map(|model| model.asked.clone()))
}

/// Returns why asking again is of no use, if it is not.
fn worth_asking(project: &Project, case: &PlanInReview<'_>) -> Result<(), NoReplan> {
    let max = project.settings.replan.max;
    if case.draft.meta.replans >= max {
        return Err(NoReplan::TooMany(case.draft.meta.replans.saturating_add(1)));
    }

    let before = &case.tip.meta.mistakes;
    let is_correction = case.draft.meta.origin == MessageOrigin::Validation;
    if is_correction
        && case.tip.meta.status == Status::Rejected
        && case
            .judged
            .mistakes()
            .iter()
            .any(|mistake| before.contains(mistake))
    {
        return Err(NoReplan::SameMistake);
    }

    Ok(())
}

fn replan(
    project: &Project,
    tip: &Turn,
    message: String,
    again: ReplanRequest<'_>,
) -> anyhow::Result<Option<WaitingPlan>> {
    let ReplanRequest {
        model,
        question,
        user,
    } = again;
    let draft = project.store().draft(tip)?;
    let wish = plan::PlanOptions {
        message: Some(message),
        model,
        origin: MessageOrigin::Validation,
        question,
        ..plan::PlanOptions::default()
    };

    match plan_turn(project, &wish, Start { tip, draft }, user) {
        Ok(planned) => Ok(Some(planned)),
        Err(error) if error.is::<NoModel>() => {
            user.tell(Event::Notice(Notice::NotReplanned(NoReplan::NoModel)));
            Ok(None)
        }
        Err(error) => {
            user.tell(Event::Notice(Notice::NotReplanned(NoReplan::Failed(
                format!("{error:#}"),
            ))));
            Ok(None)
        }
    }
}
