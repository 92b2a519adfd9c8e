//! One piece of work on a change: a task, or the mending of a review's issues, as turns of its
//! session.
//!
//! What a turn worked on is said in the first line of its message, so that a call that was cut
//! short between a turn and its note in the change finds out what is done.

use super::ChangeOptions;
use super::ask::{Role, fill};
use super::material::agreed;
use crate::change::error::ChangeError;
use crate::change::store::Change;
use crate::change::tasks::{self, Task};
use crate::change::usage::StepUsage;
use crate::git::refs;
use crate::git::repository::Repository;
use crate::session::artifact;
use crate::session::meta::{MessageOrigin, Status};
use crate::session::turn::Turn;
use crate::text::context_list;
use crate::text::resource::Resource;
use crate::workflow::change::ask;
use crate::workflow::context::message::{MessageCancelled, Unanswered, ask_for_answer};
use crate::workflow::context::requests;
use crate::workflow::execute::result::{DeclineReply, RecordedTurn, ReviewedPlan, TurnEnding};
use crate::workflow::execute::{ExecuteOptions, execute};
use crate::workflow::model::agents;
use crate::workflow::new::start;
use crate::workflow::plan::{self, Start};
use crate::workflow::project::Project;
use crate::workflow::user::User;

/// What the implementer is told.
const IMPLEMENTER: &str = include_str!("../../../prompts/change/implementer.md");
/// The agent of a change's session.
const AGENT: &str = "developer";
/// How many turns one piece of work may take in one call.
const MAX_TURNS: u32 = 6;

/// A piece of work.
pub(super) struct Work {
    /// Its name, the first line of its message.
    pub key: String,
    /// What is to be done.
    pub words: String,
    /// The files that the model needs to see.
    pub files: Vec<String>,
}

/// How far a piece of work came.
pub(super) enum Worked {
    /// It is done, by the turn of this number.
    Done(u64, Option<StepUsage>),
    /// It stopped before that.
    Stopped(WorkStop),
}

/// Why a piece of work stopped before it was done.
#[derive(Debug, Clone)]
pub enum WorkStop {
    /// The user left, and nothing was planned.
    NothingPlanned,
    /// The model waits for the answer to this question.
    Question(String),
    /// The user left the plan undecided.
    Undecided,
    /// A turn ended in such a way that the user must look at it first.
    Turn(Box<RecordedTurn>),
    /// So many turns did not finish it.
    Unfinished(u32),
}

impl WorkStop {
    /// Returns the question for whose answer the model waits.
    pub fn question(&self) -> Option<&str> {
        match self {
            WorkStop::Question(question) => Some(question),
            WorkStop::Turn(recorded) => recorded.unanswered(),
            _ => None,
        }
    }
}

impl Work {
    /// Returns a task as work.
    pub(super) fn task(change: &Change, task: &Task) -> Work {
        let files = task
            .file
            .iter()
            .filter(|(_, verb)| verb != "CREATE")
            .map(|(path, _)| path.clone());
        Work {
            key: format!("Task {} of change {}", task.number, change.id),
            words: format!("## Task {}: {}\n\n{}", task.number, task.title, task.text),
            files: files.collect(),
        }
    }

    /// Returns the mending of a review's issues as work.
    pub(super) fn fix(change: &Change, number: usize, review: &str) -> Work {
        let tasks = crate::change::tasks::read(change.documents.text(crate::change::tasks::FILE));
        Work {
            key: format!("Fix review {number} of change {}", change.id),
            words: format!("## Review {number}: fix its issues\n\n{}", review.trim()),
            files: tasks
                .into_iter()
                .filter_map(|task| task.file)
                .filter(|(_, verb)| verb != "DELETE")
                .map(|(path, _)| path)
                .collect(),
        }
    }

    /// Returns the message of a turn; `said` is what the user answered or wants instead.
    fn message(&self, change: &Change, said: Option<&str>) -> String {
        let said = said
            .map(|text| format!("## What the user says\n\n{}\n\n", text.trim()))
            .unwrap_or_default();
        let head = fill(IMPLEMENTER, &change.id, "");
        format!(
            "{}\n\n{head}\n{said}{}\n\n# Documents of the change\n\n{}",
            self.key,
            self.words.trim(),
            agreed(&change.documents)
        )
    }
}

