//! `meta.yaml`: facts about a turn that no other artifact records (`docs/formats/turn.md`).

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::limited::{self, LimitedEntry};
use super::publication::Delta;
use crate::git::object::CommitId;
use crate::git::refs;
use crate::model::TokenUsage;
use crate::text::yaml::guard;

pub const SCHEMA: u32 = 1;

const SCHEMA_LINE: &str = "schema: 1\n";
const MAX_META: usize = 8 << 20;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Turn 0.
    #[default]
    Started,
    /// In progress, without a plan.
    Ready,
    /// In progress, with a plan that waits to be executed.
    Planned,
    Executed,
    Failed,
    /// Nothing of it was applied to the user's files.
    Interrupted,
    /// The plan failed validation and did not run.
    Rejected,
    Declined,
    /// A restore, undo or redo.
    Restored,
    /// Committed other turns to one of the user's branches.
    Landed,
    /// Applied a turn of another session.
    Picked,
    /// Records work that was done without TeDDy.
    Recorded,
}

impl Meta {
    pub fn of(turn_id: Uuid, number: u64, status: Status, agent: &str) -> Meta {
        Meta {
            schema: SCHEMA,
            turn_id,
            number,
            status,
            agent: agent.to_owned(),
            ..Meta::default()
        }
    }

    /// Why the agent that made the plan stopped before its work was done.
    pub fn agent_stop(&self) -> Option<&str> {
        let acted = self.acted.as_ref().filter(|_| self.made);
        acted.and_then(|acted| acted.stop.as_deref())
    }
}

impl Meta {
    /// Rules that a field breaks by itself, and how.
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        let (mut faults, word) = (Vec::new(), self.status.word());
        let files = self.workspace.as_ref().and_then(|it| it.branch.as_ref());
        let landed = self.landed.as_ref().map(|landed| &landed.branch);
        for branch in files.into_iter().chain(landed) {
            // Only a redacted name has spaces.
            let name = format!("refs/heads/{}", branch.replace(' ', "_"));
            if !refs::is_name(&name) {
                faults.push(("T8", format!("no branch can be called {branch:?}")));
            }
        }
        if self.restored.is_some() && self.status != Status::Restored {
            faults.push((
                "T24",
                format!("it is {word}, and `restored` says otherwise"),
            ));
        }
        if self
            .restored
            .as_ref()
            .is_some_and(|it| !it.is_before(self.number))
        {
            let what = "`restored` names a turn that is not before it";
            faults.push(("T24", what.to_owned()));
        }
        if self.landed.is_some() && self.status != Status::Landed {
            faults.push(("T16", format!("it is {word}, and `landed` says otherwise")));
        }
        faults
    }

    /// Without what only another turn than this can say.
    #[must_use]
    pub fn plausible(mut self) -> Meta {
        let (status, number) = (self.status, self.number);
        self.restored = self
            .restored
            .filter(|it| status == Status::Restored && it.is_before(number));
        self.landed = self.landed.filter(|_| status == Status::Landed);
        self
    }
}

impl Status {
    /// Returns the status of a turn as the user sees it. A plan that was answered with the files it
    /// changed unread is not called rejected.
    pub fn shown(self, showed_files: bool) -> Status {
        match showed_files {
            true => Status::Recorded,
            false => self,
        }
    }

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Approver {
    /// In the review.
    #[serde(rename = "person")]
    Person,
    /// In advance, with `-y`.
    #[serde(rename = "-y")]
    Yes,
    /// In advance for all turns, with `--yolo`.
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

/// Optional fields belong to one kind of turn and are missing in others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    pub schema: u32,
    pub turn_id: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_turn_id: Option<Uuid>,
    /// The turn whose agent handed over, while an invoked agent works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller_turn_id: Option<Uuid>,
    /// Distance from the start of the session.
    pub number: u64,
    pub status: Status,
    pub agent: String,
    #[serde(default)]
    pub origin: MessageOrigin,
    /// The piece of work of a change. `None` for the user's own message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
    /// TeDDy derived the plan from an agent's edits.
    #[serde(default, skip_serializing_if = "is_false")]
    pub made: bool,
    /// The message is a question: the turn changes nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub question: bool,
    /// For a model that edits files itself. In progress without its plan: its last call, whose work
    /// was discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acted: Option<Acted>,
    /// Consecutive rejected plans before this turn.
    #[serde(default)]
    pub replans: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelUse>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<String>,
    /// Dollars that count against the limit, with discarded answers. Calls without a known price
    /// are not counted.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "limited::dollars"
    )]
    pub spent: Option<f64>,
    /// Missing in turns of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<Approver>,
    /// For a plan that ran: numbers of the actions to which the user granted the network in the
    /// review.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<usize>,
    /// For an interrupted run: what interrupted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption: Option<String>,
    /// In progress: why the last call made no plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// With a waiting plan: the commit with the files on which it was validated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_on: Option<CommitId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<String>,
    /// In RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Restored>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<Landed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picked: Option<Picked>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
    /// For a rejected plan: identifiers of its mistakes, to detect a model that repeats them.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limited::deserialize"
    )]
    pub mistakes: Vec<String>,
    /// For a rejected plan: it changed files that the model had not read, and was correct otherwise.
    /// The model was shown these files and asked again.
    #[serde(default, skip_serializing_if = "is_false")]
    pub showed_files: bool,
    /// Truncated on writing.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "limited")]
    pub not_captured: Vec<NotCaptured>,
    /// Changes of a command to the repository itself; truncated on writing.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "limited")]
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

    /// Adds a later exchange of the same turn, and keeps its names.
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepMeta {
    pub schema: u32,
    pub step: String,
    pub model: ModelUse,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    pub worktree: String,
    /// `HEAD` if it was detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    pub before: CommitId,
    pub after: CommitId,
    /// `after` was applied to the user's files.
    pub synced: bool,
    /// Paths that conflicted with the user's edits. Truncated on writing; the publication has all.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "limited")]
    pub overlaps: Vec<String>,
}

