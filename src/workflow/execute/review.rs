//! The review of a plan. It is repeated if the user's files change meanwhile, up to `MAX_REVIEWS`
//! times.

use std::time::Instant;

use super::result::{RecordedTurn, ReviewedPlan, TurnEnding, UndecidedPlan};
use super::turn::{EndedTurn, finish};
use super::{ExecuteOptions, PlanInReview, ReviewBasis, comments, forced, open_case, record};
use crate::config::settings::ReadApproval;
use crate::plan::Plan;
use crate::plan::action::Action;
use crate::plan::diagnostic::Diagnostic;
use crate::session::meta::{Approver, MessageOrigin, Status};
use crate::session::turn::Turn;
use crate::session::{artifact, feedback, transition};
use crate::workflow::model::choose::{self, NoModel};
use crate::workflow::plan::{self, Start, WaitingPlan, plan_turn};
use crate::workflow::project::Project;
use crate::workflow::project::{REVIEW_ACTIVITY, RUN_ACTIVITY, note_activity};
use crate::workflow::user::{Approved, Decision, Event, ReviewRequest, User, WithoutActions};
use crate::workflow::user::{NoReplan, Notice};
use crate::workflow::validation::review_content;
use crate::workflow::validation::review_content::read_resource;
use crate::workflow::validation::{self, ASIDES, ValidationInput};
use crate::workflow::{confine, execute};
use crate::workspace::snapshot;

const MAX_REVIEWS: u32 = 3;