/// Makes the change's session the one of this call, and starts it where there is none.
pub(super) fn open_work(
    project: &mut Project,
    change: &Change,
    user: &mut dyn User,
) -> anyhow::Result<()> {
    let session = change.id.session();
    if refs::read(&project.repository, &session.reference())?.is_none() {
        let agent = agents::agent(project, AGENT)?;
        let transaction = project.enter("change", user)?;
        start(&transaction, project, &session, &agent)?;
    }

    project.work_on(&session);
    Ok(())
}

/// Does a piece of work, turn after turn, until it is done or something stops it.
pub(super) fn work(
    project: &mut Project,
    change: &Change,
    work: &Work,
    doing: (&ChangeOptions, &mut dyn User),
) -> anyhow::Result<Worked> {
    let (wish, user) = doing;
    let model = ask::role_model(project, Role::Implementer, wish)?;
    let mut said: Option<String> = None;
    for _ in 0..MAX_TURNS {
        if let Some((turn, taken)) = settled(project, change, work)? {
            return Ok(Worked::Done(turn, taken));
        }

        match prepare(project, (change, work), (&model, said.take()), user) {
            Err(error) if error.is::<MessageCancelled>() => {
                return Ok(Worked::Stopped(WorkStop::NothingPlanned));
            }
            Err(error) => match error.downcast() {
                Ok(Unanswered(question)) => {
                    return Ok(Worked::Stopped(WorkStop::Question(question)));
                }
                Err(error) => return Err(error),
            },
            Ok(()) => {}
        }

        let options = ExecuteOptions {
            replan: true,
            model: Some(model.clone()),
            ..ExecuteOptions::default()
        };
        let recorded = match execute(project, &options, user)? {
            ReviewedPlan::Undecided(_) => return Ok(Worked::Stopped(WorkStop::Undecided)),
            ReviewedPlan::Recorded(recorded) => recorded,
        };

        if must_stop(&recorded) {
            return Ok(Worked::Stopped(WorkStop::Turn(recorded)));
        }

        said = recorded.instead().map(ToOwned::to_owned);
    }

    match settled(project, change, work)? {
        Some((turn, taken)) => Ok(Worked::Done(turn, taken)),
        None => Ok(Worked::Stopped(WorkStop::Unfinished(MAX_TURNS))),
    }
}

/// Plans the next turn, unless a plan waits.
fn prepare(
    project: &Project,
    on: (&Change, &Work),
    asking: (&str, Option<String>),
    user: &mut dyn User,
) -> anyhow::Result<()> {
    let ((change, work), (model, said)) = (on, asking);
    let session = change.id.session();
    let _lock = project.lock_session(&session, "change")?;
    project.recover(user)?;
    let tip = project.store().tip(&session)?;
    let mut draft = project.store().draft(&tip)?;

    if draft.is_planned() {
        return Ok(());
    }

    let mut list = draft.artifacts.text_or_empty(artifact::TURN_CONTEXT);
    for resource in work
        .files
        .iter()
        .filter_map(|path| Resource::parse(path).ok())
    {
        list = context_list::add(&list, &context_list::ListEntry::Resource(resource));
    }

    draft.artifacts.put(artifact::TURN_CONTEXT, list);
    // The answer to a question of the model waits in the draft; a message that was cut short
    // says its work anew.
    let is_own = draft.is_asked_by_user() && !draft.is_planned();
    let waiting = draft.message().filter(|_| is_own).map(|(text, _)| text);
    let waiting = waiting.filter(|text| !text.starts_with(&work.key));
    let said = match said.or(waiting) {
        Some(said) => Some(requests::keep_said(project, &tip, &mut draft, said)?),
        None => match requests::said(project, &tip, &draft)? {
            Some(said) => Some(said),
            None => answer_to(&tip, &project.repository, user)?
                .map(|said| requests::keep_said(project, &tip, &mut draft, said))
                .transpose()?,
        },
    };

    let message = work.message(change, said.as_deref());
    let wish = plan::PlanOptions {
        message: Some(message),
        model: Some(model.to_owned()),
        work: Some(work.key.clone()),
        ..plan::PlanOptions::default()
    };
    plan::plan_turn(project, &wish, Start { tip: &tip, draft }, user).map(|_| ())
}

