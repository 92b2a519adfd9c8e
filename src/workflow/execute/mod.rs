//! Executing a plan: validated, reviewed, run elsewhere, recorded, brought to the user's files.

mod capture;
mod case;
pub mod decline;
mod interrupted;
mod plan_file;
pub mod prepare;
mod record;
mod reject;
pub mod result;
mod review;
mod run;
pub(in crate::workflow) mod run_env;
pub(in crate::workflow) mod stage;
mod tools;
mod turn;

use anyhow::Context as _;

use self::case::PlanInReview;
pub use self::plan_file::PlanFile;
use self::result::{
    AnswerStatus, ExecuteResult, RecordedTurn, RefusedPlan, ReviewedPlan, TurnEnding,
};
use crate::plan::Plan;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::reading::{self, Reading};
use crate::plan::repair::Repaired;
use crate::session::artifact;
use crate::session::name::SessionName;
use crate::workflow::adopt;
use crate::workflow::context::lists::lists;
use crate::workflow::context::message::without_keys;
use crate::workflow::context::requests;
use crate::workflow::judge::JudgeInput;
use crate::workflow::judge::judge;
use crate::workflow::model::agents;
use crate::workflow::new::new;
use crate::workflow::notice::Notice;
use crate::workflow::plan::{Start, drop_question, keep_plan, read_reply};
use crate::workflow::project::{NoSession, Project};
use crate::workflow::user::{Approved, Event, Question, User, tell_drift, telling};
use crate::workspace::drift;
use crate::workspace::snapshot;
use crate::workspace::snapshot::RecordedFiles;

/// How a plan is executed.
#[derive(Debug, Clone, Default)]
pub struct ExecuteOptions {
    /// The file from which the plan was read.
    pub file: Option<PlanFile>,
    /// Whether a rejected plan goes back to the model.
    pub replan: bool,
    /// The model that is asked again.
    pub model: Option<String>,
    /// Whether turns follow each other without a person.
    pub yolo: bool,
    /// Whether somebody else asks the user what the model wants to know.
    pub leaves_question: bool,
    /// The user's files as they were recorded for the plan that waits.
    pub seen: Option<RecordedFiles>,
}

impl ExecuteOptions {
    /// Returns mistakes by the lines of the file from which the plan was read, if it was.
    fn placed(&self, mistakes: &[Diagnostic], plan: &Repaired) -> Vec<Diagnostic> {
        match &self.file {
            Some(file) => file.placed(mistakes, &plan.text),
            None => mistakes.to_vec(),
        }
    }
}

/// Executes the plan that waits in the session in use.
///
/// # Errors
/// If no plan waits, or the repository, the worktree or the files cannot be written.
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
        adopt::is_own_draft(project, &tip, &draft),
        ForeignPlan(session)
    );

    let start = Start { tip: &tip, draft };
    let case = open_case(project, start, Known::Seen(options.seen.clone()), user)?;
    finish(project, case, options, user)
}

/// Executes a plan from elsewhere in the session in use; without one, a session is started that is
/// named after the plan.
///
/// # Errors
/// If the repository, the worktree or the files cannot be written.
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

    // A text that is not a plan at all is the wrong file: nothing of it is recorded and no model is
    // asked to correct it.
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
    let case = adopt(project, Start { tip: &tip, draft }, (text, reading), user)?;
    finish(project, case, options, user).map(ExecuteResult::Reviewed)
}

/// Takes a plan that was judged through its review and its run.
fn finish(
    project: &Project,
    case: PlanInReview<'_>,
    options: &ExecuteOptions,
    user: &mut dyn User,
) -> anyhow::Result<ReviewedPlan> {
    tell_drift(&case.drift, case.tip.number(), user);
    let mut reviewed = review::review_and_run(project, case, options, user)?;
    if let ReviewedPlan::Recorded(recorded) = &mut reviewed
        && !options.leaves_question
    {
        ask_for_answer(project, recorded, user)?;
    }
    Ok(reviewed)
}

/// No plan waits.
#[derive(Debug, thiserror::Error)]
#[error("no plan is waiting in session `{0}`")]
pub struct NoPlan(SessionName);

/// The plan that waits came with somebody else's refs.
#[derive(Debug, thiserror::Error)]
#[error("the plan waiting in session `{0}` was not made here")]
pub struct ForeignPlan(pub SessionName);

/// Returns why a text from elsewhere is not executed.
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

/// Begins a session that is named after a plan from elsewhere.
fn begin(project: &mut Project, title: &str, user: &mut dyn User) -> anyhow::Result<SessionName> {
    let agent = agents::agent(project, &project.settings.agent.clone())?;
    let transaction = project.enter("new", user)?;
    let name = project.free_name(SessionName::from_title(title))?;
    new(&transaction, project, &name, &agent)?;
    user.tell(Event::Notice(Notice::SessionStarted(name.clone())));
    Ok(name)
}

