//! Carries out one task, or the fixes for a review, as turns of the change's session.
//!
//! The first line of a turn's message names the work. If a call is killed between the turn and its
//! entry in the change, the next call finds the finished turn by that line.

use super::ChangeOptions;
use super::ask::{Role, expand_template};
use crate::change::state::StepUsage;
use crate::change::store::Change;
use crate::change::store::ChangeError;
use crate::change::tasks::{self, Task};
use crate::git::refs;
use crate::git::repository::Repository;
use crate::project::Project;
use crate::session::artifact;
use crate::session::meta::{MessageOrigin, Status};
use crate::session::turn::Turn;
use crate::text::context_list;
use crate::text::resource::Resource;
use crate::workflow::change::ask;
use crate::workflow::change::ask::render_documents;
use crate::workflow::context::message::{MessageCancelled, Unanswered, ask_for_answer};
use crate::workflow::context::requests;
use crate::workflow::execute::execute;
use crate::workflow::execute::options::ExecuteOptions;
use crate::workflow::execute::result::{DeclineReply, RecordedTurn, ReviewedPlan, TurnEnding};
use crate::workflow::lifecycle::create_session;
use crate::workflow::model::agents;
use crate::workflow::open_session::OpenSession;
use crate::workflow::plan;
use crate::workflow::user::User;

const IMPLEMENTER: &str = include_str!("../../../prompts/change/implementer.md");
const AGENT: &str = "developer";
const MAX_TURNS: u32 = 6;

pub(super) struct Work {
    /// First line of the message. Identifies the turns.
    pub key: String,
    pub instructions: String,
    /// Added to the context.
    pub files: Vec<String>,
}

pub(super) enum Worked {
    /// Number of the turn.
    Done(u64, Option<StepUsage>),
    Stopped(WorkStop),
}

#[derive(Debug, Clone)]
pub enum WorkStop {
    /// The user left before a plan was made.
    NothingPlanned,
    /// Has no answer yet.
    Question(String),
    /// The user left without deciding on the plan.
    Undecided,
    /// Needs the user, for example after a failure or a conflict.
    Turn(Box<RecordedTurn>),
    /// Number of turns.
    Unfinished(u32),
}

impl WorkStop {
    pub fn question(&self) -> Option<&str> {
        match self {
            WorkStop::Question(question) => Some(question),
            WorkStop::Turn(recorded) => recorded.unanswered(),
            _ => None,
        }
    }
}

impl Work {
    pub(super) fn task(change: &Change, task: &Task) -> Work {
        let files = task
            .file
            .iter()
            .filter(|(_, verb)| verb != "CREATE")
            .map(|(path, _)| path.clone());
        Work {
            key: format!("Task {} of change {}", task.number, change.id),
            instructions: format!("## Task {}: {}\n\n{}", task.number, task.title, task.text),
            files: files.collect(),
        }
    }

    pub(super) fn fix(change: &Change, number: usize, review: &str) -> Work {
        let tasks = crate::change::tasks::read(change.documents.text(crate::change::tasks::FILE));
        Work {
            key: format!("Fix review {number} of change {}", change.id),
            instructions: format!("## Review {number}: fix its issues\n\n{}", review.trim()),
            files: tasks
                .into_iter()
                .filter_map(|task| task.file)
                .filter(|(_, verb)| verb != "DELETE")
                .map(|(path, _)| path)
                .collect(),
        }
    }

    /// `user_message` is the user's answer, or what they want instead.
    fn message(&self, change: &Change, user_message: Option<&str>) -> String {
        let preamble = user_message
            .map(|text| format!("## What the user says\n\n{}\n\n", text.trim()))
            .unwrap_or_default();
        let head = expand_template(IMPLEMENTER, &change.id, "");
        format!(
            "{}\n\n{head}\n{preamble}{}\n\n# Documents of the change\n\n{}",
            self.key,
            self.instructions.trim(),
            render_documents(&change.documents)
        )
    }
}

/// For this call. Creates the session if necessary.
pub(super) fn open_work(
    project: &mut Project,
    change: &Change,
    user: &mut dyn User,
) -> anyhow::Result<()> {
    let session = change.id.session();
    if refs::read(&project.repository, &session.reference())?.is_none() {
        let agent = agents::agent(project, AGENT)?;
        let transaction = project.enter("change", user)?;
        create_session(&transaction, project, &session, &agent)?;
    }

    project.work_on(&session);
    Ok(())
}

