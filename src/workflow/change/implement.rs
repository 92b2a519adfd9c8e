//! The workflow `impl`: implements each open task, then alternates reviews and fixes.
//!
//! Resumable: checked tasks are not done again, and a review is fixed at most once.

use serde::Serialize;

use super::challenge::require_usable;
use super::review::{last_review, review_locked};
use super::work::{Work, WorkStop, Worked};
use super::{ChangeOptions, ChangeStep, allow, now};
use crate::change::id::ChangeId;
use crate::change::phase::{ChangeEvent as Happened, ChangePhase};
use crate::change::review::Issues;
use crate::change::review::ReviewVerdict;
use crate::change::state::ChangeEntry;
use crate::change::state::StepUsage;
use crate::change::store::Change;
use crate::change::store::next_step;
use crate::change::tasks;
use crate::project::Project;
use crate::workflow::change;
use crate::workflow::change::open_change;
use crate::workflow::change::work;
use crate::workflow::change::work::work;
use crate::workflow::context::message::keep_message;
use crate::workflow::user::Notice;
use crate::workflow::user::{Event, User};

#[derive(Debug, Clone, Serialize)]
pub struct Implemented {
    pub change: ChangeId,
    pub phase: ChangePhase,
    pub done: usize,
    pub tasks: usize,
    /// In this call.
    pub reviews: u32,
    /// In this call.
    pub fixes: u32,
    /// In this call.
    pub verdict: Option<ReviewVerdict>,
    pub issues: Issues,
    /// `None` if the implementation did not stop early.
    #[serde(skip)]
    pub stopped: Option<ImplementStop>,
    /// Suggested command.
    pub next: String,
}

#[derive(Debug, Clone)]
pub enum ImplementStop {
    Task {
        number: String,
        why: WorkStop,
    },
    Fix {
        /// Of the review that asked for it.
        review: usize,
        why: WorkStop,
    },
    /// The review still finds problems.
    TooManyRounds(u32),
    /// As a whole.
    ReviewRejects,
}

impl ImplementStop {
    pub fn work(&self) -> Option<&WorkStop> {
        match self {
            ImplementStop::Task { why, .. } | ImplementStop::Fix { why, .. } => Some(why),
            ImplementStop::TooManyRounds(_) | ImplementStop::ReviewRejects => None,
        }
    }
}

enum TaskProgress {
    Ready,
    Stopped(ImplementStop),
}

/// Ends when the change is approved or the limit is reached.
pub fn implement_and_review(
    project: &mut Project,
    id: &ChangeId,
    options: &ChangeOptions,
    user: &mut dyn User,
) -> anyhow::Result<Implemented> {
    let _lock = change::lock_change(project, id, "impl")?;
    let mut change = begin(project, id, "impl", user)?;
    keep_message(project, options.message.clone(), user)?;
    let mut result = Implemented::of(&change);
    let most = project.settings.change.implementation_iterations;

    loop {
        if due_fix(&change).is_some() {
            // A fix that an earlier call left is always tried.
            if result.fixes >= most && result.reviews > 0 {
                result.stopped = Some(ImplementStop::TooManyRounds(most));
                break;
            }
            result.fixes += 1;
        }

        if let TaskProgress::Stopped(why) =
            tasks_and_fix(project, &mut change, (options, &mut *user))?
        {
            result.stopped = Some(why);
            break;
        }
        let judgement = review_locked(project, &mut change, (options, &mut *user))?;
        result.reviews += 1;
        (result.verdict, result.issues) = (Some(judgement.verdict), judgement.issues);

        match judgement.verdict {
            ReviewVerdict::Approved => break,
            ReviewVerdict::Rejected => {
                result.stopped = Some(ImplementStop::ReviewRejects);
                break;
            }
            ReviewVerdict::NeedsRevision => {}
        }
    }

    Ok(result.finish(&change))
}

/// Also applies what the last review asked for, without a new review.
pub fn implement(
    project: &mut Project,
    id: &ChangeId,
    options: &ChangeOptions,
    user: &mut dyn User,
) -> anyhow::Result<Implemented> {
    let _lock = change::lock_change(project, id, "implement")?;
    let mut change = begin(project, id, "implement", user)?;
    keep_message(project, options.message.clone(), user)?;
    let mut result = Implemented::of(&change);
    result.fixes = u32::from(due_fix(&change).is_some());
    if let TaskProgress::Stopped(why) = tasks_and_fix(project, &mut change, (options, user))? {
        result.stopped = Some(why);
    }

    Ok(result.finish(&change))
}

