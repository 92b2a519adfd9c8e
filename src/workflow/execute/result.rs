//! Results of an execution.

use std::borrow::Cow;

use crate::git::object::CommitId;
use crate::plan::Plan;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::run::{Interruption, Outcome};
use crate::session::meta::{NotCaptured, Status};
use crate::session::name::SessionName;
use crate::workflow::damage::FileDamage;
use crate::workflow::plan::WaitingPlan;
use crate::workspace::drift::Drift;
use crate::workspace::notice::FileObstacle;

/// Result of executing a given text or the waiting plan.
#[derive(Debug, Clone)]
pub enum ExecuteResult {
    /// The given text is not a plan. Nothing was recorded, and no model was asked.
    Refused(RefusedPlan),
    /// The plan was validated.
    Reviewed(ReviewedPlan),
}

/// Result of a validated plan.
#[derive(Debug, Clone)]
pub enum ReviewedPlan {
    /// The user left without a decision. Nothing ran; the plan is still waiting.
    Undecided(Box<UndecidedPlan>),
    Recorded(Box<RecordedTurn>),
}

/// A given text that is not a plan.
#[derive(Debug, Clone)]
pub struct RefusedPlan {
    /// The current session; `None` if there is none.
    pub session: Option<SessionName>,
    /// The part that could be parsed.
    pub plan: Plan,
    /// All mistakes.
    pub diagnostics: Vec<Diagnostic>,
}

/// A plan without a decision.
#[derive(Debug, Clone)]
pub struct UndecidedPlan {
    pub session: SessionName,
    /// Number of the draft.
    pub turn: u64,
    pub plan: Plan,
    /// Difference between the user's files and the previous turn.
    pub drift: Drift,
    /// Why it was not run although it was approved beforehand.
    pub doubts: Vec<Diagnostic>,
}

/// A recorded turn.
#[derive(Debug, Clone)]
pub struct RecordedTurn {
    pub session: SessionName,
    pub turn: u64,
    pub commit: CommitId,
    /// Workspace commit before it.
    pub before: CommitId,
    /// Workspace commit after it.
    pub after: CommitId,
    /// The plan as it ran, or as it was proposed.
    pub plan: Plan,
    pub ending: TurnEnding,
    /// The model's question, if one was open at the end of the turn.
    pub question: Option<ModelQuestion>,
    /// The model's answer, if it is prose.
    pub answer: Option<String>,
    /// The plan only read, and ran without approval.
    pub only_read: bool,
    /// Files that changed in the user's directory.
    pub applied: Vec<AppliedFile>,
    /// Files that are not as the turn has them: the user edited them, or they could not be written.
    pub overlaps: Vec<String>,
    /// Why files were not written, other than a merge conflict.
    pub obstacles: Vec<FileObstacle>,
    /// What the commands of the plan did to files besides changing their text.
    pub damage: Vec<FileDamage>,
    /// Files of the plan that no snapshot includes; they stay in the worktree.
    pub not_captured: Vec<NotCaptured>,
    /// Difference between the user's files and the previous turn.
    pub drift: Drift,
}

/// A file that a plan changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedFile {
    pub path: String,
    pub change: FileChange,
}

/// Kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChange {
    /// Created.
    Added,
    /// New content or mode.
    Modified,
    Deleted,
}

impl FileChange {
    /// The word used in `--json` output.
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
        /// Outcome of each action.
        outcomes: Vec<Outcome>,
        /// An action failed that is not allowed to.
        failed: bool,
        /// The model's summary, if it concluded the work.
        conclusion: Option<String>,
    },
    /// The run was interrupted. None of it is in the user's files; the plan became the next draft.
    Interrupted {
        /// Outcome of each action.
        outcomes: Vec<Outcome>,
        /// The reason.
        cause: Interruption,
    },
    /// The user declined the plan.
    Declined {
        /// One skipped outcome for each action.
        outcomes: Vec<Outcome>,
        /// What the user replied.
        reply: DeclineReply,
    },
    /// The plan is invalid.
    Rejected {
        /// All mistakes.
        diagnostics: Vec<Diagnostic>,
        /// The corrected plan.
        replanned: Option<Box<WaitingPlan>>,
        /// The model was asked for a correction, and failed.
        has_failed: bool,
        /// Whether it is valid, and only words beside a command kept it from running unattended.
        in_doubt: bool,
    },
}

