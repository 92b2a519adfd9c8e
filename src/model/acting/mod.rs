//! Models that act: agents whose answer is what they did to the files of a folder.
//!
//! An agent runs in a folder that the caller made for it, confined by the policy of the caller's
//! launcher, and all that it started is gone when [`ActingModel::act`] returns. What it changed is
//! not told here: only the folder tells. Nothing here knows sessions, plans or a terminal; who
//! watches and who answers is an [`AgentHost`].

mod acp;
mod agent;
mod clock;
mod command;
mod complaint;
mod facts;
mod label;
mod lines;
pub mod open;
pub mod preset;
mod record;
pub mod transcript;

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{ModelError, TokenUsage};
use crate::host::supervisor::Launcher;

/// A model that edits files itself.
pub trait ActingModel: Send {
    /// Returns the name under which the user knows it.
    fn name(&self) -> &str;

    /// Returns what it needs of the machine, so that the caller can make its policy.
    fn needs(&self) -> &AgentNeeds;

    /// Returns the limits of its settings.
    fn limits(&self) -> AgentLimits;

    /// Lets it work in a folder until it is done, fails, meets a limit or is stopped. Nothing that
    /// it started is left then.
    ///
    /// # Errors
    /// Any [`ModelError`], with what was done until then: the files may have changed all the same.
    fn act(
        &self,
        task: &AgentTask<'_>,
        host: &mut dyn AgentHost,
    ) -> Result<AgentResult, Box<AgentFailure>>;
}

/// What an agent needs of the machine besides its folder. The network it needs always.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentNeeds {
    /// The folders and files with its own state, which it must be able to write: absolute.
    pub state: Vec<PathBuf>,
    /// The variables with keys that it is given although commands are given none.
    pub keys: Vec<String>,
    /// How names at the top of its folder begin that are its own notes and no work: `.aider.`.
    pub leaves: Vec<String>,
}

/// What an agent is to do, and where.
#[derive(Debug, Clone)]
pub struct AgentTask<'a> {
    /// System prompt, input and message as one text.
    pub text: &'a str,
    /// The message alone.
    pub message: &'a str,
    /// The folder in which it works: absolute.
    pub folder: &'a Path,
    /// What starts it, with the policy that confines it.
    pub launcher: Launcher,
    /// Further variables that it gets.
    pub variables: Vec<(String, String)>,
    /// The conversation to go on with; a new one without it, or where it cannot be resumed.
    pub conversation: Option<String>,
    /// What it is told in place of `text` where that conversation goes on: what became of its last
    /// changes, and the message.
    pub further: Option<&'a str>,
    /// Where it is stopped.
    pub limits: AgentLimits,
    /// Whether it is confined, so that its own questions can be switched off.
    pub is_confined: bool,
}

impl AgentTask<'_> {
    /// Returns what it is told: the whole, or less where its conversation goes on.
    pub fn told(&self, resumed: bool) -> &str {
        self.further.filter(|_| resumed).unwrap_or(self.text)
    }
}

/// Where an agent is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// The time of the whole; waiting for a person is not counted.
    pub total: Duration,
    /// The longest silence.
    pub idle: Duration,
    /// The most that it may say, in bytes.
    pub output: u64,
}

