//! What can come of an execution.

use crate::git::object::CommitId;
use crate::plan::Plan;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::run::{Interruption, Outcome};
use crate::session::meta::{NotCaptured, Status};
use crate::session::name::SessionName;
use crate::workflow::plan::WaitingPlan;
use crate::workspace::drift::Drift;
use crate::workspace::notice::FileObstacle;

/// What came of executing a text that was given, or the plan that waits.
#[derive(Debug, Clone)]
pub enum ExecuteResult {
    /// The text that was given is not a plan; nothing was recorded and no model was asked.
    Refused(RefusedPlan),
    /// The plan was judged on the user's files.
    Reviewed(ReviewedPlan),
}

/// What came of a plan that was judged on the user's files.
#[derive(Debug, Clone)]
pub enum ReviewedPlan {
    /// The user left without a decision: nothing was run, and the plan is still waiting.
    Undecided(Box<UndecidedPlan>),
    /// The turn has ended and is in the session.
    Recorded(Box<RecordedTurn>),
}

/// A text that was given as a plan and is none.
#[derive(Debug, Clone)]
pub struct RefusedPlan {
    /// The session in use; `None` if there is none, and none was started for it.
    pub session: Option<SessionName>,
    /// As much of a plan as was found in it.
    pub plan: Plan,
    /// Every mistake.
    pub diagnostics: Vec<Diagnostic>,
}

/// A plan that the user left undecided.
#[derive(Debug, Clone)]
pub struct UndecidedPlan {
    /// The session.
    pub session: SessionName,
    /// The turn in progress.
    pub turn: u64,
    /// The plan.
    pub plan: Plan,
    /// How far the user's files are from the turn before.
    pub drift: Drift,
    /// Why it was not run although it was approved beforehand.
    pub doubts: Vec<Diagnostic>,
}

/// A turn that has ended.
#[derive(Debug, Clone)]
pub struct RecordedTurn {
    /// The session.
    pub session: SessionName,
    /// Its number.
    pub turn: u64,
    /// Its commit.
    pub commit: CommitId,
    /// The workspace commit before it.
    pub before: CommitId,
    /// The workspace commit after it.
    pub after: CommitId,
    /// The plan as it ran, or as it was proposed.
    pub plan: Plan,
    /// How it ended.
    pub ending: TurnEnding,
    /// What the model has asked and not heard an answer to when the turn ended.
    pub question: Option<ModelQuestion>,
    /// What the plan changed in the user's files.
    pub reached: Vec<ReachedFile>,
    /// The files that overlap with the user's own edits and were left as they were.
    pub overlaps: Vec<String>,
    /// What stood in the way of writing files, other than an overlap.
    pub obstacles: Vec<FileObstacle>,
    /// Files of the plan's that no snapshot takes and that stay in the session's worktree.
    pub not_captured: Vec<NotCaptured>,
    /// How far the user's files were from the turn before.
    pub drift: Drift,
}

/// A file of the user's that a plan changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReachedFile {
    /// Its path.
    pub path: String,
    /// What became of it.
    pub change: FileChange,
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChange {
    /// It is new.
    Added,
    /// It has other content, or another mode.
    Modified,
    /// It is gone.
    Deleted,
}

impl FileChange {
    /// Returns the word for it, as `--json` has it.
    pub fn word(self) -> &'static str {
        match self {
            FileChange::Added => "added",
            FileChange::Modified => "modified",
            FileChange::Deleted => "deleted",
        }
    }
}

/// How a turn ended.
#[derive(Debug, Clone)]
pub enum TurnEnding {
    /// The plan ran.
    Ran {
        /// What each action came to.
        outcomes: Vec<Outcome>,
        /// Whether an action failed that was not allowed to.
        failed: bool,
        /// What the model said when it called the work done.
        conclusion: Option<String>,
    },
    /// The run was cut short: nothing of it is in the user's files, and the plan waits again.
    Interrupted {
        /// What each action came to.
        outcomes: Vec<Outcome>,
        /// What cut it short.
        cause: Interruption,
    },
    /// The user did not want the plan.
    Declined {
        /// One skipped action after the other.
        outcomes: Vec<Outcome>,
        /// What the user wants instead.
        reply: DeclineReply,
    },
    /// The plan is wrong.
    Rejected {
        /// Every mistake.
        diagnostics: Vec<Diagnostic>,
        /// The plan that the model wrote instead.
        replanned: Option<Box<WaitingPlan>>,
        /// Whether it is valid, and only words beside a command kept it from running unattended.
        in_doubt: bool,
    },
}

