//! `execute`: validates the plan, asks for a review, runs it in the session's worktree, records the
//! turn, and applies the result to the user's files.
//!
//! The session is locked throughout, the repository only while files and refs change. Nothing is
//! applied before the turn is recorded.

mod capture;
pub mod comments;

pub mod prepare;
mod record;

pub mod result;
mod review;

pub(in crate::workflow) mod stage;

mod turn;

use anyhow::Context as _;

use self::result::{
    AnswerStatus, ExecuteResult, RecordedTurn, RefusedPlan, ReviewedPlan, TurnEnding,
};
use comments::CommentRequest;
use result::DeclineReply;

use crate::host::interrupt;
use crate::plan::Plan;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::reading::{self, Reading};
use crate::plan::repair::Repaired;
use crate::session::artifact;
use crate::session::name::SessionName;
use crate::text::diff::changed;
use crate::workflow::context::lists::lists;
use crate::workflow::context::message::without_keys;
use crate::workflow::context::requests;
use crate::workflow::execute::record::PlanInReview;
use crate::workflow::lifecycle::start_session;
use crate::workflow::model::agents;
use crate::workflow::plan::{self, Start, drop_question, keep_plan, plan_next_turn, read_reply};
use crate::workflow::project::{NoSession, Project};
use crate::workflow::trust;
use crate::workflow::user::Notice;
use crate::workflow::user::{Approved, Event, Question, User, report_drift, telling};
use crate::workflow::validation::{ValidationInput, validate_plan};
use crate::workspace::drift;
use crate::workspace::snapshot::{self, RecordedFiles};

#[derive(Debug, Clone, Default)]
pub struct ExecuteOptions {
    pub file: Option<PlanFile>,
    pub replan: bool,
    /// For the correction, instead of the plan's author.
    pub model: Option<String>,
    /// Turns follow each other without a review.
    pub yolo: bool,
    /// The caller asks the user the model's questions.
    pub leaves_question: bool,
    /// A recent snapshot from when the plan was made.
    pub recorded: Option<RecordedFiles>,
    /// Comments with which the plan is declined.
    pub comments: Vec<CommentRequest>,
}

impl ExecuteOptions {
    fn placed(&self, mistakes: &[Diagnostic], plan: &Repaired) -> Vec<Diagnostic> {
        match &self.file {
            Some(file) => file.in_file_lines(mistakes, &plan.text),
            None => mistakes.to_vec(),
        }
    }
}

/// Fails with [`NoPlan`], or with [`ForeignPlan`] if the plan came with someone else's refs.
pub fn execute(
    project: &Project,
    options: &ExecuteOptions,
    user: &mut dyn User,
) -> anyhow::Result<ReviewedPlan> {
    let session = project.session()?;
    let _session_lock = project.lock_session(&session, "execute")?;
    project.recover(user)?;

    let tip = project.store().tip(&session)?;
    let draft = project.store().draft(&tip)?;
    anyhow::ensure!(draft.is_planned(), NoPlan(session));
    anyhow::ensure!(
        trust::is_own_draft(project, &tip, &draft),
        ForeignPlan(session)
    );

    let start = Start { tip: &tip, draft };
    let case = open_case(
        project,
        start,
        ReviewBasis::Recorded(options.recorded.clone()),
        user,
    )?;
    finish(project, case, options, user)
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

    let _session_lock = project.lock_session(&session, "execute")?;
    project.recover(user)?;
    let tip = project.store().tip(&session)?;
    let draft = project.store().draft(&tip)?;
    // The plan is the user's own, so it needs no check of its origin.
    let case = adopt(project, Start { tip: &tip, draft }, text, reading, user)?;
    finish(project, case, options, user).map(ExecuteResult::Reviewed)
}

fn finish(
    project: &Project,
    case: PlanInReview<'_>,
    options: &ExecuteOptions,
    user: &mut dyn User,
) -> anyhow::Result<ReviewedPlan> {
    report_drift(&case.drift, case.tip.number(), user);
    let mut reviewed = review::review_and_run(project, case, options, user)?;
    if let ReviewedPlan::Recorded(recorded) = &mut reviewed
        && !options.leaves_question
    {
        ask_for_answer(project, recorded, user)?;
    }
    Ok(reviewed)
}

