//! All settings and their defaults. See docs/formats/config.md.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};

use crate::text::leak::LeakKind;

/// All settings.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The model for plans: a name from `models`, or `kind:id`.
    pub model: Option<String>,
    pub models: BTreeMap<String, ModelSettings>,
    /// The agent for new sessions.
    pub agent: String,
    /// The pipeline for plans.
    pub pipeline: Option<String>,
    /// A program to show and edit a proposal. Split into words without a shell.
    pub preview_command: Option<String>,
    /// Requests for a correction of rejected plans.
    pub replan: Replan,
    /// Approval of plans.
    pub review: ReviewSettings,
    /// Execution of a plan's commands.
    pub execute: ExecuteSettings,
    /// Files to include in snapshots.
    pub snapshot: SnapshotSettings,
    /// The session's worktree.
    pub worktree: Worktree,
    /// Keeps or discards the work of a plan that fails halfway.
    pub on_failure: OnFailure,
    /// Limits for unattended work.
    pub limits: LimitSettings,
    /// Races between models.
    pub race: RaceSettings,
    /// Size limits for a model's input.
    pub context: Context,
    /// Web search for RESEARCH.
    pub research: ResearchSettings,
    /// Access to web pages.
    pub web: Web,
    /// The change workflow.
    pub change: ChangeSettings,
    /// Commits made by `teddy land`.
    pub land: Land,
    /// Defaults for pushing sessions.
    pub push: PushSettings,
}

impl Settings {
    /// Variables that contain keys according to the settings, in addition to the usual ones.
    pub fn key_variables(&self) -> impl Iterator<Item = String> {
        let models = self
            .models
            .values()
            .filter_map(|model| model.api_key_env.clone());
        models.chain(self.research.api_key_env.clone())
    }
}

/// Settings of a model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    /// The protocol: `openai`, `responses`, `anthropic`, `command`, `replay`, `manual`, `acp` or `agent`.
    #[serde(deserialize_with = "kind")]
    pub kind: String,
    /// The provider's id for the model. For `acp` and `agent`, the name of a known agent.
    pub id: String,
    /// Base URL of the API.
    #[serde(deserialize_with = "address")]
    pub base_url: Option<String>,
    /// The variable that contains the key.
    pub api_key_env: Option<String>,
    /// A command that prints the key.
    pub api_key_command: Vec<String>,
    /// `command`, `acp`, `agent`: the command to run.
    pub run: Vec<String>,
    /// `agent`: the command to resume a conversation.
    pub go_on: Vec<String>,
    /// `acp`, `agent`: the agent's mode.
    pub mode: Option<String>,
    /// `acp`, `agent`: paths the agent can write besides its worktree.
    pub state: Option<Vec<String>>,
    /// `agent`: rules for finding facts in the agent's output.
    pub facts: BTreeMap<String, String>,
    /// `replay`: a file or directory with answers.
    pub path: Option<String>,
    /// Limit for an answer, in seconds.
    pub timeout: Option<u64>,
    /// Limit for silence within an answer, in seconds.
    pub idle_timeout: Option<u64>,
    /// Limit for silence before an answer, in seconds.
    pub first_byte_timeout: Option<u64>,
    /// Limit for connecting, in seconds.
    pub connect_timeout: Option<u64>,
    /// Maximum number of output tokens.
    pub max_tokens: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Additional HTTP headers.
    pub headers: BTreeMap<String, String>,
    /// Additional JSON fields of a request.
    pub extra: BTreeMap<String, serde_yaml::Value>,
    /// Prices, for computing costs.
    pub price: Option<Price>,
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input tokens.
    #[serde(deserialize_with = "amount")]
    pub input: f64,
    /// Output tokens.
    #[serde(deserialize_with = "amount")]
    pub output: f64,
    /// Tokens read from the provider's cache. `None` means unknown.
    #[serde(default, deserialize_with = "some_amount")]
    pub cache_read: Option<f64>,
    /// Tokens written to the provider's cache. `None` means unknown.
    #[serde(default, deserialize_with = "some_amount")]
    pub cache_write: Option<f64>,
}

/// Requests for a correction of rejected plans.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Replan {
    /// Maximum number of requests in a row.
    pub max: u32,
}

/// Approval of plans.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReviewSettings {
    /// Approval of plans that only read files of the project and tell something.
    pub reads: ReadApproval,
}

