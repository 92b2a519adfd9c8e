//! The workflow `impl`: implements each open task, then alternates reviews and fixes.
//!
//! Resumable: checked tasks are not done again, and a review is fixed at most once.

use serde::Serialize;

use super::OpenChange;
use super::ask::Role;
use super::judge::{require_session, review};
use super::reopen::{newest_turn, reopen_undone, set_ticks};
use super::work::{Work, WorkStop, Worked, create_work_session, is_fix_due, work};
use crate::change::id::ChangeId;
use crate::change::phase::{ChangePhase, ChangeStep};
use crate::change::review::{Issues, ReviewVerdict};
use crate::change::state::{ChangeEntry, StepUsage};
use crate::change::store::Change;
use crate::change::tasks;
use crate::text::hint::error_with_hint;
use crate::workflow::context::message::keep_message;
use crate::workflow::user::{Event, Notice};

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
    Work {
        /// `task 1.2`, or `review 1`.
        about: String,
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
            ImplementStop::Work { why, .. } => Some(why),
            ImplementStop::TooManyRounds(_) | ImplementStop::ReviewRejects => None,
        }
    }
}

/// Ends when the change is approved or the limit is reached.
pub fn implement_and_review(open: &mut OpenChange<'_>) -> anyhow::Result<Implemented> {
    require_ready(open)?;
    open.answering_model(Role::Reviewer)?;
    begin(open)?;
    let mut result = Implemented::of(&open.change);
    let most = open.project.settings.change.implementation_iterations;
    result.stopped = loop {
        if is_fix_due(&open.change, has_message(open)?) {
            // A fix that an earlier call left is always tried.
            if result.fixes >= most && result.reviews > 0 {
                break Some(ImplementStop::TooManyRounds(most));
            }
            result.fixes += 1;
        }

        if let Some(stop) = tasks_and_fix(open)? {
            break Some(stop);
        }
        // A review of the same files would be paid for nothing.
        if open.change.is_rejected_by_review() {
            break Some(ImplementStop::ReviewRejects);
        }
        let judgement = review(open)?;
        result.reviews += 1;
        (result.verdict, result.issues) = (Some(judgement.verdict), judgement.issues);
        match judgement.verdict {
            ReviewVerdict::Approved => break None,
            ReviewVerdict::Rejected => break Some(ImplementStop::ReviewRejects),
            ReviewVerdict::NeedsRevision => {}
        }
    };

    Ok(result.finish(&open.change))
}

/// Also applies what the last review asked for, without a new review.
pub fn implement(open: &mut OpenChange<'_>) -> anyhow::Result<Implemented> {
    require_ready(open)?;
    begin(open)?;
    let mut result = Implemented::of(&open.change);
    result.fixes = u32::from(is_fix_due(&open.change, has_message(open)?));
    result.stopped = tasks_and_fix(open)?;
    if result.stopped.is_none() && open.change.is_rejected_by_review() {
        result.stopped = Some(ImplementStop::ReviewRejects);
    }
    Ok(result.finish(&open.change))
}

fn require_ready(open: &mut OpenChange<'_>) -> anyhow::Result<()> {
    open.allow(ChangeStep::Implement)?;
    open.require_usable()?;
    let stale = open.change.state.stale(&open.change.documents);
    if !stale.is_empty() {
        open.user
            .report(Event::Notice(Notice::EditedDocuments(stale)));
    }

    if open.request.message.is_some() && Work::next(&open.change, true).is_none() {
        return Err(nothing_left(&open.change.id));
    }
    Ok(())
}

/// The phase is `implementing` before any model is asked, so that an interrupted call can be
/// resumed.
fn begin(open: &mut OpenChange<'_>) -> anyhow::Result<()> {
    if open.change.state.phase == ChangePhase::Challenged {
        let session = open.change.id.session();
        let lines = [format!("Its turns are in refs/teddy/sessions/{session}.")];
        let entry = ChangeEntry::default();
        open.save(ChangeStep::Implement, entry, "Begin to implement", &lines)?;
    }

    // Open tasks can be done in a new session.
    if open.require_done().is_ok() {
        require_session(open.project, &open.change)?;
    }
    create_work_session(open.project, &open.change, open.user)?;
    keep_message(open.project, open.request.message.clone(), open.user)
}

/// For a message that no task or fix would use.
fn nothing_left(id: &ChangeId) -> anyhow::Error {
    error_with_hint(
        format!(
            "every task of `{id}` is done and no fix is due, so your message would not be used"
        ),
        format!(
            "`teddy -s {} resume '<message>'` asks for it directly, and `teddy change review {id}` reviews all of it",
            id.session()
        ),
    )
}

/// Whether the user has said something that no turn has done yet, or a plan or question for it waits.
fn has_message(open: &OpenChange<'_>) -> anyhow::Result<bool> {
    let project = open.project;
    let (tip, draft) = project.in_progress(&open.change.id.session())?;
    Ok(draft.message().is_some() || tip.question(&project.repository)?.is_some())
}

fn tasks_and_fix(open: &mut OpenChange<'_>) -> anyhow::Result<Option<ImplementStop>> {
    while let Some(next) = Work::next(&open.change, has_message(open)?) {
        open.user.report(Event::Notice(next.notice.clone()));
        match work(open, &next)? {
            Worked::Done(turn, usage) => {
                record(open, next, turn, usage)?;
                // The files of this turn can lack earlier ones, after a restore of another session.
                reopen_undone(open.project, &mut open.change)?;
            }
            Worked::Stopped(why) => {
                let about = match next.step {
                    ChangeStep::Task => format!("task {}", next.about),
                    _ => next.about,
                };
                return Ok(Some(ImplementStop::Work { about, why }));
            }
        }
    }

    Ok(None)
}

fn record(
    open: &mut OpenChange<'_>,
    work: Work,
    turn: u64,
    usage: Option<StepUsage>,
) -> anyhow::Result<()> {
    if work.step == ChangeStep::Task {
        tick(&mut open.change, &work.about);
    }

    let entry = ChangeEntry {
        about: Some(work.about),
        turn: Some(turn),
        newest_turn: newest_turn(open.project, &open.change)?,
        usage,
        ..ChangeEntry::default()
    };
    open.save(
        work.step,
        entry,
        &format!("{} (turn {turn})", work.title),
        &[],
    )
}

fn tick(change: &mut Change, number: &str) {
    let text = tasks::tick(change.documents.text(tasks::FILE), number);
    set_ticks(change, text);
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
        (self.done, self.tasks) = change.documents.progress();
        self.phase = change.state.phase;
        self.next = change.next_step();
        self
    }
}
