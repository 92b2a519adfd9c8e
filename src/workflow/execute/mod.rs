//! Executing a plan: validated, reviewed, run elsewhere, recorded, brought to the user's files.

mod capture;
mod case;
pub mod decline;
mod interrupted;
pub mod prepare;
mod record;
mod reject;
mod review;
mod run;
pub(in crate::workflow) mod run_env;
pub(in crate::workflow) mod stage;
mod tools;
mod turn;

use anyhow::Context as _;

use self::case::Case;
use crate::git::object::CommitId;
use crate::plan::Plan;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::reading;
use crate::plan::run::{Interruption, Outcome};
use crate::session::artifact;
use crate::session::meta::Status;
use crate::session::name::SessionName;
use crate::workflow::adopt;
use crate::workflow::context::lists::lists;
use crate::workflow::context::message::without_keys;
use crate::workflow::context::requests;
use crate::workflow::judge::Ground;
use crate::workflow::judge::judge;
use crate::workflow::model::agents;
use crate::workflow::new::new;
use crate::workflow::plan::{Planned, Start, keep_plan};
use crate::workflow::project::{NoSession, Project};
use crate::workflow::user::{Approved, Event, Question, User, telling};
use crate::workspace::drift;
use crate::workspace::drift::Drift;
use crate::workspace::snapshot;

/// What is wanted of an execution.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// A plan from elsewhere; the draft's without it.
    pub plan: Option<String>,
    /// Whether a rejected plan goes back to the model.
    pub replan: bool,
    /// The model that is asked again.
    pub model: Option<String>,
    /// Whether turns follow each other without a person.
    pub yolo: bool,
}

/// What came of an execution.
#[derive(Debug, Clone, Default)]
pub struct Executed {
    /// The session; empty where none was begun.
    pub session: String,
    /// The turn.
    pub turn: u64,
    /// The turn's commit; nothing where nothing was recorded.
    pub commit: Option<CommitId>,
    /// How the turn ended; nothing where the user left it as it was.
    pub status: Option<Status>,
    /// The workspace commit before.
    pub before: Option<CommitId>,
    /// The workspace commit after.
    pub after: Option<CommitId>,
    /// Whether the result is in the user's files.
    pub synced: bool,
    /// Where it meets the user's own edits.
    pub overlaps: Vec<String>,
    /// What the user must be told about files that were not simply written.
    pub notes: Vec<String>,
    /// The plan.
    pub plan: Plan,
    /// What each action came to.
    pub outcomes: Vec<Outcome>,
    /// Every mistake of a rejected plan.
    pub diagnostics: Vec<Diagnostic>,
    /// What cut the run short: nothing of it is in the user's files, and the plan waits again.
    pub interruption: Option<Interruption>,
    /// The plan that was made instead.
    pub replanned: Option<Planned>,
    /// What the user wants instead of a declined plan.
    pub instead: Option<String>,
    /// What the model asks the user after it.
    pub question: Option<String>,
    /// What became of a question to the user: the model's, or what to do instead.
    pub asked: Option<Asked>,
    /// What the model said when it called the work done.
    pub conclusion: Option<String>,
    /// How far the user's files were from the turn before, if that was looked at.
    pub drift: Option<Drift>,
}

impl Executed {
    /// Returns the question for whose answer the model waits.
    pub fn unanswered(&self) -> Option<&str> {
        let open = self.asked != Some(Asked::Answered) && self.instead.is_none();
        self.question.as_deref().filter(|_| open)
    }
}

/// What became of a question to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// It is answered; the answer is the next turn's message.
    Answered,
    /// The user left instead.
    Left,
    /// Nobody could be asked.
    Nobody,
}

/// Executes a plan in the session in use; without one, a session is begun that is named after the
/// plan.
///
/// # Errors
/// Where no plan waits, or the repository, the worktree or the files cannot be written.
pub fn execute(
    project: &mut Project,
    wish: &Wish,
    user: &mut dyn User,
) -> anyhow::Result<Executed> {
    let session = match (project.session(), &wish.plan) {
        (Err(error), Some(text)) if error.is::<NoSession>() => match begin(project, text, user)? {
            Ok(session) => session,
            Err(rejected) => return Ok(*rejected),
        },
        (session, _) => session?,
    };
    if let Some(refused) = wish.plan.as_deref().and_then(refuse) {
        return Ok(Executed {
            session: session.to_string(),
            ..refused
        });
    }
    let _session_lock = project.lock_session(&session, "execute")?;
    project.recover(user)?;
    let tip = project.store().tip(&session)?;
    let start = Start {
        tip: &tip,
        draft: project.store().draft(&tip)?,
    };
    let case = match &wish.plan {
        Some(text) => adopt(project, start, text, user)?,
        None => {
            anyhow::ensure!(start.draft.is_planned(), NoPlan(session));
            anyhow::ensure!(
                adopt::is_own_draft(project, &tip, &start.draft),
                ForeignPlan(session)
            );
            open_case(project, start, None, user)?
        }
    };
    let drift = drift::tell_drift(
        &project.checkout(),
        &tip,
        case.recorded.tree,
        &mut telling(user),
    )?;
    let mut executed = review::go(project, case, wish, user)?;
    executed.drift = Some(drift);
    executed.asked = executed
        .asked
        .or(answer(project, &tip.session, &executed, user)?);
    Ok(executed)
}

