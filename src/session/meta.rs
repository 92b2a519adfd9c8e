//! `meta.yaml`: facts about a turn that no other artifact records (`docs/formats/turn.md`).

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::limited::{self, LimitedEntry};
use crate::git::object::CommitId;
use crate::text::yaml::guard;

/// The format version that TeDDy writes.
pub const SCHEMA: u32 = 1;

const SCHEMA_LINE: &str = "schema: 1\n";
const MAX_META: usize = 8 << 20;

/// State of a turn, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The session's start, turn 0.
    Started,
    /// In progress, without a plan.
    Ready,
    /// In progress, with a plan that waits to be executed.
    Planned,
    /// The plan ran and every action succeeded.
    Executed,
    /// The plan ran and an action failed.
    Failed,
    /// The run was cut short, and none of it was applied to the user's files.
    Interrupted,
    /// The plan failed validation and did not run.
    Rejected,
    /// The user declined the plan.
    Declined,
    /// The turn is a restore, undo or redo.
    Restored,
    /// The turn committed other turns to one of the user's branches.
    Landed,
    /// The turn applied a turn of another session.
    Picked,
    /// The turn records work that was done without TeDDy.
    Recorded,
}

impl Meta {
    /// Returns the metadata of a new turn.
    pub fn of(turn_id: Uuid, number: u64, status: Status, agent: &str) -> Meta {
        Meta {
            schema: SCHEMA,
            turn_id,
            parent_turn_id: None,
            caller_turn_id: None,
            number,
            status,
            agent: agent.to_owned(),
            origin: MessageOrigin::User,
            replans: 0,
            model: None,
            work: None,
            question: false,
            made: false,
            acted: None,
            pipeline: None,
            spent: None,
            approved_by: None,
            network: Vec::new(),
            interruption: None,
            failure: None,
            repair: None,
            started: None,
            ended: None,
            workspace: None,
            restored: None,
            landed: None,
            picked: None,
            recorded: None,
            mistakes: Vec::new(),
            not_captured: Vec::new(),
            repository_changes: Vec::new(),
        }
    }
}

impl Status {
    /// Returns the value of the `Teddy-Status` trailer.
    pub fn word(self) -> &'static str {
        match self {
            Status::Started => "started",
            Status::Ready => "ready",
            Status::Planned => "planned",
            Status::Executed => "executed",
            Status::Failed => "failed",
            Status::Interrupted => "interrupted",
            Status::Rejected => "rejected",
            Status::Declined => "declined",
            Status::Restored => "restored",
            Status::Landed => "landed",
            Status::Picked => "picked",
            Status::Recorded => "recorded",
        }
    }
}

/// Author of `user_prompt.txt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageOrigin {
    #[default]
    User,
    /// Validation, with the mistakes of the previous plan.
    Validation,
    /// An unattended loop, which continues without the user.
    Loop,
}

/// The approver of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Approver {
    /// The user, in the review.
    #[serde(rename = "person")]
    Person,
    /// The user, in advance, with `-y`.
    #[serde(rename = "-y")]
    Yes,
    /// The user, in advance for all turns, with `--yolo`.
    #[serde(rename = "--yolo")]
    Yolo,
    /// Not needed: the plan only reads files of the project, or tells something.
    #[serde(rename = "reads")]
    Reads,
    /// A value of a later version.
    #[serde(other, rename = "unknown")]
    Unknown,
}

impl Approver {
    /// Returns the text for a report.
    pub fn describe(self) -> &'static str {
        match self {
            Approver::Person => "the user, in the review",
            Approver::Yes => "the user beforehand, with `-y`",
            Approver::Yolo => "the user beforehand, with `--yolo`",
            Approver::Reads => "not needed: it only reads or tells something",
            Approver::Unknown => "unknown",
        }
    }
}