/// What the user wants instead of a plan that they declined.
#[derive(Debug, Clone)]
pub enum DeclineReply {
    /// They left at the question.
    Left,
    /// They said nothing.
    Nothing,
    /// This, which is the next turn's message.
    Instead {
        /// Their message.
        message: String,
        /// The plan that was made from it.
        replanned: Option<Box<WaitingPlan>>,
    },
}

/// A question of the model's that was open when a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelQuestion {
    /// The Markdown that the model wrote.
    pub text: String,
    /// What became of it since.
    pub answer: AnswerStatus,
}

/// What became of a question of the model's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerStatus {
    /// Nobody was asked, or nobody could be.
    Open,
    /// The user was asked and left.
    UserLeft,
    /// The answer is the next turn's message.
    Answered,
}

impl RecordedTurn {
    /// Returns the status under which the turn is recorded.
    pub fn status(&self) -> Status {
        self.ending.status()
    }

    /// Returns whether the result is in the user's files as far as they allowed it.
    pub fn is_synced(&self) -> bool {
        self.overlaps.is_empty()
    }

    /// Returns whether the plan was wrong and did not run.
    pub fn is_rejected(&self) -> bool {
        matches!(self.ending, TurnEnding::Rejected { .. })
    }

    /// Returns the question for whose answer the model waits.
    pub fn unanswered(&self) -> Option<&str> {
        let question = self.question.as_ref()?;
        (question.answer != AnswerStatus::Answered).then_some(question.text.as_str())
    }

    /// Returns whether the user was asked something after the turn and left instead.
    pub fn user_left(&self) -> bool {
        let declined = matches!(
            self.ending,
            TurnEnding::Declined {
                reply: DeclineReply::Left,
                ..
            }
        );
        let question = self.question.as_ref();
        declined || question.is_some_and(|question| question.answer == AnswerStatus::UserLeft)
    }

    /// Returns what the user wants instead of the plan.
    pub fn instead(&self) -> Option<&str> {
        match &self.ending {
            TurnEnding::Declined {
                reply: DeclineReply::Instead { message, .. },
                ..
            } => Some(message),
            _ => None,
        }
    }

    /// Returns the plan that was made after this one was rejected or declined.
    pub fn replanned(&self) -> Option<&WaitingPlan> {
        match &self.ending {
            TurnEnding::Rejected { replanned, .. }
            | TurnEnding::Declined {
                reply: DeclineReply::Instead { replanned, .. },
                ..
            } => replanned.as_deref(),
            _ => None,
        }
    }

    /// Returns what the model said when it called the work done.
    pub fn conclusion(&self) -> Option<&str> {
        match &self.ending {
            TurnEnding::Ran { conclusion, .. } => conclusion.as_deref(),
            _ => None,
        }
    }

    /// Returns what cut the run short.
    pub fn interruption(&self) -> Option<&Interruption> {
        self.ending.interruption()
    }
}

impl TurnEnding {
    /// Returns the status of a turn that ended like this.
    pub fn status(&self) -> Status {
        match self {
            TurnEnding::Ran { failed: false, .. } => Status::Executed,
            TurnEnding::Ran { failed: true, .. } => Status::Failed,
            TurnEnding::Interrupted { .. } => Status::Interrupted,
            TurnEnding::Declined { .. } => Status::Declined,
            TurnEnding::Rejected { .. } => Status::Rejected,
        }
    }

    /// Returns what cut the run short.
    pub fn interruption(&self) -> Option<&Interruption> {
        match self {
            TurnEnding::Interrupted { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// Returns what each action came to; empty if the plan never got to that.
    pub fn outcomes(&self) -> &[Outcome] {
        match self {
            TurnEnding::Ran { outcomes, .. }
            | TurnEnding::Interrupted { outcomes, .. }
            | TurnEnding::Declined { outcomes, .. } => outcomes,
            TurnEnding::Rejected { .. } => &[],
        }
    }
}

impl ModelQuestion {
    /// Returns a question that nobody was asked yet.
    pub(super) fn open(text: String) -> ModelQuestion {
        ModelQuestion {
            text,
            answer: AnswerStatus::Open,
        }
    }
}
