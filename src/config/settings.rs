//! The settings: what each means, and what it is without a word from anyone.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::range;
use super::size::Size;
use crate::text::leak::LeakKind;

/// All settings.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The model of a plan: a name of `models`, or `kind:id`.
    pub model: Option<String>,
    /// Models by name.
    pub models: BTreeMap<String, ModelSettings>,
    /// The agent of a new session.
    pub agent: String,
    /// The pipeline of a plan.
    pub pipeline: Option<String>,
    /// The program that shows and edits a proposal; split into words, no shell.
    pub preview_command: Option<String>,
    /// How rejected plans are asked for again.
    pub replan: Replan,
    /// How commands of a plan run.
    pub execute: ExecuteSettings,
    /// What a snapshot takes.
    pub snapshot: SnapshotSettings,
    /// The session's worktree.
    pub worktree: Worktree,
    /// What happens to the work of a plan that fails on the way.
    pub on_failure: OnFailure,
    /// Where an unattended loop stops.
    pub limits: LimitSettings,
    /// How models are raced.
    pub race: RaceSettings,
    /// What the model is shown.
    pub context: Context,
    /// Where RESEARCH searches.
    pub research: ResearchSettings,
    /// What may be fetched.
    pub web: Web,
    /// The change workflow.
    pub change: ChangeSettings,
    /// The commits of `land`.
    pub land: Land,
    /// What goes to remotes.
    pub push: PushSettings,
}

impl Settings {
    /// Returns the variables that hold keys, besides those that everybody knows.
    pub fn key_variables(&self) -> impl Iterator<Item = String> {
        let models = self
            .models
            .values()
            .filter_map(|model| model.api_key_env.clone());
        // A search program is the one that its key is for.
        let research = self
            .research
            .api_key_env
            .clone()
            .filter(|_| self.research.engine != Some(EngineKind::Command));
        models.chain(research)
    }
}

/// One model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    /// The protocol: `openai`, `anthropic`, `command`, `replay`, `manual`, `acp` or `agent`.
    #[serde(deserialize_with = "range::kind")]
    pub kind: String,
    /// The provider's name of the model; `acp`, `agent`: the known agent.
    pub id: String,
    /// Where requests go.
    #[serde(deserialize_with = "range::address")]
    pub base_url: Option<String>,
    /// The variable that holds the key.
    pub api_key_env: Option<String>,
    /// The program that prints the key.
    pub api_key_command: Vec<String>,
    /// `command`, `acp`, `agent`: the program and its arguments.
    pub run: Vec<String>,
    /// `agent`: the same, to go on with a conversation.
    pub go_on: Vec<String>,
    /// `acp`, `agent`: the mode in which the agent works.
    pub mode: Option<String>,
    /// `acp`, `agent`: what the agent may write besides its worktree.
    pub state: Option<Vec<String>>,
    /// `agent`: where to find what in the lines that it prints.
    pub facts: BTreeMap<String, String>,
    /// `replay`: a file or folder of answers.
    pub path: Option<String>,
    /// The limit of one answer, in seconds.
    pub timeout: Option<u64>,
    /// The limit of silence within an answer, in seconds.
    pub idle_timeout: Option<u64>,
    /// The limit of silence before an answer begins, in seconds.
    pub first_byte_timeout: Option<u64>,
    /// The limit until connected, in seconds.
    pub connect_timeout: Option<u64>,
    /// How long an answer may get, in tokens.
    pub max_tokens: Option<u32>,
    /// How freely the model chooses.
    pub temperature: Option<f64>,
    /// Further HTTP headers of a request.
    pub headers: BTreeMap<String, String>,
    /// Further fields of a request, as the provider wants them.
    pub extra: BTreeMap<String, serde_yaml::Value>,
    /// What it costs.
    pub price: Option<Price>,
}

/// Dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Read.
    #[serde(deserialize_with = "range::amount")]
    pub input: f64,
    /// Written.
    #[serde(deserialize_with = "range::amount")]
    pub output: f64,
    /// Read from the provider's cache; not known without it.
    #[serde(default, deserialize_with = "range::some_amount")]
    pub cache_read: Option<f64>,
    /// Written to the provider's cache; not known without it.
    #[serde(default, deserialize_with = "range::some_amount")]
    pub cache_write: Option<f64>,
}

/// How rejected plans are asked for again.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Replan {
    /// How many times in a row.
    pub max: u32,
}

