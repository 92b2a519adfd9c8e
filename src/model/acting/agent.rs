//! An agent as it is set up: what the configuration says, and what is known of the agent where the
//! configuration says nothing.

use std::path::PathBuf;
use std::time::Duration;

use super::preset::{self, AgentPreset};
use super::{AgentLimits, AgentNeeds, AgentTask};
use crate::host::dialogue::{DialogueFolder, DialogueRefusal};
use crate::host::env;
use crate::model::ModelError;
use crate::model::outside::Variable;
use crate::model::settings::{ModelConfig, ModelKind};

/// The time of the whole where the settings have none.
const TOTAL: Duration = Duration::from_secs(3600);
/// The longest silence of an agent that speaks the protocol.
const IDLE: Duration = Duration::from_secs(300);
/// The longest silence of a command, which may say nothing while it works.
const IDLE_COMMAND: Duration = Duration::from_secs(900);
/// The most that an agent may say, in bytes.
const OUTPUT: u64 = 512 << 20;

/// An agent, ready to be started.
#[derive(Debug, Clone)]
pub(super) struct AgentSettings {
    /// The model's name.
    pub(super) name: String,
    /// The program and its arguments.
    pub(super) run: Vec<String>,
    /// The same, to go on with a conversation; nothing where it cannot.
    pub(super) go_on: Vec<String>,
    /// Where to find what in its lines.
    pub(super) facts: Vec<(String, String)>,
    /// What it needs of the machine.
    pub(super) needs: AgentNeeds,
    /// Where it is stopped.
    pub(super) limits: AgentLimits,
    /// The values of the keys that it gets.
    pub(super) secrets: Vec<String>,
    /// Whether a conversation can be gone on with at all.
    pub(super) resumes: bool,
    /// The modes where it is confined, the first that it has.
    modes: Vec<String>,
    /// The mode where it is not.
    careful: Option<String>,
    /// Whether the settings name the mode.
    has_mode: bool,
    /// What is known of it.
    preset: Option<&'static AgentPreset>,
}

impl AgentSettings {
    /// Reads settings. Of the variables with keys it gets those that it is known to need, and the
    /// one that the settings name.
    ///
    /// # Errors
    /// [`ModelError::Settings`] where there is nothing to run.
    pub(super) fn of(
        name: &str,
        settings: &ModelConfig,
        variable: &Variable,
    ) -> Result<AgentSettings, ModelError> {
        let wrong = |detail: String| ModelError::Settings(format!("model `{name}` {detail}"));
        let preset = known(settings);
        if let (None, Some(id)) = (preset, &settings.id) {
            let kind = match settings.kind {
                ModelKind::Acp => "acp",
                _ => "agent",
            };
            let why = preset::unknown(settings.kind.presets(), kind, id);
            return Err(wrong(format!("has an `id` that means nothing: {why}")));
        }

        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let run: Vec<String> = match preset {
            Some(preset) if settings.run.is_empty() => own(preset.run),
            _ => settings.run.clone(),
        };
        if run.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(wrong("has no program in `run`".to_owned()));
        }

        // Who changes how it is started says how it goes on.
        let go_on = match preset {
            Some(preset) if settings.run.is_empty() && settings.acting.go_on.is_empty() => {
                own(preset.go_on)
            }
            _ => settings.acting.go_on.clone(),
        };
        let needs = needs(settings, preset)?;

