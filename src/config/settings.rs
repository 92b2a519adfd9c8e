//! All settings and their defaults (docs/formats/config.md).
//!
//! The types restrict values as far as serde can; deserializers check the rest. Unknown names are
//! errors.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};

use crate::text::leak::LeakKind;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// A name from `models`, or `kind:id`.
    pub model: Option<String>,
    pub models: BTreeMap<String, ModelSettings>,
    pub agent: String,
    pub pipeline: Option<String>,
    /// Shows and edits a proposal. Split into words without a shell.
    pub preview_command: Option<String>,
    pub replan: Replan,
    /// Approval of plans.
    pub review: ReviewSettings,
    /// Execution of a plan's commands.
    pub execute: ExecuteSettings,
    pub snapshot: SnapshotSettings,
    pub worktree: Worktree,
    /// Whether to keep the work of a plan that fails halfway.
    pub on_failure: OnFailure,
    pub limits: LimitSettings,
    pub race: RaceSettings,
    pub context: Context,
    pub research: ResearchSettings,
    pub web: Web,
    pub change: ChangeSettings,
    pub land: Land,
    pub push: PushSettings,
}

impl Settings {
    /// Variables with keys according to the settings, in addition to the usual ones.
    pub fn key_variables(&self) -> impl Iterator<Item = String> {
        let models = self
            .models
            .values()
            .filter_map(|model| model.api_key_env.clone());
        models.chain(self.research.api_key_env.clone())
    }
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    #[serde(deserialize_with = "kind")]
    pub kind: ModelKind,
    /// The provider's id for the model. For `acp` and `agent`, the name of a known agent.
    pub id: String,
    /// Usually ends in `/v1`.
    #[serde(deserialize_with = "address")]
    pub base_url: Option<String>,
    /// For a command, the one key variable that it inherits.
    pub api_key_env: Option<String>,
    /// A command that prints the key.
    pub api_key_command: Vec<String>,
    /// `command`, `acp`, `agent`: the command to run. `{input}` expands to the path of a file with
    /// the prompt.
    pub run: Vec<String>,
    /// `agent`: the command to resume a conversation.
    pub go_on: Vec<String>,
    /// `acp`, `agent`: the agent's mode.
    pub mode: Option<String>,
    /// `acp`, `agent`: paths the agent can write besides its worktree. `None` uses the known agent's
    /// defaults.
    pub state: Option<Vec<String>>,
    /// `agent`: rules for finding facts in the agent's output.
    pub facts: BTreeMap<String, String>,
    /// `replay`: a file with an answer, or a directory of them, used in order of their names.
    pub path: Option<PathBuf>,
    /// For the whole answer.
    #[serde(deserialize_with = "duration")]
    pub timeout: Option<Duration>,
    /// Longest silence between two pieces of an answer.
    #[serde(deserialize_with = "duration")]
    pub idle_timeout: Option<Duration>,
    /// Longest silence before the first piece.
    #[serde(deserialize_with = "duration")]
    pub first_byte_timeout: Option<Duration>,
    #[serde(deserialize_with = "duration")]
    pub connect_timeout: Option<Duration>,
    /// Of output.
    pub max_tokens: Option<u32>,
    /// `None` uses the provider's default.
    pub temperature: Option<f64>,
    pub headers: Headers,
    /// Additional JSON fields of a request.
    #[serde(deserialize_with = "json_fields")]
    pub extra: serde_json::Map<String, serde_json::Value>,
    pub price: Option<Price>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelKind {
    /// The entry has no `kind`.
    #[default]
    Missing,
    /// OpenAI-compatible chat completions.
    Openai,
    /// OpenAI's Responses API.
    Responses,
    /// Anthropic's Messages API.
    Anthropic,
    /// A program that prints an answer.
    Command,
    /// Recorded answers from files or a session.
    Replay,
    /// The user, who carries text to a chat and back.
    Manual,
    /// An agent that edits files itself and speaks the Agent Client Protocol.
    Acp,
    /// Any other agent that edits files itself.
    Agent,
}

impl ModelKind {
    const ALL: [(&'static str, ModelKind); 8] = [
        ("openai", ModelKind::Openai),
        ("responses", ModelKind::Responses),
        ("anthropic", ModelKind::Anthropic),
        ("command", ModelKind::Command),
        ("replay", ModelKind::Replay),
        ("manual", ModelKind::Manual),
        ("acp", ModelKind::Acp),
        ("agent", ModelKind::Agent),
    ];

    pub fn parse(name: &str) -> Option<ModelKind> {
        let mut all = ModelKind::ALL.iter();
        all.find(|(candidate, _)| *candidate == name)
            .map(|(_, kind)| *kind)
    }

    /// As written in the configuration. Empty if it is missing.
    pub fn name(self) -> &'static str {
        let mut all = ModelKind::ALL.iter();
        all.find(|(_, kind)| *kind == self)
            .map_or("", |(name, _)| name)
    }

