//! Agents: models that edit files in a directory instead of answering with a plan.
//!
//! The caller prepares the directory and a launcher that sandboxes the agent. When
//! [`agent::ActingModel::act`] returns, all of its processes have ended. What an agent reports proves
//! nothing; only the files show what it changed. An [`AgentHost`] shows progress and answers
//! questions.

mod acp;
pub mod agent;
mod agent_output;
mod call;
pub mod clock;
mod command;

mod facts;
mod json_line;

pub mod mcp;
pub mod open;
pub mod preset;

pub mod transcript;

use std::path::{Path, PathBuf};
use std::time::Duration;

use self::agent_output::sanitize_command;
use self::clock::AgentLimits;
use self::mcp::McpServer;
use super::{ModelError, TokenUsage};
use crate::host::supervisor::Launcher;
use crate::text::diff::unified;

/// Version of the Agent Client Protocol.
pub const ACP_VERSION: u64 = 1;

/// Besides its worktree and the network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentNeeds {
    /// Absolute paths of its own state, which it must be able to write.
    pub state: Vec<PathBuf>,
    /// Variables with keys that it inherits, although commands of plans don't.
    pub keys: Vec<String>,
    /// Prefixes of files at the top of the worktree that are the agent's notes and not its work,
    /// such as `.aider.`.
    pub leaves: Vec<String>,
    /// It can be a Python program, which imports modules from `PYTHONPATH` when it starts.
    pub can_be_python: bool,
}

#[derive(Debug, Clone)]
pub struct AgentTask<'a> {
    /// System prompt, input and message.
    pub text: &'a str,
    pub message: &'a str,
    /// Absolute.
    pub dir: &'a Path,
    pub launcher: Launcher,
    pub variables: Vec<(String, String)>,
    /// The conversation to resume. Without one, or if it can't be resumed, the agent starts a new
    /// one.
    pub conversation: Option<EarlierConversation>,
    /// Replaces `text` if the conversation resumes: the fate of its last changes, and the message.
    pub further: Option<&'a str>,
    pub limits: AgentLimits,
    /// Of the user's editor. Only an agent of the Agent Client Protocol gets them.
    pub mcp_servers: &'a [McpServer],
    /// If a sandbox confines the agent, its own questions can be switched off.
    pub is_confined: bool,
}

/// A conversation that can be resumed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EarlierConversation {
    pub id: String,
    /// What the agent reported last.
    pub totals: ConversationTotals,
}

/// Usage of a whole conversation, as its agent reports it. `None` if it doesn't.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ConversationTotals {
    pub usage: Option<TokenUsage>,
    /// Cost in US dollars.
    pub cost: Option<f64>,
    /// The reported cost covers only the last call, because the agent lost its earlier totals.
    pub counts_anew: bool,
}

/// What a reported number covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UsageScope {
    #[default]
    Call,
    /// Only the last step of the call.
    LastStep,
    Conversation,
}

/// Cost in US dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct CallCost {
    call: Option<f64>,
    total: Option<f64>,
    counts_anew: bool,
}

impl UsageScope {
    /// Cost of this call, and the total to record. `earlier` is `None` in a new conversation.
    fn cost(self, reported: Option<f64>, earlier: Option<&ConversationTotals>) -> CallCost {
        let is_total = self == UsageScope::Conversation;
        let earlier = earlier.filter(|_| is_total);
        let pair = reported.zip(earlier.and_then(|earlier| earlier.cost));
        let has_lost_totals = pair.is_some_and(|(reported, before)| reported < before);
        let counts_anew = has_lost_totals || earlier.is_some_and(|earlier| earlier.counts_anew);
        let call = match earlier {
            // In billionths of a dollar, so that equal calls cost the same.
            Some(_) if !counts_anew => {
                pair.map(|(reported, before)| ((reported - before) * 1e9).round() / 1e9)
            }
            _ => reported,
        };
        CallCost {
            call: call.filter(|_| self != UsageScope::LastStep),
            // A later total includes a call whose cost was not reported.
            total: reported.filter(|_| is_total).or_else(|| {
                let before = earlier.and_then(|earlier| earlier.cost);
                before.filter(|cost| *cost > 0.0)
            }),
            counts_anew,
        }
    }