/// The user's reply when they declined a plan.
#[derive(Debug, Clone)]
pub enum DeclineReply {
    /// They left the prompt.
    Left,
    /// An empty reply.
    Nothing,
    /// A message for the next turn.
    Instead {
        message: String,
        /// The plan made from it.
        replanned: Option<Box<WaitingPlan>>,
    },
}

/// A question of the model that was open at the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelQuestion {
    /// Its text, in Markdown.
    pub text: String,
    /// Whether it has been answered.
    pub answer: AnswerStatus,
}

/// Status of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerStatus {
    /// Not asked, or no user was available.
    Open,
    /// The user left the prompt.
    UserLeft,
    /// The answer is the message of the next turn.
    Answered,
}

impl RecordedTurn {
    /// Status in the turn's metadata.
    pub fn status(&self) -> Status {
        self.ending.status()
    }

    /// Returns the files that were not written because the user edited them.
    pub fn edited_by_user(&self) -> Vec<&str> {
        let blocked: Vec<Cow<'_, str>> = self
            .obstacles
            .iter()
            .filter_map(FileObstacle::path)
            .map(String::from_utf8_lossy)
            .collect();
        let overlaps = self.overlaps.iter().map(String::as_str);
        overlaps
            .filter(|path| !blocked.iter().any(|other| other == path))
            .collect()
    }

    /// Returns `true` if the whole result was applied to the user's files.
    pub fn is_synced(&self) -> bool {
        self.overlaps.is_empty()
    }

    /// Returns `true` if the plan was invalid and did not run.
    pub fn is_rejected(&self) -> bool {
        matches!(self.ending, TurnEnding::Rejected { .. })
    }

    /// The question that still needs an answer.
    pub fn unanswered(&self) -> Option<&str> {
        let question = self.question.as_ref()?;
        (question.answer != AnswerStatus::Answered).then_some(question.text.as_str())
    }

    /// Returns `true` if the user left a prompt after the turn.
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

    /// What the user wants instead of the plan.
    pub fn instead(&self) -> Option<&str> {
        match &self.ending {
            TurnEnding::Declined {
                reply: DeclineReply::Instead { message, .. },
                ..
            } => Some(message),
            _ => None,
        }
    }

    /// The plan that was made after this one was rejected or declined.
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

    /// Returns `true` if the model could not be asked for a correction.
    pub fn has_failed_replan(&self) -> bool {
        matches!(
            self.ending,
            TurnEnding::Rejected {
                has_failed: true,
                ..
            }
        )
    }

    /// The model's summary, if it concluded the work.
    pub fn conclusion(&self) -> Option<&str> {
        match &self.ending {
            TurnEnding::Ran { conclusion, .. } => conclusion.as_deref(),
            _ => None,
        }
    }

    /// Why the run was interrupted.
    pub fn interruption(&self) -> Option<&Interruption> {
        self.ending.interruption()
    }
}

impl TurnEnding {
    /// Status in the turn's metadata.
    pub fn status(&self) -> Status {
        match self {
            TurnEnding::Ran { failed: false, .. } => Status::Executed,
            TurnEnding::Ran { failed: true, .. } => Status::Failed,
            TurnEnding::Interrupted { .. } => Status::Interrupted,
            TurnEnding::Declined { .. } => Status::Declined,
            TurnEnding::Rejected { .. } => Status::Rejected,
        }
    }

    /// Why the run was interrupted.
    pub fn interruption(&self) -> Option<&Interruption> {
        match self {
            TurnEnding::Interrupted { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// Outcome of each action; empty if the plan never ran.
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
    pub(super) fn open(text: String) -> ModelQuestion {
        ModelQuestion {
            text,
            answer: AnswerStatus::Open,
        }
    }
}
