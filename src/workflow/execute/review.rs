//! The review of a plan. It is repeated if the user's files change meanwhile.

use std::time::Instant;

use super::result::{RecordedTurn, ReviewedPlan, UndecidedPlan};
use super::{
    ExecuteOptions, PlanInReview, ReviewBasis, decline, forced, open_case, record, reject,
};
use crate::plan::Plan;
use crate::plan::diagnostic::Diagnostic;
use crate::session::meta::Approver;
use crate::workflow::at_work::{REVIEW_ACTIVITY, RUN_ACTIVITY, note_activity};
use crate::workflow::confine;
use crate::workflow::notice::Notice;
use crate::workflow::plan::Start;
use crate::workflow::project::Project;
use crate::workflow::user::{Approved, Decision, Event, ReviewRequest, User};
use crate::workflow::validation;
use crate::workflow::validation::ValidationInput;
use crate::workflow::validation::resource;
use crate::workflow::validation::resource::read_resource;
use crate::workspace::snapshot;

const MAX_REVIEWS: u32 = 3;

/// Reviews a plan and does everything after that. The caller holds the session lock.
pub(super) fn review_and_run(
    project: &Project,
    mut case: PlanInReview<'_>,
    options: &ExecuteOptions,
    user: &mut dyn User,
) -> anyhow::Result<ReviewedPlan> {
    for review_number in 1.. {
        // After a change of the files, the user can deselect the parts that don't apply any more.
        if case.earlier.is_none() && !case.validated.diagnostics().is_empty() {
            return turn_down(project, case, options, user);
        }

        // A person sees such words in the review; without one, the command must not run.
        if case.earlier.is_none() && user.approves_unseen() {
            let asides = case.validated.asides();
            if !asides.is_empty() {
                return doubt(project, case, (asides, options), user);
            }
        }

        note_activity(project, &case.tip.session, REVIEW_ACTIVITY);
        let chosen = match review(project, &case, user)? {
            Decision::Quit => return Ok(undecided(case, Vec::new())),
            Decision::Skip(reason) => {
                return decline::decline(project, case, reason, user).map(recorded);
            }
            // Deselecting everything is a refusal; don't ask for a reason.
            Decision::Run(chosen) if chosen.is_empty() => {
                return decline::decline(project, case, Some(String::new()), user).map(recorded);
            }
            Decision::Run(chosen) => chosen,
        };
        // Only without a review: `-y` approved a plan that does not apply any more.
        if !case.validated.diagnostics().is_empty() && !fits(project, &case, &chosen)? {
            return turn_down(project, case, options, user);
        }

        // The plan runs on the reviewed snapshot in any case. An editor that saves all the time
        // must not block it; its saves are merged with the result.
        if is_still_so(project, &mut case, &chosen)? || review_number == MAX_REVIEWS {
            case.draft.meta.approved_by = Some(approver(user, options));
            let session = case.tip.session.clone();
            note_activity(project, &session, RUN_ACTIVITY);
            let ran = record::run_and_record(project, case, chosen, user);
            note_activity(project, &session, "execute");
            return ran.map(recorded);
        }

        user.report(Event::Notice(Notice::ChangedUnderReview));
        case = open_case(
            project,
            Start {
                tip: case.tip,
                draft: case.draft,
            },
            ReviewBasis::Approved(chosen),
            user,
        )?;
    }

    unreachable!("the last review leads to a run")
}

fn is_still_so(
    project: &Project,
    case: &mut PlanInReview<'_>,
    chosen: &Approved,
) -> anyhow::Result<bool> {
    if case.recorded.is_fresh() {
        return Ok(true);
    }

    let same =
        snapshot::snapshot(&project.checkout(), &forced(&chosen.plan))?.tree == case.recorded.tree;
    if same {
        case.recorded.scanned_at = Instant::now();
    }
    Ok(same)
}

fn approver(user: &dyn User, options: &ExecuteOptions) -> Approver {
    match (user.approves_unseen(), options.yolo) {
        (false, _) => Approver::Person,
        (true, false) => Approver::Yes,
        (true, true) => Approver::Yolo,
    }
}

fn turn_down(
    project: &Project,
    case: PlanInReview<'_>,
    options: &ExecuteOptions,
    user: &mut dyn User,
) -> anyhow::Result<ReviewedPlan> {
    user.report(Event::Rejected {
        file: options.file.as_ref().map(|file| file.name.as_str()),
        diagnostics: &options.placed(case.validated.diagnostics(), &case.validated.repaired),
    });
    reject::reject(project, case, options, user).map(recorded)
}

/// Asks the model once to send a plan again without words beside its commands; after that, or if it
/// cannot be asked, the plan waits for a person.
fn doubt(
    project: &Project,
    mut case: PlanInReview<'_>,
    (asides, options): (Vec<Diagnostic>, &ExecuteOptions),
    user: &mut dyn User,
) -> anyhow::Result<ReviewedPlan> {
    // They have the lines of the reply, not of the repaired plan.
    user.report(Event::Rejected {
        file: options.file.as_ref().map(|file| file.name.as_str()),
        diagnostics: &asides,
    });
    if !options.replan || !reject::may_ask_about_asides(project, &case, options) {
        return Ok(undecided(case, asides));
    }

    case.validated.simulation.diagnostics = asides;
    reject::reject(project, case, options, user).map(recorded)
}

/// Returns whether what was chosen of a plan fits the user's files.
fn fits(project: &Project, case: &PlanInReview<'_>, chosen: &Approved) -> anyhow::Result<bool> {
    let plan = Plan {
        actions: chosen.running().cloned().collect(),
        memos: chosen.memos().cloned().collect(),
        ..chosen.plan.clone()
    };
    let input = ValidationInput {
        tip: case.tip,
        tree: case.recorded.tree,
        lists: &case.lists,
        draft: &case.draft,
    };
    Ok(validation::simulate(project, &plan, &input)?
        .diagnostics
        .is_empty())
}

fn review(
    project: &Project,
    case: &PlanInReview<'_>,
    user: &mut dyn User,
) -> anyhow::Result<Decision> {
    let input = ValidationInput {
        tip: case.tip,
        tree: case.recorded.tree,
        lists: &case.lists,
        draft: &case.draft,
    };
    let revise = |plan: &Plan| validation::simulate(project, plan, &input);
    let scope = resource::ResourceScope {
        tip: case.tip,
        artifacts: &case.draft.artifacts,
        tree: case.recorded.tree,
    };

    let proposal = ReviewRequest {
        session: case.tip.session.as_str(),
        turn: case.draft.meta.number,
        plan: &case.validated.plan,
        text: &case.validated.repaired.text,
        repair: &case.validated.repaired,
        simulation: &case.validated.simulation,
        confinement: &confine::confinement(project),
        revise: &revise,
        read_resource: &|resource| read_resource(project, &scope, resource),
        earlier: case.earlier.as_ref(),
    };
    user.review(&proposal)
}

fn recorded(turn: RecordedTurn) -> ReviewedPlan {
    ReviewedPlan::Recorded(Box::new(turn))
}

/// Returns the result for a plan without a decision, because of doubts or because the user left.
fn undecided(case: PlanInReview<'_>, doubts: Vec<Diagnostic>) -> ReviewedPlan {
    ReviewedPlan::Undecided(Box::new(UndecidedPlan {
        session: case.tip.session.clone(),
        turn: case.draft.meta.number,
        plan: case.validated.plan,
        drift: case.drift,
        doubts,
    }))
}