/// Facts about a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Format version.
    pub schema: u32,
    pub turn_id: Uuid,
    /// The turn that it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_turn_id: Option<Uuid>,
    /// The turn whose agent handed over, while an invoked agent works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller_turn_id: Option<Uuid>,
    /// Distance from the start of the session.
    pub number: u64,
    /// State of the turn.
    pub status: Status,
    /// Name of the agent's prompt.
    pub agent: String,
    /// Author of `user_prompt.txt`.
    #[serde(default)]
    pub origin: MessageOrigin,
    /// The piece of work of a change that the message describes. `None` for the user's own message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
    /// `true` if TeDDy derived the plan from an agent's edits.
    #[serde(default, skip_serializing_if = "is_false")]
    pub made: bool,
    /// `true` if the message is a question, so the turn changes nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub question: bool,
    /// For a model that edits files itself: its program and conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acted: Option<Acted>,
    /// Number of consecutive rejected plans before this turn.
    #[serde(default)]
    pub replans: u32,
    /// The model and its usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelUse>,
    /// The pipeline that made the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<String>,
    /// Dollars that count against the limit, including discarded answers. Calls without a known
    /// price are not counted.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "limited::dollars"
    )]
    pub spent: Option<f64>,
    /// For a plan that ran: who approved it. Missing in turns of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<Approver>,
    /// For a plan that ran: numbers of the actions to which the user granted the network in the
    /// review.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<usize>,
    /// For an interrupted run: what interrupted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption: Option<String>,
    /// In progress: why the last call did not produce a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Assumptions that repair made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<String>,
    /// Start of the turn, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// Time of its recording, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The workspace commits around the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
    /// For a restore: its target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Restored>,
    /// For a landing: its branch and commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<Landed>,
    /// For a pick: the source turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picked: Option<Picked>,
    /// For work without TeDDy: its author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
    /// For a rejected plan: identifiers of its mistakes, to detect a model that repeats them.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limited::list"
    )]
    pub mistakes: Vec<String>,
    /// Files that are missing from the snapshot; truncated on writing.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "limited::as_many_as_fit",
        deserialize_with = "limited::list"
    )]
    pub not_captured: Vec<NotCaptured>,
    /// Changes that a command made to the repository itself; truncated on writing.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "limited::as_many_as_fit",
        deserialize_with = "limited::list"
    )]
    pub repository_changes: Vec<String>,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl ModelUse {
    /// Returns the tokens read and written, if both are known.
    pub fn tokens(&self) -> Option<(u64, u64)> {
        self.tokens_in.zip(self.tokens_out)
    }

    /// Adds a later exchange of the same turn: sums the usage, and keeps the names of the later
    /// one.
    #[must_use]
    pub fn then(self, next: ModelUse) -> ModelUse {
        // A sum with an unknown part is unknown.
        let sum = |before: Option<u64>, after: Option<u64>| {
            before
                .zip(after)
                .map(|(before, after)| before.saturating_add(after))
        };
        ModelUse {
            tokens_in: sum(self.tokens_in, next.tokens_in),
            tokens_out: sum(self.tokens_out, next.tokens_out),
            tokens_cached: self.tokens_cached.saturating_add(next.tokens_cached),
            tokens_cache_written: self
                .tokens_cache_written
                .saturating_add(next.tokens_cache_written),
            cost: self
                .cost
                .zip(next.cost)
                .map(|(before, after)| before + after),
            ..next
        }
    }
}

/// `meta.yaml` of a pipeline step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepMeta {
    /// Format version.
    pub schema: u32,
    pub step: String,
    /// The model and its usage.
    pub model: ModelUse,
}

/// The workspace commits around a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// Name of the checkout among the repository's worktrees.
    pub worktree: String,
    /// The checked-out branch, or `HEAD` if it was detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The workspace commit before the turn.
    pub before: CommitId,
    /// The workspace commit after it.
    pub after: CommitId,
    /// `true` if `after` was applied to the user's files.
    pub synced: bool,
    /// Paths that overlapped with the user's edits. Truncated on writing; the publication has all
    /// of them.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "limited::as_many_as_fit",
        deserialize_with = "limited::list"
    )]
    pub overlaps: Vec<String>,
}

impl Workspace {
    /// Returns `true` if the whole result was applied to the user's files.
    pub fn is_whole(&self) -> bool {
        self.synced && self.overlaps.is_empty()
    }
}

/// A file that is missing from the snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotCaptured {
    pub path: String,
    /// Why it was not captured.
    pub reason: String,
}

impl LimitedEntry for NotCaptured {
    fn text_bytes(&self) -> usize {
        self.path.len() + self.reason.len()
    }
}

/// `next/meta.yaml`: the predecessor of the next turn.
///
/// It has no id for the next turn: several forks can start from here, and each turn needs its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextMeta {
    /// Format version.
    pub schema: u32,
    /// The turn that it continues.
    pub parent_turn_id: Uuid,
    /// The turn whose agent handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller_turn_id: Option<Uuid>,
    pub agent: String,
}

/// Parses `meta.yaml` or `next/meta.yaml`. Fails with an explanation if the schema is newer than
/// [`SCHEMA`].
pub fn read<T: for<'de> Deserialize<'de>>(text: &str) -> anyhow::Result<T> {
    guard(text, MAX_META)?;
    // Skips the first parse for the current schema. YAML rejects duplicate keys, so there is no
    // other version further down.
    if !text.starts_with(SCHEMA_LINE) {
        let version: MetaVersion = serde_yaml::from_str(text)?;
        if version.schema > SCHEMA {
            anyhow::bail!(
                "has schema {}, and this teddy reads up to {SCHEMA}: it was written by a newer one",
                version.schema
            );
        }
    }

    Ok(serde_yaml::from_str(text)?)
}

#[derive(Deserialize)]
struct MetaVersion {
    schema: u32,
}

