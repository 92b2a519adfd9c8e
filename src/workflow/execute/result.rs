//! Results of an execution.

use std::borrow::Cow;

use crate::git::object::CommitId;
use crate::plan::Plan;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::run::{Interruption, Outcome};
use crate::session::meta::{NotCaptured, Status};
use crate::session::name::SessionName;
use crate::text::damage::FileDamage;
use crate::workflow::plan::WaitingPlan;
use crate::workspace::drift::Drift;
use crate::workspace::file_move::PathChange;
use crate::workspace::notice::FileObstacle;

#[derive(Debug, Clone)]
pub enum ExecuteResult {
    /// Nothing was recorded, and no model was asked.
    Refused(RefusedPlan),
    Reviewed(ReviewedPlan),
}

#[derive(Debug, Clone)]
pub enum ReviewedPlan {
    /// Nothing ran; the plan is still waiting.
    Undecided(Box<UndecidedPlan>),
    Recorded(Box<RecordedTurn>),
}

#[derive(Debug, Clone)]
pub struct RefusedPlan {
    pub session: Option<SessionName>,
    /// The part that could be parsed.
    pub plan: Plan,
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Debug, Clone)]
pub struct UndecidedPlan {
    pub session: SessionName,
    pub turn: u64,
    pub plan: Plan,
    /// From the previous turn.
    pub drift: Drift,
    /// Why the plan was not run although it was approved beforehand.
    pub doubts: Vec<Diagnostic>,
}

#[derive(Debug, Clone)]
pub struct RecordedTurn {
    pub session: SessionName,
    pub turn: u64,
    pub commit: CommitId,
    pub before: CommitId,
    pub after: CommitId,
    /// As it ran, or as it was proposed.
    pub plan: Plan,
    pub ending: TurnEnding,
    /// If one was open at the end of the turn.
    pub question: Option<ModelQuestion>,
    /// The model's answer, if it is prose.
    pub answer: Option<String>,
    /// The plan only read, and ran without approval.
    pub only_read: bool,
    /// Files that changed in the user's directory.
    pub applied: Vec<AppliedFile>,
    /// Not as the turn has them: the user edited them, or they could not be written.
    pub overlaps: Vec<String>,
    /// Other than merge conflicts.
    pub obstacles: Vec<FileObstacle>,
    /// What the commands of the plan did to files besides changing their text.
    pub damage: Vec<FileDamage>,
    /// Files of the plan that no snapshot includes; they stay in the worktree.
    pub not_captured: Vec<NotCaptured>,
    /// From the previous turn.
    pub drift: Drift,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedFile {
    pub path: String,
    pub change: PathChange,
}

#[derive(Debug, Clone)]
pub enum TurnEnding {
    Ran {
        /// By action.
        outcomes: Vec<Outcome>,
        /// An action failed that is not allowed to.
        failed: bool,
        /// Set if the model concluded the work.
        conclusion: Option<String>,
    },
    /// None of it is in the user's files; the plan became the next draft.
    Interrupted {
        outcomes: Vec<Outcome>,
        cause: Interruption,
    },
    Declined {
        /// Skipped, by action.
        outcomes: Vec<Outcome>,
        reply: DeclineReply,
    },
    Rejected {
        diagnostics: Vec<Diagnostic>,
        replanned: Option<Box<WaitingPlan>>,
        /// The model was asked for a correction, and failed.
        has_failed: bool,
        /// Whether it is valid, and only words beside a command kept it from running unattended.
        in_doubt: bool,
        /// The plan changed files that the model had not read, and was correct otherwise. The model
        /// was shown these files and asked again.
        showed_files: bool,
    },
}

#[derive(Debug, Clone)]
pub enum DeclineReply {
    Left,
    Nothing,
    /// For the next turn.
    Instead {
        message: String,
        /// Otherwise it is made of comments.
        is_typed: bool,
        /// Made from the message.
        replanned: Option<Box<WaitingPlan>>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelQuestion {
    /// Markdown.
    pub text: String,
    pub answer: AnswerStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerStatus {
    /// Not asked, or no user was available.
    Open,
    UserLeft,
    /// The answer is the message of the next turn.
    Answered,
}

impl RecordedTurn {
    pub fn status(&self) -> Status {
        self.ending.status()
    }

    /// Files that were not written because the user edited them.
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

    /// The whole result was applied to the user's files.
    pub fn is_synced(&self) -> bool {
        self.overlaps.is_empty()
    }

    pub fn is_rejected(&self) -> bool {
        matches!(self.ending, TurnEnding::Rejected { .. })
    }

    /// Describes the end of the turn in one word.
    pub fn word(&self) -> &'static str {
        match self.ending {
            TurnEnding::Rejected {
                showed_files: true, ..
            } => "recorded",
            _ => self.status().word(),
        }
    }

    pub fn unanswered(&self) -> Option<&str> {
        let question = self.question.as_ref()?;
        (question.answer != AnswerStatus::Answered).then_some(question.text.as_str())
    }

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

    pub fn instead(&self) -> Option<&str> {
        match &self.ending {
            TurnEnding::Declined {
                reply: DeclineReply::Instead { message, .. },
                ..
            } => Some(message),
            _ => None,
        }
    }

    /// Returns what the user typed instead of the plan.
    pub fn typed_instead(&self) -> Option<&str> {
        match &self.ending {
            TurnEnding::Declined {
                reply:
                    DeclineReply::Instead {
                        message,
                        is_typed: true,
                        ..
                    },
                ..
            } => Some(message),
            _ => None,
        }
    }

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

    pub fn interruption(&self) -> Option<&Interruption> {
        self.ending.interruption()
    }
}

impl TurnEnding {
    pub fn status(&self) -> Status {
        match self {
            TurnEnding::Ran { failed: false, .. } => Status::Executed,
            TurnEnding::Ran { failed: true, .. } => Status::Failed,
            TurnEnding::Interrupted { .. } => Status::Interrupted,
            TurnEnding::Declined { .. } => Status::Declined,
            TurnEnding::Rejected { .. } => Status::Rejected,
        }
    }

    pub fn interruption(&self) -> Option<&Interruption> {
        match self {
            TurnEnding::Interrupted { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// By action. Empty if the plan never ran.
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