/// Approval of plans that only read files of the project and tell something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadApproval {
    /// They run without approval.
    #[default]
    Auto,
    /// In the review, like other plans.
    Ask,
}

/// Execution of a plan's commands.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExecuteSettings {
    /// Limit for a command, in seconds.
    #[serde(deserialize_with = "seconds")]
    pub timeout: u64,
    /// The program that runs all scripts. `None` chooses a shell by the language of the block.
    pub shell: Option<String>,
    /// Lines of output to include in the report. An artifact contains all of it.
    pub output_limit: usize,
    /// Sandboxing of commands.
    pub sandbox: Sandbox,
    /// Allows sandboxed commands to use the network.
    pub network: bool,
    /// Directories besides the worktree that sandboxed commands can write.
    pub writable: Vec<String>,
    /// Variables to pass to commands although they look like secrets.
    pub keep_env: Vec<String>,
}

/// Sandboxing of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    /// Never.
    Off,
    /// If the machine supports it.
    On,
    /// Always. Commands fail if the machine doesn't support it.
    Require,
}

/// Files to include in snapshots.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotSettings {
    /// Larger untracked files are skipped.
    pub max_file_size: Size,
    /// Maximum number of new untracked files in a snapshot.
    pub max_new_files: usize,
    /// Maximum total size of new untracked files in a snapshot.
    pub max_new_size: Size,
    /// Additional patterns of untracked files to skip.
    pub exclude: Vec<String>,
    /// Patterns of untracked files to include although they look like secrets.
    pub include: Vec<String>,
}

/// The session's worktree.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Worktree {
    /// Access of commands to the user's files.
    pub backend: Backend,
    /// Directory for worktrees.
    pub root: Option<String>,
    /// Ignored files to copy into the worktree.
    pub copy: Vec<String>,
    /// Ignored directories to link into the worktree.
    pub link: Vec<String>,
    /// A command that prepares a new worktree.
    pub setup: Option<String>,
    /// Allows `setup` to use the network if it is sandboxed.
    pub network: bool,
}

/// Access of a plan's commands to the user's files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// An overlay if commands are sandboxed and the machine supports it, else a checkout.
    #[default]
    Auto,
    /// The files themselves, with an overlay that takes all changes. Commands fail if the machine
    /// doesn't support it.
    Overlay,
    /// A copy of the snapshot.
    Checkout,
}

/// Keeps or discards the work of a plan that fails halfway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// Keep it and apply it to the workspace.
    Keep,
    /// Discard it.
    Rollback,
}

/// Limits for unattended work.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Turns per call.
    #[serde(deserialize_with = "turns")]
    pub turns: u32,
    /// US dollars per session.
    #[serde(deserialize_with = "amount")]
    pub cost: f64,
    /// Files that an agent can change in one turn.
    pub files: usize,
}

/// Races between models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RaceSettings {
    /// Number of models to run at the same time. `None` depends on cores and free memory.
    #[serde(deserialize_with = "parallel")]
    pub parallel: Option<usize>,
}

/// Size limits for a model's input.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Context {
    /// Number of tokens above which a warning names the largest resources.
    pub budget: usize,
    /// The first input of a session holds the whole project if it has at most this many tokens.
    pub whole_project_tokens: usize,
    /// Larger resources are truncated.
    pub max_resource_size: Size,
    /// Maximum size of the user's requests in each input.
    pub max_requests_size: Size,
}

/// Web search for RESEARCH.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResearchSettings {
    /// The search engine.
    pub engine: Option<EngineKind>,
    /// Base URL of the engine.
    #[serde(deserialize_with = "address")]
    pub base_url: Option<String>,
    /// The variable that contains the key.
    pub api_key_env: Option<String>,
    /// `command`: the command to run.
    pub run: Vec<String>,
}

/// A kind of search engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// A SearXNG server.
    Searxng,
    /// Brave Search.
    Brave,
    Tavily,
    /// A program.
    Command,
}

/// Access to web pages.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Web {
    /// Hosts that are allowed to have a private address.
    pub allow_hosts: Vec<String>,
}

/// Defaults for pushing sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PushSettings {
    /// The remote. `None` follows git's configuration.
    pub remote: Option<String>,
    /// Parts of a session to push.
    pub mode: Option<PushMode>,
    /// Kinds of findings that don't stop a push.
    pub allow: Vec<LeakKind>,
}