/// Returns the turn since the last note that finished a piece of work, and what all turns up to
/// it took.
fn settled(
    project: &Project,
    change: &Change,
    work: &Work,
) -> anyhow::Result<Option<(u64, Option<StepUsage>)>> {
    let tip = project.store().tip(&change.id.session())?;
    let noted = change
        .state
        .history
        .iter()
        .filter_map(|entry| entry.turn)
        .max()
        .unwrap_or(0);
    for turn in project.store().history(tip) {
        let turn = turn?;
        // What was undone since is not done.
        if turn.number() <= noted || turn.meta.status == Status::Restored {
            return Ok(None);
        }

        let about_it = words_of(project, &turn)?.lines().next() == Some(work.key.as_str());
        if turn.meta.status == Status::Executed && about_it && worked(&project.repository, &turn)? {
            return Ok(Some((turn.number(), taken_since(project, &turn, noted)?)));
        }
    }

    Ok(None)
}

/// Returns whether a turn ended the work: the model said so, or its plan did something and left
/// no question.
fn worked(repository: &Repository, turn: &Turn) -> anyhow::Result<bool> {
    if turn.conclusion(repository)?.is_some() {
        return Ok(true);
    }

    let text = turn.text(repository, artifact::PLAN)?.unwrap_or_default();
    let (plan, _) = crate::plan::parse(&text);
    Ok(plan
        .actions
        .iter()
        .any(|action| action.kind.changes_files())
        && !plan
            .actions
            .iter()
            .any(|action| action.kind.message().is_some()))
}

/// Returns the user's words that led to a turn: those of the turn itself, or of the one whose
/// plan it corrects.
fn words_of(project: &Project, turn: &Turn) -> anyhow::Result<String> {
    for turn in project.store().history(turn.clone()) {
        let turn = turn?;
        if turn.meta.origin == MessageOrigin::User {
            return Ok(turn
                .text(&project.repository, artifact::USER_PROMPT)?
                .unwrap_or_default());
        }
    }
    Ok(String::new())
}

/// Adds up what the turns after one took.
fn taken_since(project: &Project, tip: &Turn, noted: u64) -> anyhow::Result<Option<StepUsage>> {
    let mut sum: Option<StepUsage> = None;
    for turn in project.store().history(tip.clone()) {
        let turn = turn?;
        if turn.number() <= noted {
            break;
        }

        let Some(used) = turn.meta.model else {
            continue;
        };
        let sum = sum.get_or_insert_with(|| StepUsage {
            model: used.asked.clone(),
            ..StepUsage::default()
        });
        sum.calls += 1;
        sum.tokens_in += used.tokens_in;
        sum.tokens_out += used.tokens_out;
        if let Some(cost) = used.cost {
            sum.cost = Some(sum.cost.unwrap_or_default() + cost);
        }
    }

    Ok(sum)
}

/// Returns whether the work cannot go on by itself after a turn.
fn must_stop(recorded: &RecordedTurn) -> bool {
    let is_settled = match &recorded.ending {
        TurnEnding::Ran { .. } => true,
        TurnEnding::Interrupted { .. } => false,
        TurnEnding::Rejected { replanned, .. } => replanned.is_some(),
        TurnEnding::Declined { reply, .. } => matches!(reply, DeclineReply::Instead { .. }),
    };
    !is_settled || !recorded.overlaps.is_empty() || recorded.unanswered().is_some()
}

/// Returns the user's answer to what the model asked in the newest turn, if it did.
fn answer_to(
    tip: &Turn,
    repository: &Repository,
    user: &mut dyn User,
) -> anyhow::Result<Option<String>> {
    match tip.question(repository)? {
        Some(question) => ask_for_answer(question, user).map(Some),
        None => Ok(None),
    }
}

/// Stops where tasks are open.
pub(super) fn require_done(change: &Change) -> Result<(), ChangeError> {
    let open = tasks::read(change.documents.text(tasks::FILE))
        .iter()
        .filter(|task| !task.done)
        .count();
    if open == 0 {
        Ok(())
    } else {
        Err(ChangeError::OpenTasks {
            id: change.id.clone(),
            open,
        })
    }
}
