//! Events during a workflow that `ui` shows to the user.

use std::path::PathBuf;

use crate::change::finding::Finding;
use crate::git::land::shared::SharedChanges;
use crate::session::meta::NotCaptured;
use crate::session::name::SessionName;
use crate::workspace::notice::FilesNotice;

/// An event for the user.
#[derive(Debug, Clone)]
pub enum Notice {
    /// Concerns the user's files.
    Files(FilesNotice),
    /// Hooks changed HEAD, the stash or other refs while git committed.
    SharedChanged {
        /// What they changed.
        changes: Box<SharedChanges>,
        /// Whether the stash and HEAD were put back.
        restored: bool,
    },
    /// New files that only commands made are about to be committed.
    MadeByCommands(Vec<String>),
    /// No hook runs, because the directory in `core.hooksPath` does not exist; the configuration file
    /// that names it.
    NoHooks {
        /// The directory.
        dir: PathBuf,
        /// The configuration file.
        file: PathBuf,
    },
    /// A session was started for a plan.
    SessionStarted(SessionName),
    /// The message in the draft is used. Contains its first line.
    MessageUsed(String),
    /// The message was saved for the next turn.
    MessageKept,
    /// The waiting plan is reviewed before the message is used.
    PlanComesFirst,
    /// The message was not used, because a plan is waiting.
    MessageNotUsed,
    /// A probable key was removed from the message.
    KeyRemoved,
    /// The draft could not be kept, with the reason.
    DraftNotKept(String),
    /// The context exceeds its budget.
    OverBudget {
        /// Its tokens, estimated.
        tokens: usize,
        /// The budget, in tokens.
        budget: usize,
        /// The largest resources and their tokens.
        largest: Vec<(String, usize)>,
    },
    /// A pipeline step starts.
    StepStarted {
        /// Number of the step, from 1.
        number: usize,
        /// Number of steps.
        of: usize,
        /// Name of the step.
        name: String,
    },
    /// A remark of a model's program.
    ModelRemark(String),
    /// Changes of an acting model that its plan cannot express.
    AgentWorkLeftOut(Vec<NotCaptured>),
    /// Commands run in a copy of the files, although this machine supports overlays; with the
    /// reason.
    CommandsInCopy(String),
    /// The disk of the worktree at this path is full after its commands ran.
    WorktreeDiskFull(String),
    /// The repository contains these settings of agents.
    AgentSettings(Vec<String>),
    /// A price is missing, so the cost is unknown.
    PriceMissing {
        /// The model.
        model: String,
        /// The missing field.
        setting: &'static str,
    },
    /// A partial answer was saved in the draft of this session.
    PartialAnswerKept(SessionName),
    /// On a retry, a pipeline step was sent something different than before.
    StepChanged {
        /// Pipeline name.
        pipeline: String,
        /// Step name.
        step: String,
    },
    /// On a retry, the user's files differ from those before the turn.
    FilesDiffer,
    /// The user's files changed while a program was asked.
    FilesTouched {
        /// Its name.
        model: String,
        /// Changed files.
        paths: Vec<String>,
    },
    /// The files changed during the review.
    ChangedUnderReview,
    /// The model is not asked again, with the reason.
    NotReplanned(NoReplan),
    /// No plan was made from the user's reply, with the reason.
    NoPlanInstead(String),
    /// `worktree.setup` starts.
    SetupStarted(String),
    /// Waiting for the lock to record a turn; names the holder.
    WaitingToRecord(String),
    /// The interrupted plan could not be kept, with the reason.
    PlanNotKept(String),
    /// A bisection tested a turn.
    TurnTried {
        /// The turn; `None` for the files before the first one.
        turn: Option<(u64, String)>,
        /// Exit code of the command.
        exit_code: i32,
    },
    /// The worktree of this session is in use and was kept.
    WorktreeInUse(String),
    /// Mistakes in a document of a change.
    DocumentMistakes(Vec<Finding>),
    /// Documents that were edited since they were challenged.
    EditedDocuments(Vec<String>),
    /// Work on a task starts.
    TaskStarted {
        /// Task number.
        number: String,
        /// Task title.
        title: String,
    },
    /// Fixes for the review of this number start.
    FixStarted(usize),
    /// A role is asked for something.
    RoleAsked {
        /// Name of the role in the configuration.
        role: &'static str,
        /// What it should write.
        about: String,
    },
    /// An answer was unusable, and the model is asked again.
    AnswerUnusable {
        /// What it should be.
        about: String,
        /// What is wrong with it.
        mistakes: Vec<String>,
    },
}

/// Why the model is not asked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoReplan {
    /// This many plans in a row were rejected.
    TooMany(u32),
    /// The plan repeats a mistake.
    SameMistake,
    /// No model is configured.
    NoModel,
    /// The request failed, with the reason.
    Failed(String),
}
