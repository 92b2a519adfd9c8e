//! The review of a plan: decided on, and begun again where the user's files change under it.

use std::time::Instant;

use super::result::{RecordedTurn, ReviewedPlan, UndecidedPlan};
use super::{ExecuteOptions, Known, PlanInReview, decline, forced, open_case, record, reject};
use crate::plan::Plan;
use crate::session::meta::Approver;
use crate::workflow::at_work::{IN_REVIEW, RUNNING, note_activity};
use crate::workflow::confine;
use crate::workflow::judge;
use crate::workflow::judge::JudgeInput;
use crate::workflow::judge::resource;
use crate::workflow::judge::resource::look;
use crate::workflow::notice::Notice;
use crate::workflow::plan::Start;
use crate::workflow::project::Project;
use crate::workflow::user::{Approved, Decision, Event, ReviewRequest, User};
use crate::workspace::snapshot;

/// How often a review is begun again because the user's files changed under it.
const MAX_REVIEWS: u32 = 3;

/// Takes a plan through its review and everything after it; the session is locked.
pub(super) fn review_and_run(
    project: &Project,
    mut case: PlanInReview<'_>,
    options: &ExecuteOptions,
    user: &mut dyn User,
) -> anyhow::Result<ReviewedPlan> {
    for review_number in 1.. {
        // Where the files changed under the review, what no longer fits is the person's to leave
        // out.
        if case.earlier.is_none() && !case.judged.diagnostics().is_empty() {
            return turn_down(project, case, options, user);
        }

        note_activity(project, &case.tip.session, IN_REVIEW);
        let chosen = match review(project, &case, user)? {
            Decision::Quit => return Ok(undecided(case)),
            Decision::Skip(words) => {
                return decline::decline(project, case, words, user).map(recorded);
            }
            // Nothing that runs is nothing that was wanted, and nobody has to say it twice.
            Decision::Run(chosen) if chosen.is_empty() => {
                return decline::decline(project, case, Some(String::new()), user).map(recorded);
            }
            Decision::Run(chosen) => chosen,
        };
        // Nobody has looked at what no longer fits: it was approved beforehand.
        if !case.judged.diagnostics().is_empty() && !fits(project, &case, &chosen)? {
            return turn_down(project, case, options, user);
        }

        // The plan runs on what was reviewed in any case; an editor that saves all the time must
        // not keep it from running, as its saves are brought together with the result afterwards.
        if is_still_so(project, &mut case, &chosen)? || review_number == MAX_REVIEWS {
            case.draft.meta.approved_by = Some(approver(user, options));
            let session = case.tip.session.clone();
            note_activity(project, &session, RUNNING);
            let ran = record::run_and_record(project, case, chosen, user);
            note_activity(project, &session, "execute");
            return ran.map(recorded);
        }

        user.tell(Event::Notice(Notice::ChangedUnderReview));
        case = open_case(
            project,
            Start {
                tip: case.tip,
                draft: case.draft,
            },
            Known::Approved(chosen),
            user,
        )?;
    }

    unreachable!("the last review leads to a run")
}

/// Returns whether the user's files are as they were reviewed.
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
        case.recorded.seen = Instant::now();
    }
    Ok(same)
}

/// Returns who lets a plan run.
fn approver(user: &dyn User, options: &ExecuteOptions) -> Approver {
    match (user.approves_unseen(), options.yolo) {
        (false, _) => Approver::Person,
        (true, false) => Approver::Yes,
        (true, true) => Approver::Yolo,
    }
}

/// Says what is wrong with a plan, and records that it was rejected.
fn turn_down(
    project: &Project,
    case: PlanInReview<'_>,
    options: &ExecuteOptions,
    user: &mut dyn User,
) -> anyhow::Result<ReviewedPlan> {
    user.tell(Event::Rejected {
        file: options.file.as_ref().map(|file| file.name.as_str()),
        diagnostics: &options.placed(case.judged.diagnostics(), &case.judged.repaired),
    });
    reject::reject(project, case, options, user).map(recorded)
}

/// Returns whether what was chosen of a plan fits the user's files.
fn fits(project: &Project, case: &PlanInReview<'_>, chosen: &Approved) -> anyhow::Result<bool> {
    let plan = Plan {
        actions: chosen.running().cloned().collect(),
        memos: chosen.memos().cloned().collect(),
        ..chosen.plan.clone()
    };
    let ground = JudgeInput {
        tip: case.tip,
        tree: case.recorded.tree,
        lists: &case.lists,
        draft: &case.draft,
    };
    Ok(judge::simulate(project, &plan, &ground)?
        .diagnostics
        .is_empty())
}

/// Lets the user decide.
fn review(
    project: &Project,
    case: &PlanInReview<'_>,
    user: &mut dyn User,
) -> anyhow::Result<Decision> {
    let ground = JudgeInput {
        tip: case.tip,
        tree: case.recorded.tree,
        lists: &case.lists,
        draft: &case.draft,
    };
    let revise = |plan: &Plan| judge::simulate(project, plan, &ground);
    let place = resource::ResourceScope {
        tip: case.tip,
        artifacts: &case.draft.artifacts,
        tree: case.recorded.tree,
    };

    let proposal = ReviewRequest {
        session: case.tip.session.as_str(),
        turn: case.draft.meta.number,
        plan: &case.judged.plan,
        text: &case.judged.repaired.text,
        repair: &case.judged.repaired,
        simulation: &case.judged.simulation,
        confinement: &confine::confinement(project),
        revise: &revise,
        look: &|resource| look(project, &place, resource),
        earlier: case.earlier.as_ref(),
    };
    user.review(&proposal)
}

/// Returns what came of a plan whose turn is recorded.
fn recorded(turn: RecordedTurn) -> ReviewedPlan {
    ReviewedPlan::Recorded(Box::new(turn))
}

/// Returns what came of a review that the user left without a decision.
fn undecided(case: PlanInReview<'_>) -> ReviewedPlan {
    ReviewedPlan::Undecided(Box::new(UndecidedPlan {
        session: case.tip.session.clone(),
        turn: case.draft.meta.number,
        plan: case.judged.plan,
        drift: case.drift,
    }))
}