/// Makes a plan from elsewhere the plan of the turn in progress, and judges it.
fn adopt<'a>(
    project: &Project,
    mut start: Start<'a>,
    (text, reading): (&str, Reading),
    user: &mut dyn User,
) -> anyhow::Result<PlanInReview<'a>> {
    // What is no answer of the model's may do more than tell.
    drop_question(project, start.tip, &mut start.draft)?;
    let paths = forced(&reading.plan);
    let mut case = judged_case(project, start, (reading, &paths), None, user)?;
    case.draft.set_answer_aside();
    case.draft.begin();
    case.draft.artifacts.remove(artifact::INPUT);
    keep_plan(&mut case.draft, text, &case.judged);
    project.store().save_draft(case.tip, &mut case.draft)?;

    Ok(case)
}

/// What is known of the draft's plan, and of the files, before it is judged.
enum Known {
    /// The files as they were recorded when the plan was made, perhaps.
    Seen(Option<RecordedFiles>),
    /// What the user had approved when their files changed.
    Approved(Approved),
}

/// Records the user's files and judges the draft's plan on them.
fn open_case<'a>(
    project: &Project,
    start: Start<'a>,
    known: Known,
    user: &mut dyn User,
) -> anyhow::Result<PlanInReview<'a>> {
    let (approved, seen) = match known {
        Known::Seen(seen) => (None, seen),
        Known::Approved(approved) => (Some(approved), None),
    };
    // The raw answer, where there is one: what repair had to assume must be in the review again.
    let text = start
        .draft
        .artifacts
        .text(artifact::REPLY)
        .unwrap_or_else(|| start.draft.artifacts.text_or_empty(artifact::PLAN));
    let reading = read_reply(&start.draft, &text);
    let plan = approved.as_ref().map(|approved| &approved.plan);
    let paths = forced(plan.unwrap_or(&reading.plan));
    let mut case = judged_case(project, start, (reading, &paths), seen, user)?;

    // What a crash kept was not repaired yet.
    keep_plan(&mut case.draft, &text, &case.judged);
    Ok(PlanInReview {
        earlier: approved,
        ..case
    })
}

/// Records the user's files, those at some paths even where git ignores them, and judges a plan on
/// them. Files that were seen just now, because the model answered at once, are looked at again
/// only at those paths.
fn judged_case<'a>(
    project: &Project,
    start: Start<'a>,
    (reading, paths): (Reading, &[Vec<u8>]),
    seen: Option<RecordedFiles>,
    user: &mut dyn User,
) -> anyhow::Result<PlanInReview<'a>> {
    let Start { tip, mut draft } = start;
    let repository = &project.repository;
    let seen = seen.filter(|seen| seen.is_fresh() && seen.still_has(repository, paths));
    let recorded = match seen {
        Some(seen) => seen,
        None => {
            let transaction = project.enter("execute", user)?;
            transaction
                .record(&project.checkout(), tip, paths)
                .context("recording your files")?
        }
    };
    snapshot::tell_captured(
        &project.checkout(),
        tip,
        &mut draft,
        &recorded,
        &mut telling(user),
    )?;
    let lists = lists(&project.repository, &draft, recorded.tree)?;
    let caller = agents::caller(project, tip, draft.meta.caller_turn_id)?;
    let judged = judge(
        project,
        reading,
        &JudgeInput {
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
        judged,
        earlier: None,
    })
}

/// Returns the paths that must be in the snapshots although git may ignore them: what the plan
/// writes, and the memos.
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

/// Asks the user for the answer that the plan waits for; it becomes the next turn's message.
fn ask_for_answer(
    project: &Project,
    recorded: &mut RecordedTurn,
    user: &mut dyn User,
) -> anyhow::Result<()> {
    let ran = matches!(recorded.ending, TurnEnding::Ran { .. });
    let Some(question) = recorded.question.as_mut().filter(|_| ran) else {
        return Ok(());
    };

    let asked = Question::Answer {
        message: &question.text,
        takes_commands: false,
    };
    let answer = match user.ask(&asked) {
        Ok(Some(answer)) => without_keys(answer, user),
        Ok(None) => {
            question.answer = AnswerStatus::UserLeft;
            return Ok(());
        }
        // The session waits with the question, and the next message answers it.
        Err(_) => return Ok(()),
    };

    let tip = project.store().tip(&recorded.session)?;
    let mut draft = project.store().draft(&tip)?;
    draft.artifacts.put(artifact::USER_PROMPT, answer);
    project.store().save_draft(&tip, &mut draft)?;
    question.answer = AnswerStatus::Answered;
    Ok(())
}
