//! Carries out one task, or the fixes for a review, as turns of the change's session.
//!
//! The first line of a turn's message names the work. If a call is killed between the turn and its
//! entry in the change, the next call finds the finished turn by that line.

use super::OpenChange;
use super::ask::{Role, expand_template, render_documents};
use super::reopen::noted;
use crate::change::phase::ChangeStep;
use crate::change::review::{self, ReviewVerdict};
use crate::change::state::StepUsage;
use crate::change::store::Change;
use crate::change::tasks::{self, Task};
use crate::git::repository::Repository;
use crate::project::Project;
use crate::query::summary;
use crate::session::artifact;
use crate::session::meta::{MessageOrigin, RestoreCommand, Status};
use crate::session::turn::{Turn, commit_subject, restore_title};
use crate::text::context_list;
use crate::text::resource::Resource;
use crate::text::secret::redact;
use crate::workflow::context::message::{MessageCancelled, Unanswered, ask_for_answer};
use crate::workflow::context::requests;
use crate::workflow::execute::execute;
use crate::workflow::execute::options::ExecuteOptions;
use crate::workflow::execute::result::{DeclineReply, RecordedTurn, ReviewedPlan, TurnEnding};
use crate::workflow::lifecycle::create_session;
use crate::workflow::model::agents;
use crate::workflow::open_session::OpenSession;
use crate::workflow::plan;
use crate::workflow::user::{Notice, User};
use crate::workspace::drift::{NotBrought, find_unapplied, is_applied, left_by};
use crate::workspace::snapshot;
use crate::workspace::stack::Stacks;

const IMPLEMENTER: &str = include_str!("../../../prompts/change/implementer.md");
const AGENT: &str = "developer";
const MAX_TURNS: u32 = 6;

/// A task, or the fixes for a review.
pub(super) struct Work {
    pub step: ChangeStep,
    /// In the history: `1.2`, or `review 1`.
    pub about: String,
    pub title: String,
    pub notice: Notice,
    /// First line of the message. Identifies the turns.
    key: String,
    instructions: String,
    /// Added to the context.
    files: Vec<String>,
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
    /// An earlier call left the conflict, and the user has not decided it yet.
    NotBrought(NotBrought),
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
    /// The first open task, or else the fixes that the last review asks for. `None` if that review
    /// approves, was fixed since, or rejects the whole and the user has not said what to do.
    pub(super) fn next(change: &Change, has_message: bool) -> Option<Work> {
        let tasks = tasks::read(change.documents.text(tasks::FILE));
        let Some(task) = tasks.iter().find(|task| !task.is_done) else {
            return Work::fix(change, &tasks, has_message);
        };
        let (number, title) = (&task.number, &task.title);
        Some(Work {
            step: ChangeStep::Task,
            about: number.clone(),
            title: format!("Do {number}: {title}"),
            notice: Notice::TaskStarted {
                number: number.clone(),
                title: title.clone(),
            },
            key: format!("Task {number} of change {}", change.id),
            instructions: format!("## Task {number}: {title}\n\n{}", task.text),
            files: files_of([task], "CREATE"),
        })
    }