#[derive(Debug, thiserror::Error)]
#[error("no plan is waiting in session `{0}`")]
pub struct NoPlan(SessionName);

/// Came with someone else's refs and was not adopted.
#[derive(Debug, thiserror::Error)]
#[error("the plan waiting in session `{0}` was not made here")]
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
    let agent = agents::agent(project, &project.settings.agent.clone())?;
    let transaction = project.enter("new", user)?;
    let name = project.free_name(SessionName::from_title(title))?;
    start_session(&transaction, project, &name, &agent)?;
    user.report(Event::Notice(Notice::SessionStarted(name.clone())));
    Ok(name)
}

fn adopt<'a>(
    project: &Project,
    mut start: Start<'a>,
    text: &str,
    reading: Reading,
    user: &mut dyn User,
) -> anyhow::Result<PlanInReview<'a>> {
    // The draft can be waiting for the answer to a question, which must not change files. A plan of
    // the user's can.
    drop_question(project, start.tip, &mut start.draft)?;
    let paths = forced(&reading.plan);
    let mut case = validate_case(project, start, reading, &paths, None, user)?;
    case.draft.archive_answer();
    case.draft.begin();
    // The plan is no answer to this input.
    case.draft.artifacts.remove(artifact::INPUT);
    keep_plan(&mut case.draft, text, &case.validated);
    // Before the review: if it is aborted, the plan is still waiting.
    project.store().save_draft(case.tip, &mut case.draft)?;

    Ok(case)
}

enum ReviewBasis {
    /// A recent snapshot, if there is one.
    Recorded(Option<RecordedFiles>),
    /// The user's earlier decision.
    Approved(Approved),
}

fn open_case<'a>(
    project: &Project,
    start: Start<'a>,
    basis: ReviewBasis,
    user: &mut dyn User,
) -> anyhow::Result<PlanInReview<'a>> {
    let (approved, reusable) = match basis {
        ReviewBasis::Recorded(reusable) => (None, reusable),
        ReviewBasis::Approved(approved) => (Some(approved), None),
    };
    // Parse the raw reply again: the review must show which repairs were guesses.
    let text = start
        .draft
        .artifacts
        .text(artifact::REPLY)
        .unwrap_or_else(|| start.draft.artifacts.text_or_empty(artifact::PLAN));
    let reading = read_reply(start.tip, &start.draft, &text);
    let plan = approved.as_ref().map(|approved| &approved.plan);
    let paths = forced(plan.unwrap_or(&reading.plan));
    let mut case = validate_case(project, start, reading, &paths, reusable, user)?;

    // After a crash the draft can contain an unrepaired plan.
    keep_plan(&mut case.draft, &text, &case.validated);
    Ok(PlanInReview {
        earlier: approved,
        ..case
    })
}

/// Takes a snapshot with the ignored files at `paths`, and validates the plan. `reusable` replaces
/// the snapshot if it is fresh and the paths are unchanged.
fn validate_case<'a>(
    project: &Project,
    start: Start<'a>,
    reading: Reading,
    paths: &[Vec<u8>],
    reusable: Option<RecordedFiles>,
    user: &mut dyn User,
) -> anyhow::Result<PlanInReview<'a>> {
    let Start { tip, mut draft } = start;
    let repository = &project.repository;
    // Saves a scan right after planning. Paths of the plan are compared in any case.
    let reusable = reusable.filter(|files| files.is_fresh() && files.still_has(repository, paths));
    let recorded = match reusable {
        Some(files) => files,
        None => {
            let transaction = project.enter("execute", user)?;
            transaction
                .record(&project.checkout(), tip, paths)
                .context("recording your files")?
        }
    };
    snapshot::report_captured(
        &project.checkout(),
        tip,
        &mut draft,
        &recorded,
        &mut telling(user),
    )?;
    let lists = lists(&project.repository, &draft, recorded.tree)?;
    let caller = agents::caller(project, tip, draft.meta.caller_turn_id)?;
    let validated = validate_plan(
        project,
        reading,
        &ValidationInput {
            tip,
            tree: recorded.tree,
            lists: &lists,
            draft: &draft,
        },
    )?;

    Ok(PlanInReview {
        drift: drift::drift(&project.checkout(), tip, recorded.tree)?,
        question: tip.question(&project.repository)?,
        requests: requests::requests_with(project, tip, &draft)?,
        tip,
        draft,
        recorded,
        lists,
        caller,
        validated,
        earlier: None,
    })
}