    /// Tokens of this call. All zero if they are unknown.
    fn usage(self, reported: TokenUsage, earlier: Option<&ConversationTotals>) -> TokenUsage {
        match (self, earlier) {
            (UsageScope::LastStep, _) => TokenUsage::default(),
            (UsageScope::Call, _) | (UsageScope::Conversation, None) => reported,
            (UsageScope::Conversation, Some(earlier)) => {
                let Some(before) = earlier.usage else {
                    return TokenUsage::default();
                };
                reported.since(before).unwrap_or(reported)
            }
        }
    }
}

impl ProposedText {
    /// Returns the lines that change, truncated and sanitized.
    pub fn changed_lines(&self) -> String {
        let old = self.old.as_deref().unwrap_or_default();
        let text = unified(old, &self.new, ("", ""));
        // The names are left out, and the line with the numbers stays.
        let lines = text.splitn(3, '\n').nth(2);
        sanitize_command(lines.unwrap_or_default())
    }
}

impl AgentTask<'_> {
    /// All of it, or less if a conversation is resumed.
    pub fn prompt(&self, resumed: bool) -> &str {
        self.further.filter(|_| resumed).unwrap_or(self.text)
    }
}

pub trait AgentHost {
    fn progress(&mut self, progress: AgentProgress<'_>);

    /// Can block until the user decides.
    fn permission(&mut self, question: &PermissionQuestion) -> PermissionAnswer;

    /// Polled every few milliseconds. `true` stops the agent: the user cancelled, or the budget is
    /// used up.
    fn stopped(&self) -> bool;
}

#[derive(Debug, Clone, PartialEq)]
pub enum AgentProgress<'p> {
    Started(&'p AgentIdentity),
    /// A chunk of its message. Not sanitized yet.
    Says(&'p str),
    /// A chunk of its reasoning. Not sanitized yet.
    Thinks(&'p str),
    /// A tool was started or changed its status.
    Tool(&'p ToolUse),
    /// The complete current to-do list.
    Plan(&'p [AgentPlanEntry]),
    Used {
        /// All zero if the agent doesn't report them.
        usage: TokenUsage,
        /// Of this call, in US dollars.
        cost: Option<f64>,
        /// `None` if the agent doesn't report it.
        context: Option<ContextUse>,
    },
    /// For the user, as a sentence without a full stop.
    Note(&'p str),
    /// The agent ended, but not because its work was done: the protocol's word for why.
    StoppedEarly(&'p str),
    /// Since the last output. Sent every few milliseconds.
    Idle(Duration),
}

/// Context window of an agent's model, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextUse {
    pub used: u64,
    pub size: u64,
}

/// As the agent reports them, truncated and sanitized.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentIdentity {
    pub name: String,
    /// Empty if the agent doesn't report it.
    pub version: String,
}

/// Truncated and sanitized.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolUse {
    /// Unique within the conversation.
    pub id: String,
    pub title: String,
    /// Such as `edit`, `execute` or `read`. Can be empty.
    pub kind: String,
    pub status: ToolStatus,
    /// First line of the result. Empty without one, and for a file that was read.
    pub result: String,
    pub exit_code: Option<i64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolStatus {
    #[default]
    Pending,
    Running,
    Completed,
    /// Also if the user rejected it.
    Failed,
}

/// Truncated and sanitized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPlanEntry {
    pub text: String,
    /// `pending`, `in_progress` or `completed`.
    pub status: String,
}

/// Truncated and sanitized.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PermissionQuestion {
    /// Id of the tool call.
    pub tool: String,
    pub title: String,
    /// Such as `edit` or `execute`. Can be empty.
    pub kind: String,
    /// The command or paths, if the agent reports them.
    pub detail: Vec<String>,
    /// What it would do to files. Their texts are complete and not sanitized.
    pub differences: Vec<ProposedText>,
    /// A sandbox confines the agent.
    pub is_confined: bool,
}

/// A file that a tool would write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProposedText {
    pub path: String,
    /// `None` if the file is new.
    pub old: Option<String>,
    pub new: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PermissionAnswer {
    pub decision: PermissionDecision,
    pub by: PermissionGiver,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionDecision {
    Once,
    /// For this kind of tool and the rest of the call.
    Always,
    No,
    /// No decision: the call is being cancelled.
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionGiver {
    Person,
    /// Approved automatically, since a sandbox confines the agent.
    Sandbox,
    /// In advance, with `-y`.
    Beforehand,
    /// There was no terminal to ask at.
    Nobody,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentResult {
    /// The last one, complete.
    pub message: String,
    /// `None` if it can't be resumed.
    pub conversation: Option<String>,
    pub resumed: bool,
    pub agent: Option<AgentIdentity>,
    /// All zero if the agent doesn't report them.
    pub usage: TokenUsage,
    /// US dollars. `None` if the agent doesn't report it.
    pub cost: Option<f64>,
    /// Usage of the whole conversation.
    pub totals: ConversationTotals,
    /// The protocol's word for why it ended. `None` if it finished its work.
    pub stop: Option<String>,
    /// Contents of `transcript.jsonl`.
    pub transcript: Vec<u8>,
    /// Long texts that the transcript names, by artifact.
    pub texts: Vec<(String, Vec<u8>)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AgentFailure {
    pub error: ModelError,
    /// `stop` is `cancelled`.
    pub work: AgentResult,
}

impl From<ModelError> for Box<AgentFailure> {
    fn from(error: ModelError) -> Box<AgentFailure> {
        let work = AgentResult::default();
        Box::new(AgentFailure { error, work })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(cost: Option<f64>, input: u64) -> ConversationTotals {
        let usage = TokenUsage {
            input,
            ..TokenUsage::default()
        };
        ConversationTotals {
            usage: usage.is_known().then_some(usage),
            cost,
            counts_anew: false,
        }
    }

    #[track_caller]
    fn check(
        scope: UsageScope,
        earlier: Option<&ConversationTotals>,
        expected: (Option<f64>, u64),
    ) {
        let reported = totals(Some(0.75), 300);
        let cost = scope.cost(reported.cost, earlier);
        let usage = scope.usage(reported.usage.unwrap_or_default(), earlier);
        assert_eq!((cost.call, usage.input), expected);
    }

    #[test]
    fn usage_is_that_of_the_call() {
        let earlier = totals(Some(0.5), 200);
        check(UsageScope::Call, Some(&earlier), (Some(0.75), 300));
        check(UsageScope::LastStep, None, (None, 0));
        check(UsageScope::Conversation, None, (Some(0.75), 300));
        check(UsageScope::Conversation, Some(&earlier), (Some(0.25), 100));
        // Unknown stays unknown.
        check(UsageScope::Conversation, Some(&totals(None, 0)), (None, 0));
        // The agent counts anew.
        let more = totals(Some(1.0), 400);
        check(UsageScope::Conversation, Some(&more), (Some(0.75), 300));
        assert_eq!(UsageScope::Call.cost(None, None), CallCost::default());
    }

    /// Costs of the calls of a conversation in which the agent reports these.
    fn costs<const N: usize>(reported: [f64; N]) -> [Option<f64>; N] {
        let mut earlier: Option<ConversationTotals> = None;
        reported.map(|reported| {
            let scope = UsageScope::Conversation;
            let cost = scope.cost(Some(reported), earlier.as_ref());
            earlier = Some(ConversationTotals {
                cost: cost.total,
                counts_anew: cost.counts_anew,
                ..ConversationTotals::default()
            });
            cost.call
        })
    }

    /// Regression: all later calls were unknown, too, and `limits.cost` did not count them.
    #[test]
    fn a_call_of_unknown_cost_is_paid_with_the_next_one() {
        let [before, total] = [0.75, 1.0].map(|cost| totals(Some(cost), 200));
        let scope = UsageScope::Conversation;
        let unknown = scope.cost(None, Some(&before));
        assert_eq!((unknown.call, unknown.total), (None, before.cost));
        assert_eq!(scope.cost(total.cost, Some(&before)).call, Some(0.25));
        assert_eq!(scope.cost(None, None), CallCost::default());
    }

    /// Regression: the third of three calls with equal costs had none.
    #[test]
    fn an_agent_that_restarts_its_count_is_recognized() {
        let reported = [0.75, 0.25, 0.25, 0.5];
        assert_eq!(costs(reported), reported.map(Some));
    }

    /// Regression: a call of a free model cost as much as the conversation, and so did each call
    /// after one without a known price.
    #[test]
    fn a_call_without_a_cost_does_not_restart_the_count() {
        assert_eq!(costs([0.75, 0.75, 1.0]), [0.75, 0.0, 0.25].map(Some));
        let calls = costs([0.0, 0.0, 0.5, 0.75]);
        assert_eq!(calls, [0.0, 0.0, 0.5, 0.25].map(Some));
    }
}
