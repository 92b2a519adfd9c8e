//! `meta.yaml`: facts about a turn that no other artifact says (`docs/formats/turn.md`).

mod acted;
mod model_use;
mod without_plan;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::limited::{self, LimitedEntry};
use crate::git::object::CommitId;
use crate::text::yaml::guard;

pub use acted::Acted;
pub use model_use::ModelUse;
pub use without_plan::{
    Landed, LandedCommit, LandedTurn, Picked, Recorded, RestoreCommand, Restored,
};

/// The version of the format that we write.
pub const SCHEMA: u32 = 1;
/// The line with which the files of this version begin.
const SCHEMA_LINE: &str = "schema: 1\n";
/// No larger text is read as the facts of a turn.
const MAX_META: usize = 8 << 20;

/// How a turn ended, or where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The session's start, turn 0.
    Started,
    /// In progress: no plan yet.
    Ready,
    /// In progress: a plan waits to be executed.
    Planned,
    /// The plan ran and every action succeeded.
    Executed,
    /// The plan ran and an action failed.
    Failed,
    /// The run was cut short, and nothing of it came to the user's files.
    Interrupted,
    /// The plan was wrong and did not run.
    Rejected,
    /// The user did not want the plan.
    Declined,
    /// The workspace was brought back to an earlier turn.
    Restored,
    /// What turns did was committed to a branch of the user's.
    Landed,
    /// What a turn of another session did was done in this one, too.
    Picked,
    /// What somebody else did in the user's files was recorded.
    Recorded,
}

impl Meta {
    /// Returns the facts of a turn of which nothing is known yet but who it is.
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
    /// Returns the word of the trailer.
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

/// Whose words `user_prompt.txt` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageOrigin {
    /// The user's.
    #[default]
    User,
    /// The validation's: what was wrong with the plan before.
    Validation,
    /// Nobody's: a loop without a person goes on.
    Loop,
}

/// Who let a plan run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Approver {
    /// A person, who looked at it.
    #[serde(rename = "person")]
    Person,
    /// Whoever said so beforehand, for plans that they had not seen.
    #[serde(rename = "-y")]
    Yes,
    /// The same, for one turn after the other.
    #[serde(rename = "--yolo")]
    Yolo,
    /// Somebody whom only a later version knows.
    #[serde(other, rename = "unknown")]
    Unknown,
}

impl Approver {
    /// Says who that is, as a report does.
    pub fn words(self) -> &'static str {
        match self {
            Approver::Person => "the user, in the review",
            Approver::Yes => "the user beforehand, with `-y`",
            Approver::Yolo => "the user beforehand, with `--yolo`",
            Approver::Unknown => "unknown",
        }
    }
}

/// The facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The version of the format.
    pub schema: u32,
    /// This turn.
    pub turn_id: Uuid,
    /// The turn that it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_turn_id: Option<Uuid>,
    /// The turn whose agent handed over, while an invoked agent works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller_turn_id: Option<Uuid>,
    /// The distance from the session's start.
    pub number: u64,
    /// Where it stands.
    pub status: Status,
    /// The agent, by the name of its prompt.
    pub agent: String,
    /// Whose words `user_prompt.txt` holds.
    #[serde(default)]
    pub origin: MessageOrigin,
    /// The piece of work of a change that the message describes; nothing where it is the user's
    /// own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
    /// Whether TeDDy wrote the plan from what an agent did to the files.
    #[serde(default, skip_serializing_if = "is_false")]
    pub made: bool,
    /// Whether the message is a question: the answer changes nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub question: bool,
    /// For a model that edits files itself: which program it was, and its conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acted: Option<Acted>,
    /// The rejected plans in a row before this turn.
    #[serde(default)]
    pub replans: u32,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelUse>,
    /// The pipeline that the plan came through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<String>,
    /// Dollars that the turn's calls count against the limit, answers that were thrown away
    /// included; calls without a price don't.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "limited::dollars"
    )]
    pub spent: Option<f64>,
    /// For a plan that ran: who approved it; turns of earlier versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<Approver>,
    /// For an interrupted run: what cut it short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption: Option<String>,
    /// In progress: why the last call gave no plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What repair had to assume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<String>,
    /// When the turn began, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// When it was recorded, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The code before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
    /// For a restore: where it went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Restored>,
    /// For a landing: what landed where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<Landed>,
    /// For a pick: the turn that was picked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picked: Option<Picked>,
    /// For what TeDDy took no part in: who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
    /// For a rejected plan: what names its mistakes, so that the same one is not asked for for
    /// ever.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limited::list"
    )]
    pub mistakes: Vec<String>,
    /// Files that the snapshot does not have; as many are written as fit.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "limited::as_many_as_fit",
        deserialize_with = "limited::list"
    )]
    pub not_captured: Vec<NotCaptured>,
    /// Places of the repository's own state that a command of the plan changed; as many are written
    /// as fit.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "limited::as_many_as_fit",
        deserialize_with = "limited::list"
    )]
    pub repository_changes: Vec<String>,
}