    fn fix(change: &Change, tasks: &[Task], has_message: bool) -> Option<Work> {
        if !is_fix_due(change, has_message) {
            return None;
        }

        let reviews = review::read(change.documents.text(review::FILE));
        let latest = review::latest(&reviews)?;
        let number = latest.iteration;
        Some(Work {
            step: ChangeStep::Fix,
            about: format!("review {number}"),
            title: format!("Fix what review {number} found"),
            notice: Notice::FixStarted(usize::try_from(number).unwrap_or(usize::MAX)),
            key: format!("Fix review {number} of change {}", change.id),
            instructions: format!(
                "## Review {number}: fix its issues\n\n{}",
                latest.body.trim()
            ),
            files: files_of(tasks, "DELETE"),
        })
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

fn files_of<'a>(tasks: impl IntoIterator<Item = &'a Task>, except: &str) -> Vec<String> {
    let files = tasks.into_iter().filter_map(|task| task.file.as_ref());
    files
        .filter(|(_, verb)| verb != except)
        .map(|(path, _)| path.clone())
        .collect()
}

/// Whether the last review requires a fix that was not made yet.
pub(super) fn is_fix_due(change: &Change, has_message: bool) -> bool {
    if change.is_rejected_by_review() {
        return has_message;
    }
    let Some((at, entry)) = change.last(ChangeStep::Review) else {
        return false;
    };
    let fix = change.last(ChangeStep::Fix);
    entry.verdict == Some(ReviewVerdict::NeedsRevision) && fix.is_none_or(|(fix, _)| fix < at)
}

/// No effect if the session exists.
pub(super) fn create_work_session(
    project: &Project,
    change: &Change,
    user: &mut dyn User,
) -> anyhow::Result<()> {
    let session = change.id.session();
    if !project.store().has(&session)? {
        let agent = agents::agent(project, AGENT)?;
        let transaction = project.enter("change", user)?;
        create_session(&transaction, project, &session, &agent)?;
    }

    Ok(())
}

pub(super) fn work(open: &mut OpenChange<'_>, work: &Work) -> anyhow::Result<Worked> {
    let model = open.role_model(Role::Implementer)?;
    let project = open.project;
    let mut user_message: Option<String> = None;
    for _ in 0..MAX_TURNS {
        // Checked first: an earlier call can have been killed between the turn and its entry in the
        // change, or the turn met edits of the user's.
        if let Some(worked) = find_earlier(project, &open.change, work)? {
            return Ok(worked);
        }

        match prepare(open, work, &model, user_message.take()) {
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
        let recorded = match execute(project, &options, open.user)? {
            ReviewedPlan::Undecided(_) => return Ok(Worked::Stopped(WorkStop::Undecided)),
            ReviewedPlan::Recorded(recorded) => recorded,
        };

        if must_stop(&recorded) {
            return Ok(Worked::Stopped(WorkStop::Turn(recorded)));
        }

        user_message = recorded.instead().map(ToOwned::to_owned);
    }

    let worked = find_earlier(project, &open.change, work)?;
    Ok(worked.unwrap_or(Worked::Stopped(WorkStop::Unfinished(MAX_TURNS))))
}

/// Unless a plan is waiting.
fn prepare(
    open: &mut OpenChange<'_>,
    work: &Work,
    model: &str,
    user_message: Option<String>,
) -> anyhow::Result<()> {
    let OpenChange {
        project,
        change,
        user,
        ..
    } = open;
    let session = change.id.session();
    let mut session = OpenSession::open(project, &session, "change", *user)?;
    let OpenSession { tip, draft, .. } = &mut session;
    // A plan that an earlier call made runs first; it was paid for. One of other work does not: a task
    // before it is open again.
    if draft.is_planned() && draft.meta.work.as_ref().is_none_or(|key| *key == work.key) {
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
    let is_own = draft.is_asked_by_user();
    let waiting = draft.message().filter(|_| is_own).map(|(text, _)| text);
    let waiting = waiting.filter(|text| !text.starts_with(&work.key));
    let user_message = match user_message.or(waiting) {
        Some(said) => Some(requests::keep_request(project, tip, draft, said)?),
        None => match requests::read_open_requests(project, tip, draft)? {
            Some(said) => Some(said),
            None => answer_to(tip, &project.repository, *user)?
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
    plan::plan_turn(session, &options, *user).map(|_| ())
}

/// A turn that is not recorded in the change yet, with the usage of all turns up to it. A result that
/// is not in the user's files stops the work until they decide on it.
fn find_earlier(project: &Project, change: &Change, work: &Work) -> anyhow::Result<Option<Worked>> {
    let tip = project.store().tip(&change.id.session())?;
    let noted = newest_noted(project, change);
    let (checkout, stacks) = (project.checkout(), Stacks::new(&project.repository));
    let now = || Ok(snapshot::snapshot(&checkout, &[])?.tree);
    let unapplied = find_unapplied(&checkout, &stacks, &tip, &now)?;
    if let Some(unapplied) = unapplied.filter(|unapplied| unapplied.turn > noted) {
        return Ok(Some(Worked::Stopped(WorkStop::NotBrought(unapplied))));
    }

    let mut restore: Option<Turn> = None;
    for turn in project.store().history(tip) {
        let turn = turn?;
        if turn.number() <= noted {
            break;
        }
        let is_restored = restore
            .as_ref()
            .is_some_and(|restore| went_to(restore, &turn));
        // It undid the turns after the one that it went to.
        if !is_restored && restore.as_ref().is_some_and(is_whole_restore) {
            continue;
        }
        if is_restored || turn.meta.restored.is_some() {
            restore = turn.meta.restored.is_some().then(|| turn.clone());
        }
        let is_work = turn.meta.status == Status::Executed && is_about(project, &turn, work)?;
        if !is_work || !worked(&project.repository, &turn)? {
            continue;
        }
        // A conflict in another worktree is settled there, or by a restore of its turn.
        let workspace = turn.meta.workspace.as_ref();
        if let Some(workspace) = workspace.filter(|ran| !stacks.ran_here(ran))
            && !is_restored
            && !is_applied(&stacks, &turn)?
        {
            return Ok(Some(Worked::Stopped(WorkStop::NotBrought(NotBrought {
                turn: turn.number(),
                files: workspace.overlaps.clone(),
            }))));
        }
        // A restore settles a conflict, even if the user keeps their side.
        if is_restored || left_by(&checkout, &stacks, &turn, &now)?.is_none() {
            let usage = usage_since(project, &turn, noted)?;
            return Ok(Some(Worked::Done(turn.number(), usage)));
        }
    }

    Ok(None)
}

fn is_whole_restore(turn: &Turn) -> bool {
    let restored = turn.meta.restored.as_ref();
    restored.is_some_and(|restored| restored.paths.is_empty())
}

/// Whether the turn is the one of its session that a restore went to.
fn went_to(restore: &Turn, turn: &Turn) -> bool {
    let Some(restored) = &restore.meta.restored else {
        return false;
    };
    // An undo or redo stays in its session.
    let is_own = restored.by != RestoreCommand::Restore
        || restore.title == commit_subject(&restore_title(turn, &restored.paths));
    restored.turn == turn.number() && is_own
}

/// The first line of the message names the work, and the heading of its instructions the task: a
/// change of this id can have been there before.
fn is_about(project: &Project, turn: &Turn, work: &Work) -> anyhow::Result<bool> {
    let words = words_of(project, turn)?;
    let heading = work.instructions.lines().next().map(redact);
    Ok(words.lines().next() == Some(work.key.as_str())
        && words.lines().any(|line| Some(redact(line)) == heading)
        && project.checkout().is_own_turn(turn)?)
}

fn newest_noted(project: &Project, change: &Change) -> u64 {
    let turns = noted(project, change).filter_map(|entry| entry.turn);
    turns.max().unwrap_or(0)
}

fn worked(repository: &Repository, turn: &Turn) -> anyhow::Result<bool> {
    if turn.conclusion(repository)?.is_some() {
        return Ok(true);
    }

    // What the user left out of it was not done.
    let text = turn.plan_as_run(repository)?.unwrap_or_default();
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
    let repository = &project.repository;
    let mut words = None;
    for turn in project.store().history(turn.clone()) {
        let turn = turn?;
        // An answer, as `teddy resume` sends it, belongs to the request before.
        if words.is_some() && turn.question(repository)?.is_none() {
            break;
        }
        // Feedback on a rejected plan, and "continue", belong to it, too.
        if turn.meta.origin != MessageOrigin::User {
            continue;
        }
        let text = turn.text(repository, artifact::USER_PROMPT)?;
        words = Some(text.unwrap_or_default());
        if turn.meta.work.is_some() {
            break;
        }
    }
    Ok(words.unwrap_or_default())
}

fn usage_since(project: &Project, tip: &Turn, noted: u64) -> anyhow::Result<Option<StepUsage>> {
    let mut sum: Option<StepUsage> = None;
    for turn in project.store().history(tip.clone()) {
        let turn = turn?;
        if turn.number() <= noted {
            break;
        }

        let cost = summary::turn_cost(&turn);
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
        if let Some(cost) = cost {
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
