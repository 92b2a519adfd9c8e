//! The user, as seen by workflows.

use std::path::PathBuf;

use crate::change::finding::Finding;
use crate::git::land::shared::SharedChanges;
use crate::git::worktree::progress::WriteCount;
use crate::model::acting::AgentProgress;
use crate::plan::action::Action;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::repair::Repaired;
use crate::plan::validate::Simulation;
use crate::plan::{Plan, memo};
use crate::session::comments::{CommentStatus, LineComment};
use crate::session::meta::NotCaptured;
use crate::session::name::SessionName;
use crate::text::resource::Resource;
use crate::workspace::drift::Drift;
use crate::workspace::notice::FilesNotice;

/// No user can be asked.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct NobodyToAsk {
    /// What could not be asked.
    pub what: String,
    /// The flag or command that answers it.
    pub hint: String,
}

impl NobodyToAsk {
    /// Creates the error.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> NobodyToAsk {
        NobodyToAsk {
            what: message.into(),
            hint: hint.into(),
        }
    }
}

/// Decides, answers and observes. `ui` implements it for the terminal.
pub trait User {
    /// Shows a proposal and returns the decision.
    fn review(&mut self, proposal: &ReviewRequest<'_>) -> anyhow::Result<Decision>;

    /// Returns `true` if plans are approved without a review, for example by `-y`.
    fn approves_unseen(&self) -> bool {
        false
    }

    /// Prompts for a message; `None` if the user leaves. Fails with [`NobodyToAsk`].
    fn ask(&mut self, question: &Question<'_>) -> anyhow::Result<Option<String>>;

    /// Asks a yes-or-no question. `flag` is the option that answers it without a user.
    fn confirm(&mut self, question: &str, flag: &str) -> anyhow::Result<bool>;

    /// Lets the user choose, by index. `None` if the user leaves or cannot be asked.
    fn choose(
        &mut self,
        _question: &str,
        _choices: &[Choice<'_>],
    ) -> anyhow::Result<Option<usize>> {
        Ok(None)
    }

    /// Reports an event. Must not block.
    fn report(&mut self, event: Event<'_>);
}

/// The user, without reports of actions: their results are told otherwise.
pub struct WithoutActions<'a>(pub &'a mut dyn User);

impl User for WithoutActions<'_> {
    fn review(&mut self, proposal: &ReviewRequest<'_>) -> anyhow::Result<Decision> {
        self.0.review(proposal)
    }

    fn approves_unseen(&self) -> bool {
        self.0.approves_unseen()
    }

    fn ask(&mut self, question: &Question<'_>) -> anyhow::Result<Option<String>> {
        self.0.ask(question)
    }

    fn confirm(&mut self, question: &str, flag: &str) -> anyhow::Result<bool> {
        self.0.confirm(question, flag)
    }

    fn report(&mut self, event: Event<'_>) {
        if !matches!(event, Event::Started { .. } | Event::Finished { .. }) {
            self.0.report(event);
        }
    }
}

/// A choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice<'a> {
    pub key: char,
    /// Its label with the key in parentheses: `(v)iew`.
    pub label: &'a str,
}

/// A valid plan to decide about.
pub struct ReviewRequest<'a> {
    pub session: &'a str,
    pub turn: u64,
    pub plan: &'a Plan,
    /// Its text, after repair.
    pub text: &'a str,
    pub repair: &'a Repaired,
    /// What each action would do to the files.
    pub simulation: &'a Simulation,
    /// How commands will be confined, in a few words: `sandboxed, no network`, `not sandboxed`.
    pub confinement: &'a str,
    /// Validates a changed plan against the same snapshot.
    pub revise: &'a dyn Fn(&Plan) -> anyhow::Result<Simulation>,
    /// Returns the content of a resource from the same snapshot.
    pub read_resource: &'a dyn Fn(&Resource) -> anyhow::Result<ResourceContent>,
    /// The earlier decision, if the user's files changed during the review.
    pub earlier: Option<&'a Approved>,
    /// Comments on the declined plan before, and what became of their lines.
    pub comments: &'a [(LineComment, CommentStatus)],
}

impl ReviewRequest<'_> {
    /// Returns the proposal with another plan and its simulation.
    pub fn with<'a>(&'a self, plan: &'a Plan, simulation: &'a Simulation) -> ReviewRequest<'a> {
        ReviewRequest {
            plan,
            simulation,
            ..*self
        }
    }
}

/// Content of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceContent {
    /// Content of a file, page or artifact.
    Content(Vec<u8>),
    /// Paths of a directory's files.
    Dir(Vec<String>),
    /// Nothing to show, with the reason.
    Nothing(&'static str),
}

/// The user's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Run(Approved),
    /// Decline the plan, with a reply. `None` prompts for it.
    Skip(Option<String>),
    /// Leave without a decision.
    Quit,
}

/// The parts of a plan that run, with the user's changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approved {
    /// The changed plan, with the same actions in the same order. Deselected pairs are removed from
    /// their EDIT.
    pub plan: Plan,
    /// Whether each action runs.
    pub actions: Vec<bool>,
    /// Whether each memo is applied.
    pub memos: Vec<bool>,
    /// Indices of changed actions.
    pub modified: Vec<usize>,
}

impl Approved {
    /// Approves the whole plan.
    pub fn all(plan: &Plan) -> Approved {
        Approved {
            plan: plan.clone(),
            actions: vec![true; plan.actions.len()],
            memos: vec![true; plan.memos.len()],
            modified: Vec::new(),
        }
    }

