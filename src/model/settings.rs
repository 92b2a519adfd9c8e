//! Configuration of a model: an entry under `models:`, or `kind:id` on the command line.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::ModelError;
use super::acting::preset::{self, AgentPreset};
use crate::config::settings::{ModelSettings, Price, Settings};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelConfig {
    pub kind: ModelKind,
    /// The provider's. For `acp` and `agent`, the name of a known agent.
    pub id: Option<String>,
    /// Usually ends in `/v1`.
    pub base_url: Option<String>,
    /// For a command, the one key variable that it inherits.
    pub api_key_env: Option<String>,
    /// Prints the key.
    pub api_key_command: Vec<String>,
    /// `command`, `acp` and `agent`: the command to run. `{input}` expands to the path of a file
    /// with the prompt.
    pub run: Vec<String>,
    pub acting: ActingConfig,
    /// `replay`: a file with an answer, or a directory of them, used in order of their names.
    pub path: Option<PathBuf>,
    /// For the whole answer.
    pub timeout: Option<Duration>,
    /// Longest silence between two pieces of an answer.
    pub idle_timeout: Option<Duration>,
    /// Longest silence before the first piece.
    pub first_byte_timeout: Option<Duration>,
    pub connect_timeout: Option<Duration>,
    /// Of output.
    pub max_tokens: Option<u32>,
    /// `None` uses the provider's default.
    pub temperature: Option<f64>,
    pub headers: Headers,
    pub price: Option<Price>,
    /// JSON fields of the request.
    pub extra: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActingConfig {
    pub resume: Vec<String>,
    pub mode: Option<String>,
    /// Paths that the agent can write besides its worktree. `None` uses the known agent's defaults.
    pub state: Option<Vec<String>>,
    /// Rules for finding facts such as the conversation's id in the agent's output.
    pub facts: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelKind {
    /// OpenAI-compatible chat completions.
    #[default]
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

/// Values can be secret, so `Debug` prints names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(pub BTreeMap<String, String>);

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
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

    /// Returns whether the model is behind HTTP.
    pub fn is_remote(self) -> bool {
        matches!(
            self,
            ModelKind::Openai | ModelKind::Responses | ModelKind::Anthropic
        )
    }

    fn parse(name: &str) -> Option<ModelKind> {
        ModelKind::ALL
            .iter()
            .find(|(candidate, _)| *candidate == name)
            .map(|(_, kind)| *kind)
    }

    /// All kinds as written in the configuration.
    pub fn names() -> [&'static str; 8] {
        ModelKind::ALL.map(|(name, _)| name)
    }

    /// Empty for models that aren't agents.
    pub fn presets(self) -> &'static [AgentPreset] {
        match self {
            ModelKind::Acp => &preset::ACP,
            ModelKind::Agent => &preset::COMMANDS,
            _ => &[],
        }
    }

    fn quoted_names() -> String {
        ModelKind::ALL
            .map(|(name, _)| format!("`{name}`"))
            .join(", ")
    }
}

impl ModelConfig {
    /// Fails on an invalid kind, a limit of 0, or an `extra` field that JSON can't express.
    pub fn from_config(name: &str, entry: &ModelSettings) -> Result<ModelConfig, ModelError> {
        let wrong = |detail: String| ModelError::Settings(format!("model `{name}`: {detail}"));
        let seconds = |key: &str, value: Option<u64>| match value {
            Some(0) => Err(wrong(format!("a `{key}` of 0 leaves no time"))),
            other => Ok(other.map(Duration::from_secs)),
        };
        let extra = entry
            .extra
            .iter()
            .map(|(key, value)| serde_json::to_value(value).map(|value| (key.clone(), value)));

        Ok(ModelConfig {
            kind: ModelKind::parse(&entry.kind).ok_or_else(|| {
                let names = ModelKind::quoted_names();
                wrong(match entry.kind.as_str() {
                    "" => format!("it has no `kind`; use one of {names}"),
                    kind => format!("`{kind}` is not a valid kind; use one of {names}"),
                })
            })?,
            id: Some(entry.id.clone()).filter(|id| !id.is_empty()),
            base_url: entry.base_url.clone(),
            api_key_env: entry.api_key_env.clone(),
            api_key_command: entry.api_key_command.clone(),
            run: entry.run.clone(),
            acting: ActingConfig::of(entry),
            path: entry.path.as_ref().map(PathBuf::from),
            timeout: seconds("timeout", entry.timeout)?,
            idle_timeout: seconds("idle_timeout", entry.idle_timeout)?,
            first_byte_timeout: seconds("first_byte_timeout", entry.first_byte_timeout)?,
            connect_timeout: seconds("connect_timeout", entry.connect_timeout)?,
            max_tokens: entry.max_tokens,
            temperature: entry.temperature,
            headers: Headers(entry.headers.clone()),
            price: entry.price,
            extra: extra
                .collect::<Result<_, _>>()
                .map_err(|error| wrong(format!("`extra`: {error}")))?,
        })
    }

    /// Parses `kind:rest`, such as `openai:gpt-5`, `command:claude -p`, `replay:answers/` or
    /// `manual`. Fails with [`ModelError::NoSuchModel`] on an unknown kind and
    /// [`ModelError::Unknown`] on an invalid rest.
    pub fn from_spec(spec: &str) -> Result<ModelConfig, ModelError> {
        let (kind, value) = spec.split_once(':').unwrap_or((spec, ""));
        let (kind, value) = (
            ModelKind::parse(kind).ok_or_else(|| unknown(spec, &[]))?,
            value.trim(),
        );
        if value.is_empty() && kind != ModelKind::Manual {
            return Err(ModelError::Unknown(format!(
                "`{spec}` names nothing after the colon"
            )));
        }

        let settings = ModelConfig {
            kind,
            ..ModelConfig::default()
        };
        Ok(match kind {
            ModelKind::Openai | ModelKind::Responses | ModelKind::Anthropic => ModelConfig {
                id: Some(value.to_owned()),
                ..settings
            },
            ModelKind::Command => ModelConfig {
                run: split_args(value)?,
                ..settings
            },
            ModelKind::Replay => ModelConfig {
                path: Some(PathBuf::from(value)),
                ..settings
            },
            ModelKind::Manual => settings,
            ModelKind::Acp | ModelKind::Agent => agent(settings, spec, value)?,
        })
    }

    /// A configured name, or `kind:rest`.
    pub fn resolve(word: &str, settings: &Settings) -> Result<ModelConfig, ModelError> {
        if let Some(entry) = settings.models.get(word) {
            return ModelConfig::from_config(word, entry);
        }
        ModelConfig::from_spec(word).map_err(|error| match error {
            ModelError::NoSuchModel { word, .. } => {
                let configured: Vec<String> = settings.models.keys().cloned().collect();
                unknown(&word, &configured)
            }
            error => error,
        })
    }

    /// Fails if the id is missing or empty.
    pub fn require_id(&self, name: &str) -> Result<&str, ModelError> {
        self.id
            .as_deref()
            .filter(|id| !id.trim().is_empty())
            .ok_or_else(|| ModelError::Settings(format!("model `{name}` has no `id`")))
    }
}

impl ActingConfig {
    fn of(entry: &ModelSettings) -> ActingConfig {
        ActingConfig {
            resume: entry.go_on.clone(),
            mode: entry.mode.clone(),
            state: entry.state.clone(),
            facts: entry.facts.clone(),
        }
    }
}

/// The part after `acp:` or `agent:`: a known agent's name, or a command line if it contains a
/// space or `/`.
fn agent(settings: ModelConfig, spec: &str, value: &str) -> Result<ModelConfig, ModelError> {
    if value.contains(['/', ' ']) {
        let run = split_args(value)?;
        return Ok(ModelConfig { run, ..settings });
    }

    let presets = settings.kind.presets();
    if preset::find_by_name(presets, value).is_none() {
        let kind = spec.split(':').next().unwrap_or_default();
        return Err(ModelError::Unknown(preset::unknown(presets, kind, value)));
    }
    Ok(ModelConfig {
        id: Some(value.to_owned()),
        ..settings
    })
}

/// Like a shell, without running one.
fn split_args(line: &str) -> Result<Vec<String>, ModelError> {
    shlex::split(line).ok_or_else(|| {
        ModelError::Unknown(format!("`{line}` has a quotation mark that is not closed"))
    })
}

fn unknown(word: &str, configured: &[String]) -> ModelError {
    ModelError::NoSuchModel {
        word: word.to_owned(),
        configured: configured.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(yaml: &str) -> Result<ModelConfig, String> {
        let entry: ModelSettings = serde_yaml::from_str(yaml).unwrap();
        ModelConfig::from_config("m", &entry).map_err(|error| error.to_string())
    }

    #[test]
    fn the_configuration_knows_every_kind() {
        assert_eq!(ModelKind::names(), crate::config::settings::MODEL_KINDS);
    }

    #[test]
    fn an_entry_is_read_with_its_limits_and_prices() {
        let settings = parse("{ kind: openai, id: qwen3, timeout: 600, price: { input: 3, output: 15 }, extra: { top_k: 4 } }").unwrap();
        assert_eq!(
            (settings.kind, settings.id.as_deref(), settings.timeout),
            (
                ModelKind::Openai,
                Some("qwen3"),
                Some(Duration::from_secs(600))
            )
        );
        assert_eq!(
            settings.price,
            Some(Price {
                input: 3.0,
                output: 15.0,
                cache_read: None,
                cache_write: None
            })
        );
        assert_eq!(settings.extra["top_k"], 4);
    }

    #[test]
    fn an_entry_that_makes_no_model_is_explained() {
        let kinds =
            "`openai`, `responses`, `anthropic`, `command`, `replay`, `manual`, `acp`, `agent`";
        assert_eq!(
            parse("{ id: x }"),
            Err(format!("model `m`: it has no `kind`; use one of {kinds}"))
        );
        assert_eq!(
            parse("{ kind: command, timeout: 0 }"),
            Err("model `m`: a `timeout` of 0 leaves no time".into())
        );
    }

    #[test]
    fn a_spec_names_kind_and_rest() {
        assert_eq!(
            ModelConfig::from_spec("openai:meta/llama:free")
                .unwrap()
                .id
                .as_deref(),
            Some("meta/llama:free")
        );
        assert_eq!(
            ModelConfig::from_spec("command:claude -p 'a b'")
                .unwrap()
                .run,
            ["claude", "-p", "a b"]
        );
        assert_eq!(
            ModelConfig::from_spec("replay:answers/").unwrap().path,
            Some(PathBuf::from("answers/"))
        );
        assert_eq!(
            ModelConfig::from_spec("manual").unwrap().kind,
            ModelKind::Manual
        );
    }

    #[test]
    fn a_spec_names_an_agent_or_its_command_line() {
        let read = |spec: &str| ModelConfig::from_spec(spec);
        let config = read("acp:claude").unwrap();
        assert_eq!(
            (config.kind, config.id.as_deref(), config.run.is_empty()),
            (ModelKind::Acp, Some("claude"), true)
        );
        assert_eq!(read("agent:./go 'a b'").unwrap().run, ["./go", "a b"]);
        assert_eq!(
            read("agent:aidr").unwrap_err().to_string(),
            "`agent:aidr` is not a known agent; did you mean `agent:aider`?"
        );
    }

    #[test]
    fn a_spec_that_is_none_lists_the_kinds() {
        let error = ModelConfig::from_spec("nonsense").unwrap_err();
        assert_eq!(error.to_string(), "`nonsense` is not a known model");
        assert!(error.remedy().contains("anthropic:<id>"), "{error:?}");
        assert!(ModelConfig::from_spec("openai:").is_err());
        assert!(ModelConfig::from_spec("command:a 'b").is_err());
    }

    #[test]
    fn debug_shows_no_header_value() {
        let settings = parse("{ kind: openai, headers: { X-Secret: hunter2 } }").unwrap();
        let debug = format!("{settings:?}");
        assert!(
            debug.contains("X-Secret") && !debug.contains("hunter2"),
            "{debug}"
        );
    }
}