        Ok(AgentSettings {
            name: name.to_owned(),
            run,
            go_on,
            facts: facts(settings, preset),
            secrets: needs.keys.iter().filter_map(|key| variable(key)).collect(),
            needs,
            limits: limits(settings),
            resumes: preset.is_none_or(|preset| preset.resumes),
            has_mode: settings.acting.mode.is_some(),
            modes: match &settings.acting.mode {
                Some(mode) => vec![mode.clone()],
                None => own(preset.map_or(&[], |preset| preset.modes)),
            },
            careful: preset
                .map(|preset| preset.careful.to_owned())
                .filter(|mode| !mode.is_empty()),
            preset,
        })
    }

    /// Returns the modes to choose from, the first that it has.
    pub(super) fn modes(&self, is_confined: bool) -> Vec<&str> {
        match &self.careful {
            Some(careful) if !is_confined => vec![careful],
            _ => self.modes.iter().map(String::as_str).collect(),
        }
    }

    /// Tells whether what it asks is asked the host. Where it is confined and cannot but ask, the
    /// sandbox is the answer, unless somebody chose its mode.
    pub(super) fn asks_host(&self, is_confined: bool) -> bool {
        let always_asks = self.preset.is_some_and(|preset| preset.always_asks);
        !is_confined || !always_asks || self.has_mode
    }

    /// Returns the variables that it is started with.
    pub(super) fn variables(&self, task: &AgentTask<'_>) -> Vec<(String, String)> {
        let own = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            let pairs = pairs.iter();
            pairs.map(|(n, v)| ((*n).into(), (*v).into())).collect()
        };
        let mut variables = own(&[("TERM", "dumb"), ("NO_COLOR", "1")]);
        if let Some(preset) = self.preset.filter(|_| task.is_confined) {
            variables.extend(own(preset.variables));
        }

        variables.extend(task.variables.iter().cloned());
        variables
    }

    /// Tells whether the tokens that it tells are those of this call.
    pub(super) fn tells_tokens(&self, resumed: bool) -> bool {
        let is_wrong =
            |preset: &AgentPreset| preset.tells_last_step || (resumed && preset.tells_conversation);
        self.preset.is_none_or(|preset| !is_wrong(preset))
    }

    /// Makes the folders of its state that are not there yet: what is not there cannot be opened to
    /// it. What looks like a file is left to it.
    pub(super) fn make_state(&self) {
        for path in &self.needs.state {
            if !path.exists() && path.extension().is_none() {
                // It says itself what it cannot write.
                let _ = std::fs::create_dir_all(path);
            }
        }
    }

    /// Returns what one can do who has no such program.
    pub(super) fn missing(&self) -> ModelError {
        let program = &self.run[0];
        match self.preset {
            Some(preset) => ModelError::Agent {
                detail: format!("the agent `{program}` is not installed"),
                remedy: format!("install it with `{}`", preset.install),
            },
            None => ModelError::CommandMissing {
                program: program.clone(),
            },
        }
    }

    /// Returns what one can do where it was not started.
    pub(super) fn refused(&self, refusal: DialogueRefusal) -> ModelError {
        let program = &self.run[0];
        match refusal {
            DialogueRefusal::Missing => self.missing(),
            DialogueRefusal::TooLong => ModelError::Agent {
                detail: format!("the arguments of `{program}` are longer than the system allows"),
                remedy: "write `{input}` in `run` for the path of a file, or neither, so that it reads the text from stdin".to_owned(),
            },
            DialogueRefusal::Failed(why) => ModelError::Agent {
                detail: format!("`{program}` was not started: {why}"),
                remedy: "check `run` in the model's entry and the permissions of the program".to_owned(),
            },
        }
    }

    /// Returns how one logs in.
    pub(super) fn login(&self) -> String {
        let program = &self.run[0];
        self.preset.map_or_else(
            || format!("if it needs a login, log in with `{program}` itself, or set `api_key_env`"),
            |preset| preset.login.to_owned(),
        )
    }
}

/// Returns what is known of the agent: by its name, else by its program.
fn known(settings: &ModelConfig) -> Option<&'static AgentPreset> {
    let presets = settings.kind.presets();
    match &settings.id {
        Some(id) => preset::named(presets, id),
        None => preset::of_program(presets, settings.run.first()?),
    }
}

/// Returns what it needs of the machine.
fn needs(settings: &ModelConfig, preset: Option<&AgentPreset>) -> Result<AgentNeeds, ModelError> {
    let own = |words: &[&str]| -> Vec<String> { words.iter().map(|w| (*w).to_owned()).collect() };
    let state = match &settings.acting.state {
        Some(state) => state.clone(),
        None => own(preset.map_or(&[], |preset| preset.state)),
    };
    let keys = match &settings.api_key_env {
        Some(key) => vec![key.clone()],
        None => own(preset.map_or(&[], |preset| preset.keys)),
    };

    Ok(AgentNeeds {
        state: state
            .iter()
            .map(|path| expand(path))
            .collect::<Result<_, _>>()?,
        keys,
        leaves: own(preset.map_or(&[], |preset| preset.leaves)),
    })
}