    pub fn names() -> [&'static str; 8] {
        ModelKind::ALL.map(|(name, _)| name)
    }

    pub fn quoted_names() -> String {
        ModelKind::names()
            .map(|name| format!("`{name}`"))
            .join(", ")
    }

    /// Returns whether the model is behind HTTP.
    pub fn is_remote(self) -> bool {
        matches!(
            self,
            ModelKind::Openai | ModelKind::Responses | ModelKind::Anthropic
        )
    }

    /// Returns whether the model edits files itself.
    pub fn is_acting(self) -> bool {
        matches!(self, ModelKind::Acp | ModelKind::Agent)
    }
}

/// Values can be secret, so `Debug` prints names only.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Headers(pub BTreeMap<String, String>);

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    #[serde(deserialize_with = "amount")]
    pub input: f64,
    #[serde(deserialize_with = "amount")]
    pub output: f64,
    /// From the provider's cache. `None` means unknown.
    #[serde(default, deserialize_with = "some_amount")]
    pub cache_read: Option<f64>,
    /// To the provider's cache. `None` means unknown.
    #[serde(default, deserialize_with = "some_amount")]
    pub cache_write: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Replan {
    /// In a row.
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
    /// In seconds, for each command.
    #[serde(deserialize_with = "seconds")]
    pub timeout: u64,
    /// The program that runs all scripts. `None` chooses a shell by the language of the block.
    pub shell: Option<String>,
    /// Lines of output to include in the report. An artifact contains all of it.
    pub output_limit: usize,
    pub sandbox: Sandbox,
    pub network: bool,
    /// Directories besides the worktree that sandboxed commands can write.
    pub writable: Vec<String>,
    /// Variables to pass to commands although they look like secrets.
    pub keep_env: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    Off,
    /// If the machine supports it.
    On,
    /// Commands fail if the machine doesn't support it.
    Require,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotSettings {
    /// Larger untracked files are skipped.
    pub max_file_size: Size,
    /// New untracked files in one snapshot.
    pub max_new_files: usize,
    /// Total size of new untracked files in one snapshot.
    pub max_new_size: Size,
    /// Patterns, in addition to those for secrets.
    pub exclude: Vec<String>,
    /// Patterns of untracked files to include although they look like secrets.
    pub include: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Worktree {
    pub backend: Backend,
    pub root: Option<String>,
    /// Ignored files to copy into the worktree.
    pub copy: Vec<String>,
    /// Ignored directories to link into the worktree.
    pub link: Vec<String>,
    /// A command that prepares a new worktree.
    pub setup: Option<String>,
    /// For a sandboxed `setup`.
    pub network: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// An overlay if commands are sandboxed and the machine supports it, else a checkout.
    #[default]
    Auto,
    /// The user's files, with an overlay that takes all changes. Commands fail if the machine
    /// doesn't support it.
    Overlay,
    /// A copy of the snapshot.
    Checkout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    Keep,
    Rollback,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Per call.
    #[serde(deserialize_with = "turns")]
    pub turns: u32,
    /// US dollars per session.
    #[serde(deserialize_with = "amount")]
    pub cost: f64,
    /// That an agent can change in one turn.
    pub files: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RaceSettings {
    /// Models at the same time. `None` depends on cores and free memory.
    #[serde(deserialize_with = "parallel")]
    pub parallel: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Context {
    /// In tokens. Above it, a line names what fills the input.
    pub budget: usize,
    /// The first input of a session holds the whole project if it has at most this many tokens.
    pub whole_project_tokens: usize,
    /// Larger resources are truncated.
    pub max_resource_size: Size,
    /// Of the user's requests, in each input.
    pub max_requests_size: Size,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResearchSettings {
    pub engine: Option<EngineKind>,
    #[serde(deserialize_with = "address")]
    pub base_url: Option<String>,
    pub api_key_env: Option<String>,
    /// `command`: the command to run.
    pub run: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    Searxng,
    Brave,
    Tavily,
    Command,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Web {
    /// Hosts that can have a private address.
    pub allow_hosts: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PushSettings {
    /// `None` follows git's configuration.
    pub remote: Option<String>,
    pub mode: Option<PushMode>,
    /// Findings that don't stop a push.
    pub allow: Vec<LeakKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PushMode {
    /// The turns, without the files.
    NoCode,
    Code,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChangeSettings {
    /// Revisions of a proposal.
    pub planning_iterations: u32,
    /// Fixes of an implementation after its review.
    pub implementation_iterations: u32,
    /// By role: `author`, `challenger`, `implementer`, `reviewer`.
    #[serde(deserialize_with = "roles")]
    pub roles: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Land {
    /// Such as `Assisted-by: {model}`.
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
            budget: 50_000,
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
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

// Deserializers for restricted values. Their error messages are the second half of a sentence that
// starts with "must be".

/// Plans have the same limit.
const MAX_TIMEOUT_SECONDS: u64 = 86_400;

const ROLE_NAMES: [&str; 4] = ["author", "challenger", "implementer", "reviewer"];

fn checked<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    wrong: fn(&T) -> Option<Unexpected<'_>>,
    expected: &'static str,
) -> Result<T, D::Error> {
    let value = T::deserialize(deserializer)?;
    match wrong(&value) {
        None => Ok(value),
        Some(wrong) => Err(D::Error::invalid_value(wrong, &expected)),
    }
}

const AMOUNT: &str = "an amount that is not negative";

/// With NaN as a price or a limit, the cost would never reach the limit.
fn wrong_amount(amount: f64) -> Option<Unexpected<'static>> {
    let is_right = amount.is_finite() && amount >= 0.0;
    (!is_right).then_some(Unexpected::Float(amount))
}

fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    checked(deserializer, |amount: &f64| wrong_amount(*amount), AMOUNT)
}

fn some_amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let wrong = |amount: &Option<f64>| amount.and_then(wrong_amount);
    checked(deserializer, wrong, AMOUNT)
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let wrong = |seconds: &u64| {
        let is_right = (1..=MAX_TIMEOUT_SECONDS).contains(seconds);
        (!is_right).then_some(Unexpected::Unsigned(*seconds))
    };
    checked(deserializer, wrong, "a number of seconds from 1 to 86400")
}

fn turns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let wrong = |turns: &u32| (*turns == 0).then_some(Unexpected::Unsigned(0));
    checked(deserializer, wrong, "1 or more")
}

fn parallel<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let wrong =
        |parallel: &Option<usize>| (*parallel == Some(0)).then_some(Unexpected::Unsigned(0));
    checked(deserializer, wrong, "1 or more")
}

fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ModelKind, D::Error> {
    let kind = String::deserialize(deserializer)?;
    ModelKind::parse(&kind).ok_or_else(|| {
        let names = ModelKind::quoted_names();
        D::Error::custom(format!("unknown variant `{kind}`, expected one of {names}"))
    })
}

/// In seconds.
fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let seconds = Option::<u64>::deserialize(deserializer)?;
    Ok(seconds.map(Duration::from_secs))
}

fn json_fields<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<serde_json::Map<String, serde_json::Value>, D::Error> {
    let fields = BTreeMap::<String, serde_yaml::Value>::deserialize(deserializer)?;
    let fields = fields.into_iter().map(|(key, value)| {
        let value = serde_json::to_value(value).map_err(D::Error::custom)?;
        Ok((key, value))
    });
    fields.collect()
}

fn is_address(text: &str) -> bool {
    let text = text.trim().to_ascii_lowercase();
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|start| text.strip_prefix(start));
    rest.is_some_and(|rest| !rest.is_empty())
}

fn wrong_address(address: &Option<String>) -> Option<Unexpected<'_>> {
    let wrong = address.as_deref().filter(|text| !is_address(text));
    wrong.map(Unexpected::Str)
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let expected = "an address that begins with `http://` or `https://`";
    checked(deserializer, wrong_address, expected)
}

fn roles<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
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

/// In bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid size; write bytes or `512KiB`, `10MiB`, `1GiB`")]
pub struct SizeError(String);

/// Suffixes and their shift.
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
