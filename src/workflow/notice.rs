//! What happened on the way that a user should hear of; `ui` has the words.

use std::path::PathBuf;

use crate::change::finding::Finding;
use crate::session::meta::NotCaptured;
use crate::session::name::SessionName;
use crate::workspace::notice::FilesNotice;

/// Something that the user should hear of.
#[derive(Debug, Clone)]
pub enum Notice {
    /// Something about the user's files.
    Files(FilesNotice),
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
    /// The message that waits is used; its first line.
    MessageUsed(String),
    /// The message is kept for the next turn.
    MessageKept,
    /// A plan is waiting and is reviewed before the message is used.
    PlanComesFirst,
    /// The message was not used, because a plan is waiting.
    MessageNotUsed,
    /// What looks like a key was taken out of the message.
    KeyRemoved,
    /// What waits for the next turn cannot be kept; why.
    DraftNotKept(String),
    /// The context is over its budget.
    OverBudget {
        /// About how many tokens it has.
        tokens: usize,
        /// How many it should have at most.
        budget: usize,
        /// Its largest resources, with the tokens of each.
        largest: Vec<(String, usize)>,
    },
    /// A step of a pipeline begins.
    StepStarted {
        /// Its number, from 1.
        number: usize,
        /// How many steps there are.
        of: usize,
        /// Its name.
        name: String,
    },
    /// What a model's program says besides its answer.
    ModelRemark(String),
    /// What a model that edits files itself made and its plan cannot have.
    AgentWorkLeftOut(Vec<NotCaptured>),
    /// Commands run in a copy of the files although this machine can do without; why.
    CommandsInCopy(String),
    /// The disk with a worktree, at this path, was full when its commands had run.
    WorktreeDiskFull(String),
    /// Settings for agents that the repository has, by path.
    AgentSettings(Vec<String>),
    /// A price is missing, so that the cost is unknown.
    PriceMissing {
        /// The model.
        model: String,
        /// The field of its price.
        setting: &'static str,
    },
    /// The part of an answer that arrived is kept in the draft of this session.
    PartialAnswerKept(SessionName),
    /// A step of a pipeline was sent something else than in the turn that is tried again.
    StepChanged {
        /// The pipeline.
        pipeline: String,
        /// The step.
        step: String,
    },
    /// The files are not as before the turn that is tried again.
    FilesDiffer,
    /// The user's files changed while a model was asked that is a program.
    FilesTouched {
        /// The model.
        model: String,
        /// The files.
        paths: Vec<String>,
    },
    /// The files changed while the plan was reviewed.
    ChangedUnderReview,
    /// The model is not asked again; why.
    NotReplanned(NoReplan),
    /// No other plan was made from what the user wants instead; why.
    NoPlanInstead(String),
    /// The command that prepares a new worktree starts.
    SetupStarted(String),
    /// The lock is awaited to record what the plan did; who holds it.
    WaitingToRecord(String),
    /// The plan of an interrupted run cannot be kept for another run; why.
    PlanNotKept(String),
    /// A turn was tried by a bisection.
    TurnTried {
        /// The turn; `None` is the state before the first one.
        turn: Option<(u64, String)>,
        /// The exit code of the command.
        exit_code: i32,
    },
    /// The worktree of this session is in use and stays.
    WorktreeInUse(String),
    /// A document of a change has these mistakes.
    DocumentMistakes(Vec<Finding>),
    /// These documents were edited since they were challenged.
    EditedDocuments(Vec<String>),
    /// Work on a task begins.
    TaskStarted {
        /// Its number.
        number: String,
        /// Its title.
        title: String,
    },
    /// What the review of this number found is being fixed.
    FixStarted(usize),
    /// A role is asked about a document.
    RoleAsked {
        /// The role, as the configuration calls it.
        role: &'static str,
        /// What it is asked for.
        about: String,
    },
    /// An answer was not usable, and the model is asked again.
    AnswerUnusable {
        /// What it should have been.
        about: String,
        /// What is wrong with it.
        mistakes: Vec<String>,
    },
}

/// Why the model is not asked for another plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoReplan {
    /// So many plans in a row were rejected.
    TooMany(u32),
    /// It made the same mistake twice.
    SameMistake,
    /// No model is configured.
    NoModel,
    /// It could not be asked; why.
    Failed(String),
}