/// Who watches an agent and answers its questions.
pub trait AgentHost {
    /// Hears of something that happens.
    fn progress(&mut self, progress: AgentProgress<'_>);

    /// Answers a question of the agent's; may take as long as a person does.
    fn permission(&mut self, question: &PermissionQuestion) -> PermissionAnswer;

    /// Says whether it is to be stopped: the user wants it, or it costs too much. Asked every few
    /// milliseconds.
    fn stopped(&self) -> bool;
}

/// Something that happens while an agent works.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentProgress<'p> {
    /// It said who it is.
    Started(&'p AgentIdentity),
    /// A piece of its message, as it came: not fit for a terminal yet.
    Says(&'p str),
    /// A piece of its reasoning, as it came: not fit for a terminal yet.
    Thinks(&'p str),
    /// It uses a tool, or a tool's state has changed.
    Tool(&'p ToolUse),
    /// What it plans to do, the whole list each time.
    Plan(&'p [AgentPlanEntry]),
    /// What it has used so far, as far as it tells.
    Used {
        /// The tokens; all zero where it does not tell.
        usage: TokenUsage,
        /// The dollars of this call.
        cost: Option<f64>,
    },
    /// Something that the user should know, in a sentence without a full stop.
    Note(&'p str),
    /// Nothing has come for so long. Told every few milliseconds.
    Quiet(Duration),
}

/// Who an agent says it is. Fit for a terminal, and short.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentIdentity {
    /// Its name.
    pub name: String,
    /// Its version; empty where it does not tell.
    pub version: String,
}

/// A tool that an agent uses. Fit for a terminal, and short.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolUse {
    /// What distinguishes it from the others.
    pub id: String,
    /// What it does, in the agent's words.
    pub title: String,
    /// `edit`, `execute`, `read`, ...; empty where the agent does not tell.
    pub kind: String,
    /// How far it is.
    pub status: ToolStatus,
}

/// How far a tool is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolStatus {
    /// Not begun.
    #[default]
    Pending,
    /// At work.
    Running,
    /// Done.
    Completed,
    /// Failed, or refused.
    Failed,
}

/// A step of what an agent plans. Fit for a terminal, and short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPlanEntry {
    /// What is to be done.
    pub content: String,
    /// `pending`, `in_progress` or `completed`.
    pub status: String,
}

/// A question of an agent's: may it do this? Fit for a terminal, and short.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PermissionQuestion {
    /// What it wants to do, in its words.
    pub title: String,
    /// The kind of tool: `edit`, `execute`, ...; empty where the agent does not tell.
    pub kind: String,
    /// The command or the paths, where the agent tells them.
    pub detail: Vec<String>,
}

/// An answer, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PermissionAnswer {
    /// The answer.
    pub decision: PermissionDecision,
    /// Whose it is.
    pub by: PermissionGiver,
}

/// What a question of an agent's is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionDecision {
    /// Yes, this time.
    Once,
    /// Yes, and so for the same kind of tool as long as this call lasts.
    Always,
    /// No.
    No,
    /// No answer: all is stopped.
    Cancelled,
}

/// Whose an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionGiver {
    /// The person at the terminal.
    Person,
    /// The sandbox, which bounds what it may do.
    Sandbox,
    /// Whoever said beforehand, with `-y`, that all is approved.
    Beforehand,
    /// Nobody could be asked.
    Nobody,
}

/// What an agent did, as far as it tells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentResult {
    /// Its last message, whole.
    pub message: String,
    /// The conversation, where it can be resumed.
    pub conversation: Option<String>,
    /// Whether it went on with the conversation of the task.
    pub resumed: bool,
    /// Who it says it is.
    pub agent: Option<AgentIdentity>,
    /// The tokens; all zero where it does not tell.
    pub usage: TokenUsage,
    /// The dollars, where it tells.
    pub cost: Option<f64>,
    /// Why it ended.
    pub stop: StopReason,
    /// `transcript.jsonl`.
    pub transcript: Vec<u8>,
}

/// Why an agent ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StopReason {
    /// It was done.
    #[default]
    Done,
    /// It may not write more.
    MaxTokens,
    /// It may not ask its model more often.
    MaxRequests,
    /// It refused.
    Refused,
    /// It was cancelled, or broke off.
    Cancelled,
    /// In its own word.
    Other(String),
}

/// Why an agent did not end well, and what it did until then.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentFailure {
    /// What went wrong.
    pub error: ModelError,
    /// What is known of its work; `stop` says [`StopReason::Cancelled`].
    pub work: AgentResult,
}

impl From<ModelError> for Box<AgentFailure> {
    /// Returns the failure of an agent that has done nothing.
    fn from(error: ModelError) -> Box<AgentFailure> {
        let work = AgentResult::default();
        Box::new(AgentFailure { error, work })
    }
}