/// Says whether there is nothing to write.
fn is_false(value: &bool) -> bool {
    !value
}

impl ModelUse {
    /// Returns the tokens read and written; nothing if the model did not tell them, as programs
    /// don't.
    pub fn tokens(&self) -> Option<(u64, u64)> {
        // Only who knows the tokens knows a cost: a turn that runs again has none of both.
        let is_known = self.cost.is_some() || self.tokens_in > 0 || self.tokens_out > 0;
        is_known.then_some((self.tokens_in, self.tokens_out))
    }

    /// Adds a later exchange of the same turn: the sums, and the names of the last one.
    #[must_use]
    pub fn then(self, next: ModelUse) -> ModelUse {
        ModelUse {
            tokens_in: self.tokens_in.saturating_add(next.tokens_in),
            tokens_out: self.tokens_out.saturating_add(next.tokens_out),
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

/// `meta.yaml` of a pipeline's step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepMeta {
    /// The version of the format.
    pub schema: u32,
    /// The step's name.
    pub step: String,
    /// The model, and what it took.
    pub model: ModelUse,
}

/// The code around a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// The checkout that the turn belongs to, by its name among the worktrees.
    pub worktree: String,
    /// The branch that it was on, `HEAD` where it was on none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The workspace commit at the start.
    pub before: CommitId,
    /// The workspace commit with what the turn did.
    pub after: CommitId,
    /// Whether `after` was brought to the user's files.
    pub synced: bool,
    /// Where it overlapped with the user's own edits; as many are written as fit, and the
    /// publication has all of them.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "limited::as_many_as_fit",
        deserialize_with = "limited::list"
    )]
    pub overlaps: Vec<String>,
}

impl Workspace {
    /// Returns whether all of the result is in the user's files.
    pub fn is_whole(&self) -> bool {
        self.synced && self.overlaps.is_empty()
    }
}

/// A file that the snapshot does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotCaptured {
    /// Which.
    pub path: String,
    /// Why.
    pub reason: String,
}

impl LimitedEntry for NotCaptured {
    fn text_bytes(&self) -> usize {
        self.path.len() + self.reason.len()
    }
}

/// `next/meta.yaml`: whom the next turn continues. Its id is made when it begins: a fork begins
/// several turns from here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextMeta {
    /// The version of the format.
    pub schema: u32,
    /// The turn that it continues.
    pub parent_turn_id: Uuid,
    /// The turn whose agent handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller_turn_id: Option<Uuid>,
    /// Its agent.
    pub agent: String,
}

/// Reads `meta.yaml` or `next/meta.yaml`.
///
/// # Errors
/// Where it is no YAML, lacks a field, or has a newer schema than ours.
pub fn read<T: for<'de> Deserialize<'de>>(text: &str) -> anyhow::Result<T> {
    guard(text, MAX_META)?;
    // What begins with our schema is of no other: a field is in a file once.
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

/// The one field that every version has.
#[derive(Deserialize)]
struct MetaVersion {
    /// The version of the format.
    schema: u32,
}

/// Writes `meta.yaml` or `next/meta.yaml`.
pub fn write(value: &impl Serialize) -> String {
    serde_yaml::to_string(value).expect("plain structs of strings and numbers are always YAML")
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