/// Returns a path of the settings: below the home folder with `~/`, else absolute.
fn expand(path: &str) -> Result<PathBuf, ModelError> {
    let expanded = match path.strip_prefix("~/") {
        Some(rest) => env::home().map(|home| home.join(rest)),
        None => Some(PathBuf::from(path)),
    };
    // The home folder itself would be everything.
    let is_whole = |path: &PathBuf| path.parent().is_none() || Some(path) == env::home().as_ref();
    expanded
        .filter(|path| path.is_absolute() && !is_whole(path))
        .ok_or_else(|| {
            ModelError::Settings(format!(
                "`state` has `{path}`; write an absolute path, or one that begins with `~/`, of the agent's own"
            ))
        })
}

/// Returns where to find what: the settings, over what is known.
fn facts(settings: &ModelConfig, preset: Option<&AgentPreset>) -> Vec<(String, String)> {
    if !settings.acting.facts.is_empty() {
        return settings.acting.facts.clone().into_iter().collect();
    }
    let known = preset.map_or(&[][..], |preset| preset.facts).iter();
    known.map(|(n, p)| ((*n).into(), (*p).into())).collect()
}

/// Returns where it is stopped.
fn limits(settings: &ModelConfig) -> AgentLimits {
    let idle = match settings.kind {
        ModelKind::Acp => IDLE,
        _ => IDLE_COMMAND,
    };
    AgentLimits {
        total: settings.timeout.unwrap_or(TOTAL),
        idle: settings.idle_timeout.unwrap_or(idle),
        output: OUTPUT,
    }
}

/// Makes the private folder of an agent, which goes with it.
pub(super) fn private_folder() -> Result<DialogueFolder, ModelError> {
    DialogueFolder::new().map_err(|error| ModelError::Io {
        action: "making a temporary folder".to_owned(),
        detail: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an agent of a spec.
    fn agent(spec: &str) -> AgentSettings {
        let settings = ModelConfig::from_spec(spec).unwrap();
        AgentSettings::of("m", &settings, &|_| None).unwrap()
    }

    #[test]
    fn a_known_program_has_its_state_and_its_words() {
        let claude = agent("acp:/opt/bin/claude-agent-acp --x");
        assert_eq!(claude.run, ["/opt/bin/claude-agent-acp", "--x"]);
        assert!(
            claude
                .needs
                .state
                .iter()
                .any(|path| path.ends_with(".claude"))
        );
        assert_eq!(claude.modes(true), ["bypassPermissions"]);
        assert_eq!(claude.modes(false), ["default"]);
    }

    #[test]
    fn an_agent_that_is_missing_says_what_to_install() {
        let error = agent("acp:codex").missing();
        assert_eq!(
            (error.to_string().as_str(), error.remedy().as_str()),
            (
                "the agent `codex-acp` is not installed",
                "install it with `npm install -g @agentclientprotocol/codex-acp`"
            )
        );
    }

    #[test]
    fn cf8_state_is_a_place_of_its_own() {
        let check = |state: &str| {
            let mut settings = ModelConfig::from_spec("acp:claude").unwrap();
            settings.acting.state = Some(vec![state.to_owned()]);
            AgentSettings::of("m", &settings, &|_| None).is_ok()
        };
        assert!(check("~/.mine") && check("/var/lib/mine"));
        assert!(!check("~/") && !check("/") && !check("mine"));
    }

    #[test]
    fn a_name_that_is_unknown_is_an_error() {
        let settings = ModelConfig {
            kind: ModelKind::Acp,
            id: Some("cluade".into()),
            ..ModelConfig::default()
        };
        let error = AgentSettings::of("m", &settings, &|_| None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "model `m` has an `id` that means nothing: `acp:cluade` is not a known agent; did you mean `acp:claude`?"
        );
    }
}