/// No plan waits.
#[derive(Debug, thiserror::Error)]
#[error("no plan is waiting in session `{0}`")]
pub struct NoPlan(SessionName);

/// The plan that waits came with somebody else's refs.
#[derive(Debug, thiserror::Error)]
#[error("the plan waiting in session `{0}` was not made here")]
pub struct ForeignPlan(pub SessionName);

/// Returns what is wrong with a text that is not a plan at all. Nothing of it is recorded and no
/// model is asked to correct it: it is the wrong file.
fn refuse(text: &str) -> Option<Executed> {
    let reading::Reading {
        plan,
        diagnostics,
        is_plan,
        ..
    } = reading::read(text);
    (!is_plan).then(|| Executed {
        plan,
        diagnostics,
        status: Some(Status::Rejected),
        ..Executed::default()
    })
}

/// Begins a session for a plan from elsewhere, if the plan is one.
fn begin(
    project: &mut Project,
    text: &str,
    user: &mut dyn User,
) -> anyhow::Result<Result<SessionName, Box<Executed>>> {
    let reading::Reading {
        plan, diagnostics, ..
    } = reading::read(text);
    if !diagnostics.is_empty() {
        return Ok(Err(Box::new(Executed {
            plan,
            diagnostics,
            status: Some(Status::Rejected),
            ..Executed::default()
        })));
    }
    let agent = agents::agent(project, &project.settings.agent.clone())?;
    let transaction = project.enter("new", user)?;
    let name = project.free_name(SessionName::from_title(&plan.title))?;
    new(&transaction, project, &name, &agent)?;
    user.tell(Event::Note(&format!("Started session {name}.")));
    Ok(Ok(name))
}

/// Makes a plan from elsewhere the plan of the turn in progress, and judges it.
fn adopt<'a>(
    project: &Project,
    start: Start<'a>,
    text: &str,
    user: &mut dyn User,
) -> anyhow::Result<Case<'a>> {
    let plan = reading::read(text).plan;
    let mut case = judged_case(project, start, Reading { text, plan: &plan }, user)?;
    case.draft.set_answer_aside();
    case.draft.begin();
    case.draft.artifacts.remove(artifact::INPUT);
    keep_plan(&mut case.draft, text, &case.judged);
    project.store().save_draft(case.tip, &mut case.draft)?;
    Ok(case)
}

/// Records the user's files and judges the draft's plan on them.
fn open_case<'a>(
    project: &Project,
    start: Start<'a>,
    approved: Option<Approved>,
    user: &mut dyn User,
) -> anyhow::Result<Case<'a>> {
    let written = start.draft.artifacts.text_or_empty(artifact::PLAN);
    // The raw answer, where there is one: what repair had to assume must be in the review again.
    let text = start
        .draft
        .artifacts
        .text(artifact::REPLY)
        .unwrap_or_else(|| written.clone());
    let plan = approved.as_ref().map_or_else(
        || crate::plan::parse(&written).0,
        |approved| approved.plan.clone(),
    );
    let mut case = judged_case(
        project,
        start,
        Reading {
            text: &text,
            plan: &plan,
        },
        user,
    )?;
    // What a crash kept was not repaired yet.
    keep_plan(&mut case.draft, &text, &case.judged);
    Ok(Case {
        earlier: approved,
        ..case
    })
}

/// A plan's text, and what it says.
struct Reading<'a> {
    /// The text.
    text: &'a str,
    /// The plan.
    plan: &'a Plan,
}

/// Records the user's files and judges a plan on them.
fn judged_case<'a>(
    project: &Project,
    start: Start<'a>,
    reading: Reading<'_>,
    user: &mut dyn User,
) -> anyhow::Result<Case<'a>> {
    let Start { tip, mut draft } = start;
    let recorded = {
        let transaction = project.enter("execute", user)?;
        transaction
            .record(&project.checkout(), tip, &forced(reading.plan))
            .context("recording your files")?
    };
    snapshot::tell_captured(
        &project.repository,
        tip,
        &mut draft,
        &recorded,
        &mut telling(user),
    )?;
    let lists = lists(&project.repository, &draft, recorded.tree)?;
    let caller = agents::caller(project, tip, draft.meta.caller_turn_id)?;
    let judged = judge(
        project,
        reading.text,
        &Ground {
            tip,
            tree: recorded.tree,
            lists: &lists,
        },
    )?;
    Ok(Case {
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
fn answer(
    project: &Project,
    session: &SessionName,
    executed: &Executed,
    user: &mut dyn User,
) -> anyhow::Result<Option<Asked>> {
    let ran = matches!(executed.status, Some(Status::Executed | Status::Failed));
    let question = executed.question.as_deref();
    let Some(message) = question.filter(|_| ran && executed.interruption.is_none()) else {
        return Ok(None);
    };
    let answer = match user.ask(&Question::Answer { message }) {
        Ok(Some(answer)) => without_keys(answer, user),
        Ok(None) => return Ok(Some(Asked::Left)),
        // The session waits with the question, and the next message answers it.
        Err(_) => return Ok(Some(Asked::Nobody)),
    };
    let tip = project.store().tip(session)?;
    let mut draft = project.store().draft(&tip)?;
    draft.artifacts.put(artifact::USER_PROMPT, answer);
    project.store().save_draft(&tip, &mut draft)?;
    Ok(Some(Asked::Answered))
}