pub(super) fn work(
    project: &mut Project,
    change: &Change,
    work: &Work,
    doing: (&ChangeOptions, &mut dyn User),
) -> anyhow::Result<Worked> {
    let (change_options, user) = doing;
    let model = ask::role_model(project, Role::Implementer, change_options)?;
    let mut user_message: Option<String> = None;
    for _ in 0..MAX_TURNS {
        // Checked first: an earlier call can have been killed between the turn and its entry in the
        // change.
        if let Some((turn, usage)) = find_finished_turn(project, change, work)? {
            return Ok(Worked::Done(turn, usage));
        }

        match prepare(project, (change, work), (&model, user_message.take()), user) {
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

        user_message = recorded.instead().map(ToOwned::to_owned);
    }

    match find_finished_turn(project, change, work)? {
        Some((turn, usage)) => Ok(Worked::Done(turn, usage)),
        None => Ok(Worked::Stopped(WorkStop::Unfinished(MAX_TURNS))),
    }
}

/// Unless a plan is waiting.
fn prepare(
    project: &Project,
    on: (&Change, &Work),
    request: (&str, Option<String>),
    user: &mut dyn User,
) -> anyhow::Result<()> {
    let ((change, work), (model, user_message)) = (on, request);
    let session = change.id.session();
    let mut session = OpenSession::open(project, &session, "change", user)?;
    let OpenSession { tip, draft, .. } = &mut session;
    // A plan that an earlier call made runs first; it was paid for.
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

    draft.artifacts.insert(artifact::TURN_CONTEXT, list);
    // The draft can contain the user's answer to a question. It can also contain the message of an
    // interrupted plan, which starts with the key and is written again.
    let is_own = draft.is_asked_by_user() && !draft.is_planned();
    let waiting = draft.message().filter(|_| is_own).map(|(text, _)| text);
    let waiting = waiting.filter(|text| !text.starts_with(&work.key));
    let user_message = match user_message.or(waiting) {
        Some(said) => Some(requests::keep_request(project, tip, draft, said)?),
        None => match requests::read_open_requests(project, tip, draft)? {
            Some(said) => Some(said),
            None => answer_to(tip, &project.repository, user)?
                .map(|said| requests::keep_request(project, tip, draft, said))
                .transpose()?,
        },
    };

    let message = work.message(change, user_message.as_deref());
    let options = plan::PlanOptions {
        message: Some(message),
        model: Some(model.to_owned()),
        work: Some(work.key.clone()),
        ..plan::PlanOptions::default()
    };
    plan::plan_turn(session, &options, user).map(|_| ())
}

/// A turn that is not recorded in the change yet, with the usage of all turns up to it.
fn find_finished_turn(
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
        // A restore undid the turns before it.
        if turn.number() <= noted || turn.meta.status == Status::Restored {
            return Ok(None);
        }

        // The first line of the message names the work.
        let about_it = words_of(project, &turn)?.lines().next() == Some(work.key.as_str());
        if turn.meta.status == Status::Executed && about_it && worked(&project.repository, &turn)? {
            return Ok(Some((turn.number(), usage_since(project, &turn, noted)?)));
        }
    }

    Ok(None)
}

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

fn words_of(project: &Project, turn: &Turn) -> anyhow::Result<String> {
    for turn in project.store().history(turn.clone()) {
        let turn = turn?;
        // Feedback on a rejected plan, and "continue", belong to the request before.
        if turn.meta.origin == MessageOrigin::User {
            return Ok(turn
                .text(&project.repository, artifact::USER_PROMPT)?
                .unwrap_or_default());
        }
    }
    Ok(String::new())
}

fn usage_since(project: &Project, tip: &Turn, noted: u64) -> anyhow::Result<Option<StepUsage>> {
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
        sum.tokens_in += used.tokens_in.unwrap_or(0);
        sum.tokens_out += used.tokens_out.unwrap_or(0);
        if let Some(cost) = used.cost {
            sum.cost = Some(sum.cost.unwrap_or_default() + cost);
        }
    }

    Ok(sum)
}

fn must_stop(recorded: &RecordedTurn) -> bool {
    let is_settled = match &recorded.ending {
        TurnEnding::Ran { .. } => true,
        TurnEnding::Interrupted { .. } => false,
        TurnEnding::Rejected { replanned, .. } => replanned.is_some(),
        TurnEnding::Declined { reply, .. } => matches!(reply, DeclineReply::Instead { .. }),
    };
    !is_settled || !recorded.overlaps.is_empty() || recorded.unanswered().is_some()
}

/// `None` if there is no question.
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

pub(super) fn require_done(change: &Change) -> Result<(), ChangeError> {
    let open = tasks::read(change.documents.text(tasks::FILE))
        .iter()
        .filter(|task| !task.is_done)
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