/// The caller holds the session lock.
pub(super) fn review_and_run(
    project: &Project,
    mut case: PlanInReview<'_>,
    options: &ExecuteOptions,
    user: &mut dyn User,
) -> anyhow::Result<ReviewedPlan> {
    if !options.comments.is_empty() {
        return comments::request_changes(project, case, &options.comments, user).map(recorded);
    }
    for review_number in 1.. {
        // After a change of the files, the user can deselect the parts that don't apply any more.
        if case.earlier.is_none() && !case.validated.diagnostics().is_empty() {
            return turn_down(project, case, options, user);
        }

        // A person sees such words in the review; without one, the command must not run.
        if case.earlier.is_none() && user.approves_unseen() {
            let asides = case.validated.asides();
            if !asides.is_empty() {
                return doubt(project, case, asides, options, user);
            }
        }

        let decision = match needs_no_approval(project, &case, user) {
            true => approve_reads(&case, user),
            false => {
                note_activity(project, &case.tip.session, REVIEW_ACTIVITY);
                review(project, &case, user)?
            }
        };
        let chosen = match decision {
            Decision::Quit => return Ok(undecided(case, Vec::new())),
            Decision::Skip(reason) => {
                return execute::decline(project, case, reason, user).map(recorded);
            }
            // Deselecting everything is a refusal; don't ask for a reason.
            Decision::Run(chosen) if chosen.is_empty() => {
                return execute::decline(project, case, Some(String::new()), user).map(recorded);
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
            let approver = match needs_no_approval(project, &case, user) {
                true => Approver::Reads,
                false => approver(user, options),
            };
            case.draft.meta.approved_by = Some(approver);
            case.draft.meta.network = granted(&chosen);
            let session = case.tip.session.clone();
            note_activity(project, &session, RUN_ACTIVITY);
            let messages = chosen
                .running()
                .all(|action| action.kind.message().is_some());
            // The message itself is shown after the turn.
            let ran = match approver == Approver::Reads && messages {
                true => record::run_and_record(project, case, chosen, &mut WithoutActions(user)),
                false => record::run_and_record(project, case, chosen, user),
            };
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

/// Returns the numbers of the actions to which the user granted the network.
fn granted(chosen: &Approved) -> Vec<usize> {
    let actions = chosen.plan.actions.iter().zip(1..);
    let granted = actions.filter(|(action, _)| {
        let execute = action.kind.command();
        execute.is_some_and(|execute| execute.network)
    });
    let numbers = granted.map(|(_, number)| number);
    numbers
        .filter(|number| chosen.actions[number - 1])
        .collect()
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

/// Returns whether a plan runs without approval: a prose answer, and, unless the user wants to
/// review them, a plan that only reads files of the project or tells something.
fn needs_no_approval(project: &Project, case: &PlanInReview<'_>, user: &dyn User) -> bool {
    if case.validated.prose.is_some() {
        return true;
    }
    let is_auto = project.settings.review.reads == ReadApproval::Auto && !user.approves_unseen();
    let (plan, limits) = (&case.validated.plan, project.limits());
    let is_harmless = |action: &Action| {
        // What a tracked file with such a name contains must not reach a provider unseen.
        let path = action.kind.worktree_path();
        let is_secret = path.is_some_and(|path| limits.is_secret(path.as_str().as_bytes()));
        action.kind.is_informational() && !is_secret
    };
    let is_same = case.earlier.as_ref().is_none_or(|e| e.modified.is_empty());
    is_auto && is_same && plan.memos.is_empty() && plan.actions.iter().all(is_harmless)
}

fn approve_reads(case: &PlanInReview<'_>, user: &mut dyn User) -> Decision {
    let plan = &case.validated.plan;
    let is_told = case.earlier.is_none();
    if is_told
        && plan
            .actions
            .iter()
            .any(|action| action.kind.message().is_none())
    {
        user.report(Event::Notice(Notice::OnlyReads(plan.title.clone())));
    }
    Decision::Run(Approved::all(plan))
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
    let unseen = case.validated.unseen();
    let is_shown = options.replan
        && check_replan_useful(project, &case).is_ok()
        && has_correcting_model(project, &case, options);
    match unseen.is_empty() || !is_shown {
        true => user.report(Event::Rejected {
            file: options.file.as_ref().map(|file| file.name.as_str()),
            diagnostics: &options.placed(case.validated.diagnostics(), &case.validated.repaired),
        }),
        false => user.report(Event::Notice(Notice::ShowingFiles(unseen))),
    }
    reject(project, case, options, user).map(recorded)
}

/// Asks the model once to send the plan again without text next to its commands. Otherwise the plan
/// waits for a user.
fn doubt(
    project: &Project,
    mut case: PlanInReview<'_>,
    asides: Vec<Diagnostic>,
    options: &ExecuteOptions,
    user: &mut dyn User,
) -> anyhow::Result<ReviewedPlan> {
    // The diagnostics have the lines of the reply, not of the repaired plan.
    user.report(Event::Rejected {
        file: options.file.as_ref().map(|file| file.name.as_str()),
        diagnostics: &asides,
    });
    if !options.replan || !may_ask_about_asides(project, &case, options) {
        return Ok(undecided(case, asides));
    }

    case.validated.simulation.diagnostics = asides;
    reject(project, case, options, user).map(recorded)
}

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
    let scope = review_content::ResourceScope {
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
        comments: &comments::earlier_comments(project, case)?,
    };
    user.review(&proposal)
}

fn recorded(turn: RecordedTurn) -> ReviewedPlan {
    ReviewedPlan::Recorded(Box::new(turn))
}

/// The user left, or there are doubts.
fn undecided(case: PlanInReview<'_>, doubts: Vec<Diagnostic>) -> ReviewedPlan {
    ReviewedPlan::Undecided(Box::new(UndecidedPlan {
        session: case.tip.session.clone(),
        turn: case.draft.meta.number,
        plan: case.validated.plan,
        drift: case.drift,
        doubts,
    }))
}

/// If requested and useful, asks the model for a corrected plan.
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
        unseen: &case.validated.unseen(),
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
    let request = ReplanRequest {
        model,
        question,
        user,
    };
    let replanned = replan(project, &tip, message, request)?;
    recorded.ending = TurnEnding::Rejected {
        diagnostics,
        has_failed: replanned.is_none(),
        replanned: replanned.map(Box::new),
        in_doubt,
    };
    Ok(recorded)
}

struct ReplanRequest<'a> {
    model: Option<String>,
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
            has_failed: false,
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

/// Nothing but text next to commands is wrong.
fn has_only_asides(case: &PlanInReview<'_>) -> bool {
    let asides = case.validated.asides();
    !asides.is_empty() && case.validated.diagnostics() == asides
}

/// The model is asked once.
pub(super) fn may_ask_about_asides(
    project: &Project,
    case: &PlanInReview<'_>,
    options: &ExecuteOptions,
) -> bool {
    let was_asked = case.draft.meta.origin == MessageOrigin::Validation
        && case.tip.meta.mistakes.iter().any(|name| name == ASIDES);
    let has_model = has_correcting_model(project, case, options);
    !was_asked && has_model && check_replan_useful(project, case).is_ok()
}

fn has_correcting_model(
    project: &Project,
    case: &PlanInReview<'_>,
    options: &ExecuteOptions,
) -> bool {
    let model = correcting_model(case, options).or_else(|| project.settings.model.clone());
    model.is_some_and(|name| choose::model_settings(project, &name).is_ok())
}

/// Returns the model that corrects a plan: the one that is named, or the one that wrote it.
fn correcting_model(case: &PlanInReview<'_>, options: &ExecuteOptions) -> Option<String> {
    let own = case.draft.meta.model.as_ref();
    let requested = options.model.clone();
    requested.or_else(|| own.map(|model| model.asked.clone()))
}

/// Fails if asking again is useless.
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