    /// The actions that run. An EDIT without pairs does not.
    pub fn running(&self) -> impl Iterator<Item = &Action> {
        let chosen = self.plan.actions.iter().zip(&self.actions);
        chosen
            .filter(|(action, chosen)| **chosen && action.kind.has_work())
            .map(|(action, _)| action)
    }

    /// The memos to apply if the plan completes.
    pub fn memos(&self) -> impl Iterator<Item = &memo::MemoChange> {
        let chosen = self.plan.memos.iter().zip(&self.memos);
        chosen.filter(|(_, chosen)| **chosen).map(|(memo, _)| memo)
    }

    /// Returns `true` if nothing is approved.
    pub fn is_empty(&self) -> bool {
        self.running().next().is_none() && self.memos().next().is_none()
    }
}

/// Reason for a prompt.
pub enum Question<'a> {
    /// Message of the next turn.
    NextTurn {
        session: &'a str,
        /// Number of the turn to plan.
        turn: u64,
        /// What an empty input does.
        empty: EmptyInput,
        /// Commands are accepted as well.
        takes_commands: bool,
    },
    /// What to do instead of a declined plan.
    Instead {
        /// Title of the plan.
        title: &'a str,
    },
    /// Reason for overriding a verdict.
    Reason {
        /// Id of the change.
        change: &'a str,
    },
    /// Answer to the model's question.
    Answer {
        /// The question, in Markdown.
        message: &'a str,
        /// Commands are accepted as well.
        takes_commands: bool,
    },
    /// Reply to an answer of the model without a plan. An empty input asks for the plan.
    Prose {
        /// The answer, in Markdown. `None` if it is on the screen.
        message: Option<&'a str>,
    },
}

/// What an empty input at the prompt of the next message does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyInput {
    /// Nothing: the user is asked again.
    Nothing,
    /// Lets the model continue.
    Continue,
    /// Sends the message again, after a model that failed.
    Retry,
}

/// Estimated cost of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Estimate {
    /// Free: no provider is asked.
    Free,
    /// No price is configured.
    Unknown,
    /// Dollars for the input, and the maximum if the length of the answer is limited.
    Dollars(f64, Option<f64>),
}

/// An event during a workflow.
pub enum Event<'a> {
    /// A model is asked.
    Asking {
        model: &'a str,
        /// Estimated tokens of the input.
        tokens: usize,
        /// Estimated cost.
        estimate: Estimate,
    },
    /// Part of the answer arrived, or the wait continues.
    Received {
        /// The answer so far; empty if only the wait continues.
        text: &'a str,
    },
    /// Progress of an acting model.
    Working {
        model: &'a str,
        /// What it is doing.
        progress: &'a AgentProgress<'a>,
    },
    /// The answer is complete.
    Answered,
    /// The plan is invalid.
    Rejected {
        /// Path of the user's file, if the plan came from one.
        file: Option<&'a str>,
        /// All mistakes, with line numbers of that file.
        diagnostics: &'a [Diagnostic],
    },
    /// Progress of filling the worktree; `None` at the end.
    Filling(Option<WriteCount>),
    /// An action starts.
    Started {
        index: usize,
        /// `EXECUTE cargo test`
        label: &'a str,
    },
    /// Output of a command.
    Output {
        /// Raw bytes.
        bytes: &'a [u8],
    },
    /// An action ended.
    Finished {
        index: usize,
        outcome: &'a crate::plan::run::Outcome,
    },
    Notice(Notice),
}

/// Forwards notices about files to the user.
pub fn telling<'a>(user: &'a mut dyn User) -> impl FnMut(FilesNotice) + 'a {
    |notice| user.report(Event::Notice(Notice::Files(notice)))
}

/// Reports before a turn how the user's files differ from the newest turn, whose number is `turn`.
pub fn report_drift(drift: &Drift, turn: u64, user: &mut dyn User) {
    let drift = Box::new(drift.clone());
    user.report(Event::Notice(Notice::Files(FilesNotice::Drifted {
        drift,
        turn,
    })));
}

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
    /// Commands run in a copy of the files that lacks something.
    CopyLacks {
        /// Ignored directories.
        missing: Vec<String>,
        /// Python environments with modules of the user's checkout, which commands cannot read.
        editable: Vec<String>,
    },
    /// The disk of the worktree at this path is full after its commands ran.
    WorktreeDiskFull(String),
    /// The repository contains these settings of agents.
    AgentSettings(Vec<String>),
    /// A server read only a part of the input.
    InputCut {
        /// Tokens of the request, estimated.
        sent: usize,
        /// Tokens that the server counted.
        read: u64,
    },
    /// A price is missing, so the cost is unknown.
    PriceMissing {
        model: String,
        /// The missing field.
        setting: &'static str,
    },
    /// A partial answer was saved in the draft of this session.
    PartialAnswerKept(SessionName),
    /// On a retry, a pipeline step was sent something different than before.
    StepChanged {
        pipeline: String,
        step: String,
    },
    /// On a retry, the user's files differ from those before the turn.
    FilesDiffer,
    /// The user's files changed while a program was asked.
    FilesTouched {
        model: String,
        /// Changed files.
        paths: Vec<String>,
    },
    /// The files changed during the review.
    ChangedUnderReview,
    /// The first input of the session holds the whole project.
    WholeProject {
        /// Number of files.
        files: usize,
        /// Their tokens, estimated.
        tokens: usize,
    },
    /// The plan with this title runs without approval, because it only reads.
    OnlyReads(String),
    /// The plan edits these files, which the model has not seen. They are shown to it, and it is asked
    /// again.
    ShowingFiles(Vec<String>),
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