/// Serializes `meta.yaml` or `next/meta.yaml`.
pub fn write(value: &impl Serialize) -> String {
    serde_yaml::to_string(value).expect("plain structs of strings and numbers are always YAML")
}

/// The program of an acting model, as it identifies itself, and how to resume its conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Acted {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its conversation id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Name of the worktree of the conversation. It can be resumed only there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// `true` if it resumed the conversation of the previous turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// Dollars that the whole conversation has cost, if the program reports them.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "limited::dollars"
    )]
    pub total_cost: Option<f64>,
    /// Tokens of the whole conversation, if the program reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<TotalTokens>,
}

/// Tokens of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TotalTokens {
    /// Input tokens.
    #[serde(deserialize_with = "limited::tokens")]
    pub input: u64,
    /// Output tokens.
    #[serde(deserialize_with = "limited::tokens")]
    pub output: u64,
    /// Input tokens that were read from a cache.
    #[serde(deserialize_with = "limited::tokens")]
    pub cached: u64,
    /// Input tokens that were written to a cache.
    #[serde(deserialize_with = "limited::tokens")]
    pub cache_written: u64,
}

/// A model and its usage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelUse {
    /// The requested model.
    pub asked: String,
    /// The model that answered, as it identifies itself.
    pub answered: String,
    /// Input tokens. `None` if the model did not report them, as programs don't.
    #[serde(default, deserialize_with = "limited::known_tokens")]
    pub tokens_in: Option<u64>,
    /// Output tokens.
    #[serde(default, deserialize_with = "limited::known_tokens")]
    pub tokens_out: Option<u64>,
    /// Input tokens that were read from the provider's cache.
    #[serde(default, deserialize_with = "limited::tokens")]
    pub tokens_cached: u64,
    /// Input tokens that were written to the provider's cache.
    #[serde(
        default,
        skip_serializing_if = "is_zero",
        deserialize_with = "limited::tokens"
    )]
    pub tokens_cache_written: u64,
    /// Dollars. `None` if no price is known.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "limited::dollars"
    )]
    pub cost: Option<f64>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The target of a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// The turn that the workspace was restored to.
    pub turn: u64,
    /// The command.
    #[serde(default)]
    pub by: RestoreCommand,
    /// The turns that `redo` would step through, next one last.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limited::list"
    )]
    pub redo: Vec<u64>,
    /// The turns that this undo or redo crossed, in order.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limited::list"
    )]
    pub over: Vec<u64>,
}

/// The source of a pick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picked {
    pub session: String,
    pub turn: u64,
    pub turn_id: Uuid,
    /// Commit of the turn.
    pub commit: CommitId,
    /// Title of the turn.
    pub title: String,
}

/// Work that was done without TeDDy, as reported by the caller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Author: a program, an agent or a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The agent's own conversation id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Exit code of the program that did the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What a reader has to know about the changes, such as an interruption.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A landing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landed {
    /// Short name of the branch.
    pub branch: String,
    /// The new commits, oldest first.
    #[serde(deserialize_with = "limited::list")]
    pub commits: Vec<LandedCommit>,
}

/// A commit on one of the user's branches that contains turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandedCommit {
    pub commit: CommitId,
    /// The turns in it, oldest first.
    #[serde(deserialize_with = "limited::list")]
    pub turns: Vec<LandedTurn>,
}

impl LimitedEntry for LandedCommit {
    fn text_bytes(&self) -> usize {
        self.turns.len() * size_of::<LandedTurn>()
    }
}

impl LimitedEntry for LandedTurn {
    fn text_bytes(&self) -> usize {
        0
    }
}

/// A turn that landed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandedTurn {
    pub number: u64,
    /// Its id, which is the same in every fork of the session.
    pub turn_id: Uuid,
}

/// The command of a restore.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RestoreCommand {
    /// `teddy restore`: recorded as a new step, which can be undone.
    #[default]
    Restore,
    /// `teddy undo` or `teddy redo`: a move along the recorded steps.
    Undo,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let next = NextMeta {
            schema: SCHEMA,
            parent_turn_id: Uuid::nil(),
            caller_turn_id: None,
            agent: "architect".to_owned(),
        };
        assert!(write(&next).starts_with(SCHEMA_LINE));
        assert_eq!(read::<NextMeta>(&write(&next)).expect("our own text"), next);
    }

    #[test]
    fn a_newer_schema_is_refused_by_its_number() {
        let check = |text: &str, expected: &str| {
            let error = read::<NextMeta>(text).expect_err("not of our schema");
            assert_eq!(error.to_string(), expected, "{text}");
        };
        let newer = "has schema 9, and this teddy reads up to 1: it was written by a newer one";
        check("schema: 9\n", newer);
        check("agent: a\nschema: 9\n", newer);
        let twice = "duplicate field `schema`";
        let error = read::<NextMeta>("schema: 1\nschema: 9\n").expect_err("two schemas");
        assert!(error.to_string().contains(twice), "{error}");
    }
}