impl Workspace {
    pub fn is_whole(&self) -> bool {
        self.synced && self.overlaps.is_empty()
    }

    pub fn change(&self) -> Delta {
        Delta {
            before: self.before,
            after: self.after,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotCaptured {
    pub path: String,
    pub reason: String,
}

impl LimitedEntry for NotCaptured {
    fn text_bytes(&self) -> usize {
        self.path.len() + self.reason.len()
    }
}

/// `next/meta.yaml`: the predecessor of the next turn. Several forks can start from here, so it has
/// no id for the next turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextMeta {
    pub schema: u32,
    pub parent_turn_id: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller_turn_id: Option<Uuid>,
    pub agent: String,
}

/// Fails with an explanation if the schema is newer than [`SCHEMA`].
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

pub fn write(value: &impl Serialize) -> String {
    serde_yaml::to_string(value).expect("plain structs of strings and numbers are always YAML")
}

/// The program of an acting model, as it identifies itself, and how to resume its conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Acted {
    /// As the program identifies itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Digest of session and path. The conversation can be resumed only in this worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// The files that the program got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<CommitId>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// Why the program stopped before its work was done, in the protocol's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// Dollars that the whole conversation has cost, if the program reports them.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "limited::dollars"
    )]
    pub total_cost: Option<f64>,
    /// `total_cost` covers only the last call: the program restarts its count in each.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_anew: bool,
    /// Tokens of the whole conversation, if the program reports them.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "limited::usage"
    )]
    pub total_tokens: Option<TokenUsage>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelUse {
    pub asked: String,
    /// As the model identifies itself.
    pub answered: String,
    /// Input tokens. `None` if the model did not report them, as programs don't.
    #[serde(default, deserialize_with = "limited::known_tokens")]
    pub tokens_in: Option<u64>,
    #[serde(default, deserialize_with = "limited::known_tokens")]
    pub tokens_out: Option<u64>,
    /// Input tokens that were read from the provider's cache.
    #[serde(default, deserialize_with = "limited::tokens")]
    pub tokens_cached: u64,
    /// Written to the provider's cache.
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

impl ModelUse {
    /// For a turn that takes over an answer whose cost another turn has accounted for.
    pub fn accounted(self) -> ModelUse {
        ModelUse {
            asked: self.asked,
            answered: self.answered,
            tokens_in: self.tokens_in.map(|_| 0),
            tokens_out: self.tokens_out.map(|_| 0),
            cost: self.cost.map(|_| 0.0),
            ..ModelUse::default()
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    pub turn: u64,
    #[serde(default)]
    pub by: RestoreCommand,
    /// The only files and directories that were restored. Empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "limited")]
    pub paths: Vec<String>,
    /// The turns that `redo` would step through, next one last.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limited::deserialize"
    )]
    pub redo: Vec<u64>,
    /// The turns that this undo or redo crossed, in order.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limited::deserialize"
    )]
    pub over: Vec<u64>,
}

impl Restored {
    /// Whether its turns are before turn `number`. A restore can be to a turn of another session.
    fn is_before(&self, number: u64) -> bool {
        let target = (self.by == RestoreCommand::Undo).then_some(&self.turn);
        let mut turns = self.redo.iter().chain(&self.over).chain(target);
        turns.all(|turn| *turn < number)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picked {
    pub session: String,
    pub turn: u64,
    pub turn_id: Uuid,
    pub commit: CommitId,
    pub title: String,
}

/// As reported by the caller, not verified.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// A program, an agent or a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What a reader has to know about the changes, such as an interruption.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landed {
    pub branch: String,
    /// Oldest first.
    #[serde(deserialize_with = "limited::deserialize")]
    pub commits: Vec<LandedCommit>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandedCommit {
    pub commit: CommitId,
    /// Oldest first.
    #[serde(deserialize_with = "limited::deserialize")]
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandedTurn {
    pub number: u64,
    /// The same in every fork of the session.
    pub turn_id: Uuid,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RestoreCommand {
    /// Recorded as a new step, which can be undone.
    #[default]
    Restore,
    /// A move along the recorded steps, by `teddy undo` or `teddy redo`.
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