/// How commands of a plan run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExecuteSettings {
    /// The limit of one command, in seconds.
    #[serde(deserialize_with = "range::seconds")]
    pub timeout: u64,
    /// The program that runs the script.
    pub shell: String,
    /// Lines of output in the report; the whole is an artifact.
    pub output_limit: usize,
    /// Whether commands are confined.
    pub sandbox: Sandbox,
    /// Whether confined commands reach the network.
    pub network: bool,
    /// Folders besides the worktree that confined commands may write.
    pub writable: Vec<String>,
    /// Variables with the look of a secret that commands get all the same.
    pub keep_env: Vec<String>,
}

/// Whether commands are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    /// Never.
    Off,
    /// Where the machine can.
    On,
    /// A command does not run where the machine cannot.
    Require,
}

/// What a snapshot takes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotSettings {
    /// Larger untracked files are left out.
    pub max_file_size: Size,
    /// As many untracked files may be new in one snapshot.
    pub max_new_files: usize,
    /// As many bytes may be in them.
    pub max_new_size: Size,
    /// Further names of untracked files that are left out.
    pub exclude: Vec<String>,
    /// Untracked files that are taken though they look like a secret.
    pub include: Vec<String>,
}

/// The session's worktree.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Worktree {
    /// How commands come to the user's files.
    pub backend: Backend,
    /// The folder that holds the worktrees.
    pub root: Option<String>,
    /// Ignored files that are copied into it.
    pub copy: Vec<String>,
    /// Ignored folders that it links to.
    pub link: Vec<String>,
    /// A command that prepares a new one.
    pub setup: Option<String>,
    /// Whether that command reaches the network where it is confined.
    pub network: bool,
}

/// How the commands of a plan come to the user's files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// As an overlay where commands are confined and the machine can, else as a checkout.
    #[default]
    Auto,
    /// They see the files themselves, and what they change goes into a layer; a command does not
    /// run where the machine cannot.
    Overlay,
    /// They see a copy of what the snapshot has.
    Checkout,
}

/// What happens to the work of a plan that fails on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// It is kept and brought to the workspace.
    Keep,
    /// It is dropped.
    Rollback,
}

/// Where an unattended loop stops.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Turns in one call.
    #[serde(deserialize_with = "range::turns")]
    pub turns: u32,
    /// Dollars in one session.
    #[serde(deserialize_with = "range::amount")]
    pub cost: f64,
    /// Files that a model that edits files may change in one turn.
    pub files: usize,
}

/// How models are raced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RaceSettings {
    /// How many run at once; as many as there are cores, and room for, without it.
    #[serde(deserialize_with = "range::parallel")]
    pub parallel: Option<usize>,
}

/// What the model is shown.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Context {
    /// A warning names the largest resources above this many tokens.
    pub budget: usize,
    /// A resource is cut off above this size.
    pub max_resource_size: Size,
    /// The requests of the user take at most as much of each input.
    pub max_requests_size: Size,
}

/// Where RESEARCH searches.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResearchSettings {
    /// What is asked.
    pub engine: Option<EngineKind>,
    /// Where the engine is.
    #[serde(deserialize_with = "range::address")]
    pub base_url: Option<String>,
    /// The variable that holds the key.
    pub api_key_env: Option<String>,
    /// `command`: the program and its arguments.
    pub run: Vec<String>,
}

/// A kind of search engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// A SearXNG server.
    Searxng,
    /// Brave's search.
    Brave,
    /// Tavily's search.
    Tavily,
    /// A program.
    Command,
}

/// What may be fetched.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Web {
    /// Hosts that may have a private address.
    pub allow_hosts: Vec<String>,
}

/// What goes to remotes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PushSettings {
    /// The remote; git's own choice without it.
    pub remote: Option<String>,
    /// How sessions go there.
    pub mode: Option<PushMode>,
    /// What may be found in what goes there.
    pub allow: Vec<LeakKind>,
}

/// How a session goes to a remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PushMode {
    /// Its turns without the workspace.
    Record,
    /// As it is, with the code.
    Code,
}

/// The change workflow.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChangeSettings {
    /// How often a proposal is written again.
    pub planning_iterations: u32,
    /// How often an implementation is mended after its review.
    pub implementation_iterations: u32,
    /// The model of each role: `author`, `challenger`, `implementer`, `reviewer`.
    #[serde(deserialize_with = "range::roles")]
    pub roles: BTreeMap<String, String>,
}

/// The commits of `land`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Land {
    /// Further trailers of a message, such as `Assisted-by: {model}`.
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
            shell: "sh".to_owned(),
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
    /// Returns the limit of one command.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}
