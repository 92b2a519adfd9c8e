//! The user, as seen by workflows. Implementations can be a terminal, an editor, flags, or a test.

use std::path::PathBuf;

use crate::change::finding::Finding;
use crate::git::land::shared::{RestoredState, SharedChanges};
use crate::git::worktree::progress::WriteCount;
use crate::model::acting::transcript::CommandCounts;
use crate::model::acting::{AgentProgress, PermissionDecision, PermissionQuestion};
use crate::plan::action::Action;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::repair::Repaired;
use crate::plan::validate::Simulation;
use crate::plan::{Plan, memo};
use crate::session::comments::{FollowedComment, LineComment};
use crate::session::input::ListScope;
use crate::session::meta::NotCaptured;
use crate::session::name::SessionName;
use crate::text::resource::Resource;
use crate::workspace::drift::{Drift, TurnName};
use crate::workspace::notice::FilesNotice;

#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct NobodyToAsk {
    pub what: String,
    /// Flag or command that answers it.
    pub hint: String,
}

impl NobodyToAsk {
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> NobodyToAsk {
        NobodyToAsk {
            what: message.into(),
            hint: hint.into(),
        }
    }
}

pub trait User {
    fn review(&mut self, proposal: &ReviewRequest<'_>) -> anyhow::Result<Decision>;

    /// For example by `-y`.
    fn approves_unseen(&self) -> bool {
        false
    }

    /// `None` if the user leaves. Fails with [`NobodyToAsk`].
    fn ask(&mut self, question: &Question<'_>) -> anyhow::Result<Option<String>>;

    /// `flag` is the option that answers without a user.
    fn confirm(&mut self, question: &str, flag: &str) -> anyhow::Result<bool>;

    /// The last line is the question. Returns an index. `None` if the user leaves or cannot be asked.
    fn choose(
        &mut self,
        _question: &str,
        _choices: &[Choice<'_>],
    ) -> anyhow::Result<Option<usize>> {
        Ok(None)
    }

    /// Decides on a request of an agent. `None` if the user cannot be asked. A user who leaves
    /// interrupts the program: without an answer, the agent would continue.
    fn permit(
        &mut self,
        _agent: &str,
        _question: &PermissionQuestion,
    ) -> anyhow::Result<Option<PermissionDecision>> {
        Ok(None)
    }

    /// Must not block.
    fn report(&mut self, event: Event<'_>);
}

/// The user, without reports of actions: their results are shown elsewhere.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice<'a> {
    pub key: char,
    /// With the key in parentheses: `(v)iew`.
    pub label: &'a str,
}

pub struct ReviewRequest<'a> {
    pub session: &'a str,
    pub turn: u64,
    pub plan: &'a Plan,
    /// After repair.
    pub text: &'a str,
    pub repair: &'a Repaired,
    /// What each action would do to the files.
    pub simulation: &'a Simulation,
    /// How commands will be confined: `sandboxed, no network`, `not sandboxed`.
    pub confinement: &'a dyn Fn() -> String,
    /// Validates a changed plan against the same snapshot.
    pub revise: &'a dyn Fn(&Plan) -> anyhow::Result<Simulation>,
    /// From the same snapshot.
    pub read_resource: &'a dyn Fn(&Resource) -> anyhow::Result<ResourceContent>,
    /// Set if the user's files changed during the review.
    pub earlier: Option<&'a Approved>,
    /// Comments on the previous plan, which was declined or rejected, with the state of their lines.
    pub comments: &'a [FollowedComment],
    /// Comments on this plan that are not sent yet.
    pub written: &'a [LineComment],
    /// Saves comments that are not sent yet.
    pub save_comments: &'a dyn Fn(&[LineComment]) -> anyhow::Result<()>,
    /// Commands that the agent ran, by its transcript.
    pub agent_commands: CommandCounts,
    /// Why the agent that made the plan stopped before its work was done.
    pub agent_stop: Option<&'a str>,
    /// The rendered transcript. `None` if no agent made the plan.
    pub transcript: Option<&'a str>,
}

impl ReviewRequest<'_> {
    pub fn with<'a>(&'a self, plan: &'a Plan, simulation: &'a Simulation) -> ReviewRequest<'a> {
        ReviewRequest {
            plan,
            simulation,
            ..*self
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceContent {
    /// Of a file, page or artifact.
    Content(Vec<u8>),
    /// Paths of the directory's files.
    Dir(Vec<String>),
    Nothing(&'static str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Run(Approved),
    /// Declines the plan, with a reply. `None` prompts for it.
    Skip(Option<String>),
    /// Declines the plan with comments on its result.
    Comment(Vec<LineComment>),
    /// Without a decision.
    Quit,
}

/// With the user's changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approved {
    /// Has the same actions in the same order. Deselected pairs are removed from their EDIT.
    pub plan: Plan,
    /// Whether each action runs.
    pub actions: Vec<bool>,
    /// Whether each memo is applied.
    pub memos: Vec<bool>,
    /// Indices of changed actions.
    pub modified: Vec<usize>,
}

impl Approved {
    pub fn all(plan: &Plan) -> Approved {
        Approved {
            plan: plan.clone(),
            actions: vec![true; plan.actions.len()],
            memos: vec![true; plan.memos.len()],
            modified: Vec::new(),
        }
    }

    /// An EDIT without pairs does not run.
    pub fn running(&self) -> impl Iterator<Item = &Action> {
        let chosen = self.plan.actions.iter().zip(&self.actions);
        chosen
            .filter(|(action, chosen)| **chosen && action.kind.has_work())
            .map(|(action, _)| action)
    }

    /// Applied if the plan completes.
    pub fn memos(&self) -> impl Iterator<Item = &memo::MemoChange> {
        let chosen = self.plan.memos.iter().zip(&self.memos);
        chosen.filter(|(_, chosen)| **chosen).map(|(memo, _)| memo)
    }

    pub fn is_empty(&self) -> bool {
        self.running().next().is_none() && self.memos().next().is_none()
    }
}

pub enum Question<'a> {
    NextTurn {
        session: &'a str,
        turn: u64,
        /// What an empty input does.
        empty: EmptyInput,
        /// Commands are accepted as well.
        takes_commands: bool,
    },
    /// What to do instead of a declined plan.
    Instead { title: &'a str },
    /// For overriding a verdict.
    Reason { change: &'a str },
    Answer {
        /// Markdown.
        message: &'a str,
        /// The turn of the answer at the prompt of a loop, where commands are accepted as well.
        turn_of_loop: Option<u64>,
    },
    /// Reply to an answer of the model without a plan. An empty input asks for the plan.
    Prose {
        turn: u64,
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
    /// Asks the model again, after it failed or its plans were rejected.
    Retry,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Estimate {
    /// No provider is asked.
    Free,
    /// No price is configured.
    Unknown,
    /// For the input, and the maximum if the length of the answer is limited.
    Dollars(f64, Option<f64>),
}

pub enum Event<'a> {
    Asking {
        model: &'a str,
        /// Of the input, estimated.
        tokens: usize,
        estimate: Estimate,
    },
    /// Part of the answer arrived, or the wait continues.
    Received {
        /// All of it so far; empty if only the wait continues.
        text: &'a str,
    },
    Working(&'a AgentProgress<'a>),
    Answered {
        failed: bool,
    },
    Rejected {
        /// The user's file, if the plan came from one.
        file: Option<&'a str>,
        /// With line numbers of that file.
        diagnostics: &'a [Diagnostic],
    },
    /// Progress of filling the worktree; `None` at the end.
    Filling(Option<WriteCount>),
    Started {
        index: usize,
        /// `EXECUTE cargo test`
        label: &'a str,
    },
    Output {
        bytes: &'a [u8],
    },
    Finished {
        index: usize,
        outcome: &'a crate::plan::run::Outcome,
    },
    Notice(Notice),
}

pub fn telling<'a>(user: &'a mut dyn User) -> impl FnMut(FilesNotice) + 'a {
    |notice| user.report(Event::Notice(Notice::Files(notice)))
}

/// Before a turn. `turn` is the number of the newest turn.
pub fn report_drift(drift: &Drift, turn: u64, user: &mut dyn User) {
    let drift = Box::new(drift.clone());
    user.report(Event::Notice(Notice::Files(FilesNotice::Drifted {
        drift,
        turn,
    })));
}

#[derive(Debug, Clone)]
pub enum Notice {
    Files(FilesNotice),
    /// Hooks changed HEAD, the stash or other refs while git committed.
    SharedChanged {
        changes: Box<SharedChanges>,
        restored: RestoredState,
    },
    /// New files that only commands made are about to be committed.
    MadeByCommands(Vec<String>),
    /// No hook runs, because the directory in `core.hooksPath` does not exist.
    NoHooks {
        dir: PathBuf,
        /// Names the directory.
        file: PathBuf,
    },
    SessionStarted(SessionName),
    /// By another process.
    SessionRenamed {
        old: SessionName,
        new: SessionName,
    },
    /// Turns of a change's session are not in the user's files. `true` if git took the files away, so
    /// that only `restore --exact` restores them.
    WorkLacking(SessionName, Vec<TurnName>, bool),
    /// The answer. Another process added a turn while the user typed it.
    AnswerNotSent(String),
    /// First line of the message from the draft.
    MessageUsed(String),
    MessageKept,
    /// The waiting plan is reviewed before the message is used.
    PlanComesFirst,
    /// A plan is waiting.
    MessageNotUsed,
    /// A waiting plan, by one of the user's.
    PlanReplaced {
        title: String,
        /// Of the draft, with the replaced plan.
        file: String,
    },
    KeyRemoved,
    /// The reason.
    DraftNotKept(String),
    /// The input of the turn exceeds `context.budget`.
    LargeInput {
        /// Estimated.
        tokens: usize,
        /// Largest first.
        largest: Vec<LargeEntry>,
        /// The user is at the prompt of a loop.
        takes_commands: bool,
    },
    StepStarted {
        /// From 1.
        number: usize,
        of: usize,
        name: String,
    },
    ModelRemark(String),
    /// Its plan cannot express these changes.
    AgentWorkLeftOut(Vec<NotCaptured>),
    /// Why commands run in a copy of the files, although this machine supports overlays.
    CommandsInCopy(String),
    /// Commands run in a copy of the files, or in an overlay at another path, and lack something there.
    CopyLacks {
        /// Ignored directories.
        missing: Vec<String>,
        /// Python environments with modules of the user's checkout, which commands cannot read.
        editable: Vec<String>,
    },
    /// The disk of the worktree at this path is full after its commands ran.
    WorktreeDiskFull(String),
    /// Found in the repository.
    AgentSettings(Vec<String>),
    /// A path or variable that was denied to an agent, as a sentence.
    AgentDenied(String),
    /// The agent that made the plan stopped before its work was done.
    AgentStopped(String),
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
        setting: &'static str,
    },
    /// In the draft of this session.
    PartialAnswerKept(SessionName),
    /// On a retry, a pipeline step was sent something different than before.
    StepChanged {
        pipeline: String,
        step: String,
    },
    /// On a retry, the user's files differ from those before the turn. A restore to the given turn
    /// makes them equal.
    FilesDiffer(String),
    /// The user's files changed while a program was asked.
    FilesTouched {
        model: String,
        paths: Vec<String>,
    },
    ChangedUnderReview,
    /// Files of rejected actions that the user changed while the plan waited.
    ChangedSincePlan(Vec<String>),
    /// The first input of the session holds the whole project.
    WholeProject {
        files: usize,
        /// Their tokens, estimated.
        tokens: usize,
    },
    /// The plan with this title runs without approval, because it only reads.
    OnlyReads(String),
    /// The plan edits these files, which the model has not seen. They are shown to it, and it is asked
    /// again.
    ShowingFiles(Vec<String>),
    /// The model is not asked again.
    NotReplanned {
        why: NoReplan,
        /// The user is at the prompt of a loop.
        takes_commands: bool,
        is_question: bool,
    },
    /// Why no plan was made from the user's reply.
    NoPlanInstead(String),
    SetupStarted(String),
    /// Names the holder of the lock.
    WaitingToRecord(String),
    /// The reason.
    PlanNotKept(String),
    /// A bisection tested a turn.
    TurnTried {
        /// `None` for the files before the first turn.
        turn: Option<(u64, String)>,
        exit_code: i32,
    },
    /// The session. Its worktree is kept.
    WorktreeInUse(String),
    DocumentMistakes(Vec<Finding>),
    /// Since they were challenged.
    EditedDocuments(Vec<String>),
    TaskStarted {
        number: String,
        title: String,
    },
    /// Number of the review.
    FixStarted(usize),
    RoleAsked {
        /// In the configuration.
        role: &'static str,
        /// What the role should write.
        about: String,
    },
    /// The model is asked again.
    AnswerUnusable {
        /// What the answer should be.
        about: String,
        mistakes: Vec<String>,
    },
}

/// An entry of a context list, with what it adds to an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeEntry {
    pub scope: ListScope,
    pub name: String,
    pub tokens: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoReplan {
    /// Rejected in a row.
    TooMany(u32),
    SameMistake,
    NoModel,
    /// The reason.
    Failed(String),
}