/// The phase is `implementing` before any model is asked, so that an interrupted call can be
/// resumed.
fn begin(
    project: &mut Project,
    id: &ChangeId,
    command: &'static str,
    user: &mut dyn User,
) -> anyhow::Result<Change> {
    project.recover(user)?;
    let mut change = open_change(project, id)?;
    allow(&change, Happened::Implement, command)?;
    require_usable(id, &change.documents, user)?;
    let stale = change.state.stale(&change.documents);

    if !stale.is_empty() {
        user.report(Event::Notice(Notice::EditedDocuments(stale)));
    }

    if change.state.phase == ChangePhase::Challenged {
        let entry = ChangeEntry::of("implement", &now());
        let lines = vec![format!(
            "Its turns are in refs/teddy/sessions/{}.",
            id.session()
        )];
        change::save(
            project,
            &mut change,
            ChangeStep {
                event: Happened::Implement,
                command,
                entry,
                title: "Begin to implement".to_owned(),
                lines,
            },
        )?;
    }

    work::open_work(project, &change, user)?;
    Ok(change)
}

fn tasks_and_fix(
    project: &mut Project,
    change: &mut Change,
    doing: (&ChangeOptions, &mut dyn User),
) -> anyhow::Result<TaskProgress> {
    let (options, user) = doing;
    while let Some(task) = tasks::read(change.documents.text(tasks::FILE))
        .into_iter()
        .find(|task| !task.is_done)
    {
        user.report(Event::Notice(Notice::TaskStarted {
            number: task.number.clone(),
            title: task.title.clone(),
        }));
        match work(
            project,
            change,
            &Work::task(change, &task),
            (options, &mut *user),
        )? {
            Worked::Done(turn, taken) => tick(project, change, &task, turn, taken)?,
            Worked::Stopped(why) => {
                return Ok(TaskProgress::Stopped(ImplementStop::Task {
                    number: task.number,
                    why,
                }));
            }
        }
    }

    let Some((number, body)) = due_fix(change) else {
        return Ok(TaskProgress::Ready);
    };
    user.report(Event::Notice(Notice::FixStarted(number)));
    match work(
        project,
        change,
        &Work::fix(change, number, &body),
        (options, user),
    )? {
        Worked::Done(turn, usage) => {
            let entry = ChangeEntry {
                about: Some(format!("review {number}")),
                turn: Some(turn),
                usage,
                ..ChangeEntry::of("fix", &now())
            };
            let title = format!("Mend what review {number} found (turn {turn})");
            change::save(
                project,
                change,
                ChangeStep {
                    event: Happened::Implement,
                    command: "implement",
                    entry,
                    title,
                    lines: Vec::new(),
                },
            )?;

            Ok(TaskProgress::Ready)
        }
        Worked::Stopped(why) => Ok(TaskProgress::Stopped(ImplementStop::Fix {
            review: number,
            why,
        })),
    }
}

fn tick(
    project: &Project,
    change: &mut Change,
    task: &tasks::Task,
    turn: u64,
    usage: Option<StepUsage>,
) -> anyhow::Result<()> {
    let stale = change
        .state
        .stale(&change.documents)
        .iter()
        .any(|name| name == tasks::FILE);
    let text = tasks::tick(change.documents.text(tasks::FILE), &task.number);
    // A tick changes no meaning, so the checksum follows it. An edit of the user's must stay
    // visible.
    if !stale {
        change.state.seal_one(tasks::FILE, &text, &now());
    }

    change.documents.insert(tasks::FILE, text);
    let entry = ChangeEntry {
        about: Some(task.number.clone()),
        turn: Some(turn),
        usage,
        ..ChangeEntry::of("task", &now())
    };
    let title = format!("Do {}: {} (turn {turn})", task.number, task.title);

    change::save(
        project,
        change,
        ChangeStep {
            event: Happened::Implement,
            command: "implement",
            entry,
            title,
            lines: Vec::new(),
        },
    )
}

/// Number and text. `None` if the last review approves, or was fixed since.
fn due_fix(change: &Change) -> Option<(usize, String)> {
    let (at, entry) = change.state.last("review")?;
    let is_fixed = change.state.last("fix").is_some_and(|(fix, _)| fix > at);
    if is_fixed || entry.verdict != Some(ReviewVerdict::NeedsRevision) {
        return None;
    }
    last_review(change)
}

impl Implemented {
    fn of(change: &Change) -> Implemented {
        Implemented {
            change: change.id.clone(),
            phase: change.state.phase,
            done: 0,
            tasks: 0,
            reviews: 0,
            fixes: 0,
            verdict: None,
            issues: Issues::default(),
            stopped: None,
            next: String::new(),
        }
    }

    fn finish(mut self, change: &Change) -> Implemented {
        let tasks = tasks::read(change.documents.text(tasks::FILE));
        self.tasks = tasks.len();
        self.done = tasks.iter().filter(|task| task.is_done).count();
        self.phase = change.state.phase;
        self.next = next_step(&change.id, self.phase);
        self
    }
}