/// Parts of a session to push.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PushMode {
    /// Turns without the code.
    Record,
    /// Turns and code.
    Code,
}

/// The change workflow.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChangeSettings {
    /// Maximum number of revisions of a proposal.
    pub planning_iterations: u32,
    /// Maximum number of fixes of an implementation after its review.
    pub implementation_iterations: u32,
    /// The model of each role: `author`, `challenger`, `implementer`, `reviewer`.
    #[serde(deserialize_with = "roles")]
    pub roles: BTreeMap<String, String>,
}

/// Commits made by `teddy land`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Land {
    /// Additional trailers, such as `Assisted-by: {model}`.
    pub trailers: Vec<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            model: None,
            models: BTreeMap::new(),
            agent: "assistant".to_owned(),
            pipeline: None,
            preview_command: None,
            replan: Replan::default(),
            review: ReviewSettings::default(),
            execute: ExecuteSettings::default(),
            snapshot: SnapshotSettings::default(),
            worktree: Worktree::default(),
            on_failure: OnFailure::Keep,
            limits: LimitSettings::default(),
            race: RaceSettings::default(),
            context: Context::default(),
            research: ResearchSettings::default(),
            web: Web::default(),
            change: ChangeSettings::default(),
            land: Land::default(),
            push: PushSettings::default(),
        }
    }
}

impl Default for Replan {
    fn default() -> Replan {
        Replan { max: 3 }
    }
}

impl Default for ExecuteSettings {
    fn default() -> ExecuteSettings {
        ExecuteSettings {
            timeout: 600,
            shell: None,
            output_limit: 200,
            sandbox: Sandbox::On,
            network: false,
            writable: Vec::new(),
            keep_env: Vec::new(),
        }
    }
}

impl Default for SnapshotSettings {
    fn default() -> SnapshotSettings {
        SnapshotSettings {
            max_file_size: Size(10 << 20),
            max_new_files: 100_000,
            max_new_size: Size(1 << 30),
            exclude: Vec::new(),
            include: Vec::new(),
        }
    }
}

impl Default for LimitSettings {
    fn default() -> LimitSettings {
        LimitSettings {
            turns: 50,
            cost: 5.0,
            files: 2000,
        }
    }
}

impl Default for Context {
    fn default() -> Context {
        Context {
            budget: 100_000,
            whole_project_tokens: 20_000,
            max_resource_size: Size(1 << 20),
            max_requests_size: Size(32 << 10),
        }
    }
}

impl Default for ChangeSettings {
    fn default() -> ChangeSettings {
        ChangeSettings {
            planning_iterations: 3,
            implementation_iterations: 2,
            roles: BTreeMap::new(),
        }
    }
}

impl ExecuteSettings {
    /// Limit for a command.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

// Deserializers that restrict a setting to valid values.
//
// An error message names what is expected, as the second half of a sentence that starts with "must
// be".

/// Maximum timeout of a command in seconds. Plans have the same limit.
const MAX_TIMEOUT_SECONDS: u64 = 86_400;

/// Roles of the change workflow.
const ROLE_NAMES: [&str; 4] = ["author", "challenger", "implementer", "reviewer"];

/// Kinds of models.
pub const MODEL_KINDS: [&str; 8] = [
    "openai",
    "responses",
    "anthropic",
    "command",
    "replay",
    "manual",
    "acp",
    "agent",
];

pub(super) fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let amount = f64::deserialize(deserializer)?;
    if amount.is_finite() && amount >= 0.0 {
        return Ok(amount);
    }
    Err(D::Error::invalid_value(
        Unexpected::Float(amount),
        &"an amount that is not negative",
    ))
}

pub(super) fn some_amount<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    let amount = Option::<f64>::deserialize(deserializer)?;
    let wrong = amount.filter(|amount| !amount.is_finite() || *amount < 0.0);
    match wrong {
        None => Ok(amount),
        Some(wrong) => Err(D::Error::invalid_value(
            Unexpected::Float(wrong),
            &"an amount that is not negative",
        )),
    }
}

pub(super) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let seconds = u64::deserialize(deserializer)?;
    if (1..=MAX_TIMEOUT_SECONDS).contains(&seconds) {
        return Ok(seconds);
    }
    Err(D::Error::invalid_value(
        Unexpected::Unsigned(seconds),
        &"a number of seconds from 1 to 86400",
    ))
}