/// Even if ignored: what the plan writes, and the memos.
pub(in crate::workflow) fn forced(plan: &Plan) -> Vec<Vec<u8>> {
    let targets = plan.targets().map(|path| path.as_str().as_bytes().to_vec());
    let mut paths: Vec<Vec<u8>> = targets.collect();
    if !plan.memos.is_empty() {
        paths.push(
            crate::workflow::context::teddy_files::MEMOS
                .as_bytes()
                .to_vec(),
        );
    }

    paths
}

fn ask_for_answer(
    project: &Project,
    recorded: &mut RecordedTurn,
    user: &mut dyn User,
) -> anyhow::Result<()> {
    let ran = matches!(recorded.ending, TurnEnding::Ran { .. });
    let Some(question) = recorded.question.as_mut().filter(|_| ran) else {
        return Ok(());
    };

    let prompt = Question::Answer {
        message: &question.text,
        takes_commands: false,
    };
    let answer = match user.ask(&prompt) {
        Ok(Some(answer)) => without_keys(answer, user),
        Ok(None) => {
            question.answer = AnswerStatus::UserLeft;
            return Ok(());
        }
        // Not an error: the question stays open, and the next message answers it.
        Err(_) => return Ok(()),
    };

    let tip = project.store().tip(&recorded.session)?;
    let mut draft = project.store().draft(&tip)?;
    draft.artifacts.insert(artifact::USER_PROMPT, answer);
    project.store().save_draft(&tip, &mut draft)?;
    question.answer = AnswerStatus::Answered;
    Ok(())
}

// Maps diagnostics of the repaired plan to lines of the user's file, where they are to be fixed.
// Repair can add and remove lines.

#[derive(Debug, Clone)]
pub struct PlanFile {
    /// As the user wrote it.
    pub name: String,
    pub text: String,
}

impl PlanFile {
    fn in_file_lines(&self, mistakes: &[Diagnostic], repaired: &str) -> Vec<Diagnostic> {
        let [own, plan] = [&self.text, repaired].map(|text| text.lines().collect::<Vec<_>>());
        let changed = changed(&own, &plan);
        let file_line = |line: usize| {
            let Some(at) = line.checked_sub(1) else {
                return 0;
            };
            let (mut old, mut new) = (0, 0);
            for (own, plan) in &changed {
                if at < plan.start {
                    break;
                }
                if at < plan.end {
                    // The line was changed or inserted by repair.
                    let inside = (at - plan.start).min(own.len().saturating_sub(1));
                    return (own.start + inside + 1).min(self.text.lines().count());
                }
                (old, new) = (own.end, plan.end);
            }
            old + (at - new) + 1
        };

        let of_own = |mistake: &Diagnostic| Diagnostic {
            line: file_line(mistake.line),
            ..mistake.clone()
        };
        mistakes.iter().map(of_own).collect()
    }
}

/// If the user declines and says what they want instead, makes a new plan.
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

/// What the user wants instead becomes the message of the next turn.
fn decline(
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(own: &str, repaired: &str, expected: &[(usize, usize)]) {
        let file = PlanFile {
            name: "a.md".to_owned(),
            text: own.to_owned(),
        };
        for &(line, expected) in expected {
            let mistakes = [Diagnostic::new(line, "wrong")];
            let actual = file.in_file_lines(&mistakes, repaired)[0].line;
            assert_eq!(actual, expected, "line {line} of {repaired:?}");
        }
    }

    #[test]
    fn a_mistake_has_the_line_of_the_file() {
        check("a\nb\n", "a\nb\n", &[(0, 0), (1, 1), (2, 2)]);
        check("Sure:\n\n# A\nb\n", "# A\nb\n", &[(1, 3), (2, 4)]);
        check(
            "# A\n```\nb\n",
            "# A\n````\nb\n````\n",
            &[(2, 2), (3, 3), (4, 3)],
        );
        check("a\nx\nb\nc\n", "a\nb\nnew\nc\n", &[(2, 3), (3, 4), (4, 4)]);
        check("", "a\n", &[(1, 0)]);
    }
}
