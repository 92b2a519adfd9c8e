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
use crate::workflow::model::choose::{self, NoModel};
use crate::workflow::notice::{NoReplan, Notice};
use crate::workflow::plan::{self, Start, WaitingPlan, plan_turn};
use crate::workflow::project::Project;
use crate::workflow::user::{Event, User};
use crate::workflow::validation::ASIDES;

/// Records the rejection. If requested and promising, asks the model for a corrected plan.
pub(super) fn reject(
    project: &Project,
    case: PlanInReview<'_>,
    options: &ExecuteOptions,
    user: &mut dyn User,
) -> anyhow::Result<RecordedTurn> {
    let session = case.tip.session.clone();
    let diagnostics = case.validated.simulation.diagnostics.clone();
    let in_doubt = has_only_asides(&case);
    // The repaired plan no longer has the doubtful text.
    let reply = case.draft.artifacts.text(artifact::REPLY);
    let text = reply
        .filter(|_| in_doubt)
        .unwrap_or_else(|| case.draft.artifacts.text_or_empty(artifact::PLAN));
    let valid = case
        .validated
        .simulation
        .correct_actions(&case.validated.plan);
    let outline = case.validated.outline.as_deref();
    let message = feedback::render(&feedback::Rejected {
        plan: &text,
        diagnostics: &diagnostics,
        outline,
        correct_actions: &valid,
    });

    let question = case.draft.meta.question;
    let again = check_replan_useful(project, &case);
    let model = correcting_model(&case, options);

    let mut recorded = record_rejected(project, &case, &diagnostics, user)?;
    if !options.replan {
        return Ok(recorded);
    }

    if let Err(why) = again {
        user.report(Event::Notice(Notice::NotReplanned(why)));
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

fn record_rejected(
    project: &Project,
    case: &PlanInReview<'_>,
    diagnostics: &[Diagnostic],
    user: &mut dyn User,
) -> anyhow::Result<RecordedTurn> {
    let (context, prompt) = (case.lists.turn(), case.prompt(project)?);
    let next =
        transition::after_rejection(&case.current(&context, &prompt), &case.validated.mistaken());
    let transaction = project.enter("execute", user)?;
    let writing = EndedTurn {
        ending: TurnEnding::Rejected {
            diagnostics: diagnostics.to_vec(),
            replanned: None,
            in_doubt: has_only_asides(case),
        },
        plan: &case.validated.plan,
        approved: None,
        memos: &[],
        modifications: &[],
        next,
        workspace: case.unchanged_workspace(project),
        repository_changes: Vec::new(),
        not_captured: case.recorded.not_captured.clone(),
    };

    finish(&transaction, project, case, writing, None)
}

/// Returns whether words beside its commands are all that is wrong with a plan.
fn has_only_asides(case: &PlanInReview<'_>) -> bool {
    let asides = case.validated.asides();
    !asides.is_empty() && case.validated.diagnostics() == asides
}

/// Returns whether the model can be asked to send a plan again without words beside its commands. It
/// is asked once.
pub(super) fn may_ask_about_asides(
    project: &Project,
    case: &PlanInReview<'_>,
    options: &ExecuteOptions,
) -> bool {
    let was_asked = case.draft.meta.origin == MessageOrigin::Validation
        && case.tip.meta.mistakes.iter().any(|name| name == ASIDES);
    let model = correcting_model(case, options).or_else(|| project.settings.model.clone());
    let has_model = model.is_some_and(|name| choose::model_settings(project, &name).is_ok());
    !was_asked && has_model && check_replan_useful(project, case).is_ok()
}

/// Returns the model that corrects a plan: the one that is named, or the one that wrote it.
fn correcting_model(case: &PlanInReview<'_>, options: &ExecuteOptions) -> Option<String> {
    let own = case.draft.meta.model.as_ref();
    let requested = options.model.clone();
    requested.or_else(|| own.map(|model| model.asked.clone()))
}

/// Returns why asking again is of no use, if it is not.
fn check_replan_useful(project: &Project, case: &PlanInReview<'_>) -> Result<(), NoReplan> {
    let max = project.settings.replan.max;
    if case.draft.meta.replans >= max {
        return Err(NoReplan::TooMany(case.draft.meta.replans.saturating_add(1)));
    }

    let before = &case.tip.meta.mistakes;
    let is_correction = case.draft.meta.origin == MessageOrigin::Validation;
    if is_correction
        && case.tip.meta.status == Status::Rejected
        && case
            .validated
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
    let plan_options = plan::PlanOptions {
        message: Some(message),
        model,
        origin: MessageOrigin::Validation,
        question,
        ..plan::PlanOptions::default()
    };

    match plan_turn(project, &plan_options, Start { tip, draft }, user) {
        Ok(planned) => Ok(Some(planned)),
        Err(error) if error.is::<NoModel>() => {
            user.report(Event::Notice(Notice::NotReplanned(NoReplan::NoModel)));
            Ok(None)
        }
        Err(error) => {
            user.report(Event::Notice(Notice::NotReplanned(NoReplan::Failed(
                format!("{error:#}"),
            ))));
            Ok(None)
        }
    }
}