pub(super) fn turns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let turns = u32::deserialize(deserializer)?;
    if turns > 0 {
        return Ok(turns);
    }
    Err(D::Error::invalid_value(
        Unexpected::Unsigned(0),
        &"1 or more",
    ))
}

pub(super) fn parallel<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<usize>, D::Error> {
    let parallel = Option::<usize>::deserialize(deserializer)?;
    if parallel != Some(0) {
        return Ok(parallel);
    }
    Err(D::Error::invalid_value(
        Unexpected::Unsigned(0),
        &"1 or more",
    ))
}

pub(super) fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let kind = String::deserialize(deserializer)?;
    if MODEL_KINDS.contains(&kind.as_str()) {
        return Ok(kind);
    }
    Err(D::Error::unknown_variant(&kind, &MODEL_KINDS))
}

pub(super) fn address<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let address = Option::<String>::deserialize(deserializer)?;
    let is_one = |text: &String| {
        let text = text.trim().to_ascii_lowercase();
        let suffix = ["http://", "https://"]
            .iter()
            .find_map(|start| text.strip_prefix(start));
        suffix.is_some_and(|rest| !rest.is_empty())
    };
    match address {
        Some(wrong) if !is_one(&wrong) => Err(D::Error::invalid_value(
            Unexpected::Str(&wrong),
            &"an address that begins with `http://` or `https://`",
        )),
        address => Ok(address),
    }
}

pub(super) fn roles<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let roles = BTreeMap::<String, String>::deserialize(deserializer)?;
    match roles
        .keys()
        .find(|role| !ROLE_NAMES.contains(&role.as_str()))
    {
        None => Ok(roles),
        Some(unknown) => Err(D::Error::custom(format!(
            "there is no role `{unknown}`; the roles are `{}`",
            ROLE_NAMES.join("`, `")
        ))),
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// An invalid size.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid size; write bytes or `512KiB`, `10MiB`, `1GiB`")]
pub struct SizeError(String);

/// Unit suffixes and their shift.
const SIZE_UNITS: [(&[&str], u32); 4] = [
    (&["gib", "gb", "g"], 30),
    (&["mib", "mb", "m"], 20),
    (&["kib", "kb", "k"], 10),
    (&["b", ""], 0),
];

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Size, SizeError> {
        let error = || SizeError(text.to_owned());
        let lower = text.trim().to_lowercase();
        let digits = lower.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = lower.split_at(digits);
        let number: u64 = number.parse().map_err(|_| error())?;
        let shift = SIZE_UNITS
            .iter()
            .find(|(names, _)| names.contains(&unit.trim()))
            .map(|&(_, shift)| shift)
            .ok_or_else(error)?;

        number.checked_mul(1 << shift).map(Size).ok_or_else(error)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = |shift: u32| self.0 > 0 && self.0.is_multiple_of(1 << shift);
        match self.0 {
            n if exact(30) => write!(f, "{} GiB", n >> 30),
            n if exact(20) => write!(f, "{} MiB", n >> 20),
            n if exact(10) => write!(f, "{} KiB", n >> 10),
            n => write!(f, "{n} bytes"),
        }
    }
}

impl<'de> serde::Deserialize<'de> for Size {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
        let value = serde_yaml::Value::deserialize(deserializer)?;
        let text = match value {
            serde_yaml::Value::Number(number) => number.to_string(),
            serde_yaml::Value::String(text) => text,
            _ => String::new(),
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let actual = text
            .parse::<Size>()
            .map_or_else(|e| e.to_string(), |s| s.to_string());
        assert_eq!(actual, expected);
    }

    #[test]
    fn sizes_are_read_with_and_without_units() {
        check("10MiB", "10 MiB");
        check("512k", "512 KiB");
        check("4097", "4097 bytes");
        check("1 gb", "1 GiB");
    }

    #[test]
    fn other_texts_are_refused() {
        check(
            "many",
            "`many` is not a valid size; write bytes or `512KiB`, `10MiB`, `1GiB`",
        );
        check(
            "99999999999999g",
            "`99999999999999g` is not a valid size; write bytes or `512KiB`, `10MiB`, `1GiB`",
        );
    }
}
