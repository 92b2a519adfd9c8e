//! Settings of an agent: its configuration, completed from the table of known agents.
//!
//! A custom command gets none of the known agent's command lines, but its paths, keys and modes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::agent_output::last_answer;
use super::clock::AgentLimits;
use super::facts::MAX_MESSAGE;
use super::preset::{self, AgentPreset};
use super::{
    AgentFailure, AgentHost, AgentNeeds, AgentResult, AgentTask, ConversationTotals,
    EarlierConversation, UsageScope,
};
use crate::config::settings::{ModelKind, ModelSettings};
use crate::host::dialogue::{Dialogue, DialogueOrder, DialogueRefusal};
use crate::host::file::{Root, read_end, read_regular};
use crate::host::supervisor::CommandDir;
use crate::host::{env, process};
use crate::model::model_env::Variable;
use crate::model::{ModelError, TokenUsage};

const TOTAL: Duration = Duration::from_secs(3600);
const IDLE: Duration = Duration::from_secs(300);
/// Commands can be silent while they work.
const IDLE_COMMAND: Duration = Duration::from_secs(900);
/// In bytes.
const OUTPUT: u64 = 512 << 20;
/// In bytes.
const MAX_STATE: u64 = 64 << 20;

pub trait ActingModel: Send {
    fn agent(&self) -> &AgentSettings;

    /// Runs the agent until it finishes, fails, exceeds a limit or is cancelled, and ends all of
    /// its processes. Even if this fails, the agent can have changed files.
    fn act(
        &self,
        task: &AgentTask<'_>,
        host: &mut dyn AgentHost,
    ) -> Result<AgentResult, Box<AgentFailure>>;
}

#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// As configured.
    pub name: String,
    pub(super) run: Vec<String>,
    /// Empty if the agent can't resume.
    pub(super) resume: Vec<String>,
    /// Names and rules.
    pub(super) facts: Vec<(String, String)>,
    /// The sandbox of the caller must grant these.
    pub needs: AgentNeeds,
    pub limits: AgentLimits,
    /// Redacted from the transcript.
    pub(super) secrets: Vec<String>,
    /// `false` if conversations don't survive resuming.
    pub(super) resumes: bool,
    /// In a sandbox, in order of preference.
    modes: Vec<String>,
    /// `None` uses `modes` without a sandbox as well.
    unconfined_mode: Option<String>,
    /// The configuration names the mode.
    has_mode: bool,
    preset: &'static AgentPreset,
}

impl AgentSettings {
    /// Combines the configuration with the known agent's defaults. Fails if there is no command to
    /// run.
    pub(super) fn of(
        name: &str,
        settings: &ModelSettings,
        variable: &Variable,
    ) -> Result<AgentSettings, ModelError> {
        let wrong = |detail: String| ModelError::Settings(format!("model `{name}` {detail}"));
        let preset = match (find_preset(settings), settings.id.as_str(), settings.kind) {
            (Some(preset), ..) => preset,
            (None, "", ModelKind::Acp) => &preset::OTHER_ACP,
            (None, "", _) => &preset::OTHER_COMMAND,
            (None, id, kind) => {
                let why = preset::unknown(kind, id);
                return Err(wrong(format!("has an invalid `id`: {why}")));
            }
        };

        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        let run: Vec<String> = match settings.run.is_empty() {
            true => words(preset.run),
            false => settings.run.clone(),
        };
        if run.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(wrong("has no program in `run`".to_owned()));
        }

        // The known resume command might not fit a custom start command.
        let is_usual = settings.run.is_empty() && settings.go_on.is_empty();
        let resume = match is_usual {
            true => words(preset.resume),
            false => settings.go_on.clone(),
        };
        let needs = needs(settings, preset)?;

        Ok(AgentSettings {
            name: name.to_owned(),
            run,
            resume,
            facts: facts(settings, preset),
            secrets: needs.keys.iter().filter_map(|key| variable(key)).collect(),
            needs,
            limits: limits(settings),
            resumes: preset.resumes,
            has_mode: settings.mode.is_some(),
            modes: match &settings.mode {
                Some(mode) => vec![mode.clone()],
                None => owned(preset.modes),
            },
            unconfined_mode: Some(preset.unconfined_mode.to_owned())
                .filter(|mode| !mode.is_empty()),
            preset,
        })
    }

    /// In order of preference.
    pub(super) fn modes(&self, is_confined: bool) -> Vec<&str> {
        match &self.unconfined_mode {
            Some(mode) if !is_confined => vec![mode],
            _ => self.modes.iter().map(String::as_str).collect(),
        }
    }

    /// `false` if the sandbox replaces the agent's questions: it is confined and has no mode
    /// without questions. A configured mode keeps them.
    pub(super) fn asks_host(&self, is_confined: bool) -> bool {
        !is_confined || !self.preset.always_asks || self.has_mode
    }

    fn variables(&self, task: &AgentTask<'_>) -> Vec<(String, String)> {
        // The output is recorded, so it should have no colors or cursor movements.
        let mut variables = owned_pairs(&[("TERM", "dumb"), ("NO_COLOR", "1")]);
        // These declare a sandbox or a trusted directory, which is true in ours only.
        if task.is_confined {
            variables.extend(owned_pairs(self.preset.variables));
        }

        variables.extend(task.variables.iter().cloned());
        variables
    }

    /// Usage of this call and of the whole conversation, from what the agent reported. `earlier` is
    /// `None` in a new conversation.
    pub(super) fn usage_of_call(
        &self,
        usage: TokenUsage,
        cost: Option<f64>,
        earlier: Option<&ConversationTotals>,
    ) -> (TokenUsage, Option<f64>, ConversationTotals) {
        let AgentPreset {
            tokens,
            cost: dollars,
            ..
        } = *self.preset;
        let is_total = tokens == UsageScope::Conversation;
        let total_usage = Some(usage).filter(|usage| usage.is_known() && is_total);
        let total_usage = total_usage.or(earlier.and_then(|earlier| earlier.usage));
        let total_usage = total_usage.filter(TokenUsage::is_known);
        let usage = tokens.usage(usage, earlier);
        let cost = dollars.cost(cost, earlier);
        let totals = ConversationTotals {
            usage: total_usage,
            cost: cost.total,
            counts_anew: cost.counts_anew,
        };
        // Agents report 0 for a model whose price they do not know.
        let call = cost.call.filter(|cost| *cost > 0.0 || !usage.is_known());
        (usage, call, totals)
    }

    /// Totals from which the agent counts on in a resumed conversation.
    pub(super) fn totals_before(&self, earlier: &EarlierConversation) -> ConversationTotals {
        let preset = self.preset;
        if preset.cost_file.is_empty() {
            // The next total includes calls without a report.
            return ConversationTotals {
                usage: Some(earlier.totals.usage.unwrap_or_default()),
                cost: Some(earlier.totals.cost.unwrap_or_default()),
                ..earlier.totals
            };
        }

        let own = env::dir_var(preset.dir_variable);
        let conversations = own.clone().or_else(|| Some(env::home()?.join(".claude")));
        let counted =
            conversations.and_then(|dir| cost_in_conversation(&dir.join("projects"), &earlier.id));
        let saved = || {
            let path = own.or_else(env::home)?.join(preset.cost_file);
            saved_cost(&read_regular(&path, MAX_STATE).ok()?, &earlier.id)
        };
        ConversationTotals {
            cost: counted.or_else(|| cost_before(saved(), earlier.totals.cost)),
            counts_anew: false,
            ..earlier.totals
        }
    }

    /// The last answer in the agent's chat history. `None` if it keeps none.
    pub(super) fn answer_in_history(&self, temporary: &Path) -> Option<String> {
        let name = Some(self.preset.history).filter(|name| !name.is_empty())?;
        let root = Root::open(temporary).ok()?;
        let end = read_end(&root, Path::new(name), 0, MAX_MESSAGE as u64).ok()?;
        Some(last_answer(&String::from_utf8_lossy(&end.bytes)))
    }

    pub(super) fn start(
        &self,
        task: &AgentTask<'_>,
        dir: &CommandDir,
        argv: &[String],
    ) -> Result<Dialogue, ModelError> {
        self.make_state();
        let order = DialogueOrder {
            argv,
            dir: task.dir,
            launcher: &task.launcher,
            variables: &self.variables(task),
            keep_env: &self.needs.keys,
        };
        Dialogue::start(&order, dir).map_err(|refusal| self.refused(refusal))
    }

    fn make_state(&self) {
        for path in &self.needs.state {
            // A sandbox can only grant access to existing paths. Paths with an extension look like
            // files, which the agent creates itself.
            if !path.exists() && path.extension().is_none() {
                // The agent itself reports what it can't write.
                let _ = std::fs::create_dir_all(path);
            }
        }
    }

    /// Fails if the program of the agent is not installed.
    pub fn check_installed(&self) -> Result<(), ModelError> {
        let program = &self.run[0];
        // A relative path is looked up in the worktree in which the agent starts.
        let is_relative = program.contains('/') && !Path::new(program).is_absolute();
        match is_relative || process::find(program).is_some() {
            true => Ok(()),
            false => Err(self.missing()),
        }
    }

    fn missing(&self) -> ModelError {
        let program = &self.run[0];
        match self.preset.install {
            "" => ModelError::CommandMissing {
                program: program.clone(),
            },
            install => ModelError::Agent {
                detail: format!("the agent `{program}` is not installed"),
                remedy: format!("install it with `{install}`"),
            },
        }
    }

    fn refused(&self, refusal: DialogueRefusal) -> ModelError {
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

    pub(super) fn login(&self) -> String {
        match self.preset.login {
            "" => format!("log in with `{}` itself, or set `api_key_env`", self.run[0]),
            login => login.to_owned(),
        }
    }
}

/// By name, else by program.
fn find_preset(settings: &ModelSettings) -> Option<&'static AgentPreset> {
    let presets = preset::of_kind(settings.kind);
    match settings.id.as_str() {
        "" => preset::of_program(presets, settings.run.first()?),
        id => preset::find_by_name(presets, id),
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn owned_pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = pairs.iter();
    pairs.map(|(n, v)| ((*n).into(), (*v).into())).collect()
}

fn needs(settings: &ModelSettings, preset: &AgentPreset) -> Result<AgentNeeds, ModelError> {
    let state = settings.state.clone();
    let state = state.unwrap_or_else(|| owned(preset.state));
    // A configured key replaces the usual ones, so that the agent gets no other.
    let keys = match &settings.api_key_env {
        Some(key) => vec![key.clone()],
        None => owned(preset.keys),
    };

    Ok(AgentNeeds {
        state: state
            .iter()
            .map(|path| expand(path))
            .collect::<Result<_, _>>()?,
        keys,
        leaves: owned(preset.leaves),
        can_be_python: preset.is_python,
    })
}

/// Expands `~/`. Fails for relative paths.
fn expand(path: &str) -> Result<PathBuf, ModelError> {
    let expanded = match path.strip_prefix("~/") {
        Some(suffix) => env::home().map(|home| home.join(suffix)),
        None => Some(PathBuf::from(path)),
    };
    // `/` or the whole home directory would defeat the sandbox.
    let is_whole = |path: &PathBuf| path.parent().is_none() || Some(path) == env::home().as_ref();
    expanded
        .filter(|path| path.is_absolute() && !is_whole(path))
        .ok_or_else(|| {
            ModelError::Settings(format!(
                "`state` has `{path}`; write an absolute path, or one that begins with `~/`, of the agent's own"
            ))
        })
}

/// Cost of a conversation in Claude Code's file of the conversation, from which newer versions count
/// on.
fn cost_in_conversation(projects: &Path, conversation: &str) -> Option<f64> {
    let root = Root::open(projects).ok()?;
    let name = format!("{conversation}.jsonl");
    let mut dirs = std::fs::read_dir(projects).ok()?.flatten();
    dirs.find_map(|dir| {
        let file = Path::new(&dir.file_name()).join(&name);
        let end = read_end(&root, &file, 0, MAX_STATE).ok()?;
        last_cost_state(&end.bytes, conversation)
    })
}

fn last_cost_state(lines: &[u8], conversation: &str) -> Option<f64> {
    let mut lines = lines.rsplit(|&byte| byte == b'\n');
    lines.find_map(|line| {
        memchr::memmem::find(line, b"\"cost-state\"")?;
        let state: Value = serde_json::from_slice(line).ok()?;
        let is_state = state["type"] == "cost-state" && state["sessionId"] == conversation;
        state["totalCostUSD"].as_f64().filter(|_| is_state)
    })
}

/// Cost of a conversation in Claude Code's `.claude.json`, which has that of the last one in each
/// project.
fn saved_cost(text: &[u8], conversation: &str) -> Option<f64> {
    let state: Value = serde_json::from_slice(text).ok()?;
    let mut projects = state["projects"].as_object()?.values();
    let project = projects.find(|project| project["lastSessionId"] == conversation)?;
    project["lastCost"].as_f64()
}

/// Cost from which a resumed conversation counts on. `None` if it is unknown: Claude Code saves the
/// cost at the end of its screen, some versions at the end of each process, and not all that save
/// it read it.
fn cost_before(saved: Option<f64>, recorded: Option<f64>) -> Option<f64> {
    let Some(saved) = saved else {
        return Some(0.0);
    };
    recorded.filter(|recorded| (saved - recorded).abs() < 1e-9)
}

/// Configured facts replace all of the known agent's.
fn facts(settings: &ModelSettings, preset: &AgentPreset) -> Vec<(String, String)> {
    match settings.facts.is_empty() {
        true => owned_pairs(preset.facts),
        false => settings.facts.clone().into_iter().collect(),
    }
}

fn limits(settings: &ModelSettings) -> AgentLimits {
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

pub(super) fn private_dir() -> Result<CommandDir, ModelError> {
    CommandDir::new().map_err(|error| ModelError::io("creating a temporary directory", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(spec: &str) -> AgentSettings {
        let settings = ModelSettings::from_spec(spec).unwrap();
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
    fn a_cost_of_zero_is_unknown() {
        let usage = TokenUsage {
            input: 10,
            ..TokenUsage::default()
        };
        let cost = |reported| {
            agent("agent:opencode")
                .usage_of_call(usage, reported, None)
                .1
        };
        assert_eq!((cost(Some(0.0)), cost(Some(0.5))), (None, Some(0.5)));
    }

    /// Regression: the tokens of the next call were unknown, and so was its cost.
    #[test]
    fn the_first_total_of_a_conversation_includes_the_calls_before_it() {
        let agent = agent("agent:codex");
        let usage = TokenUsage {
            input: 10,
            output: 1,
            ..TokenUsage::default()
        };
        let before = agent.totals_before(&EarlierConversation::default());
        let silent = agent.usage_of_call(TokenUsage::default(), None, Some(&before));
        assert_eq!(
            silent,
            (TokenUsage::default(), None, ConversationTotals::default())
        );
        let (of_call, _, totals) = agent.usage_of_call(usage, None, Some(&before));
        assert_eq!((of_call, totals.usage), (usage, Some(usage)));
    }

    /// Regression: TeDDy guessed from the amounts if a process had restarted its count, so the first
    /// such call that cost more than all before was charged too little.
    #[test]
    fn a_resumed_conversation_counts_on_from_the_agents_own_file() {
        let state = br#"{"projects":{"/a":{},"/b":{"lastSessionId":"s-1","lastCost":0.5}}}"#;
        let before = |text: &[u8], id| cost_before(saved_cost(text, id), Some(0.5));
        assert_eq!(before(state, "s-1"), Some(0.5));
        assert_eq!(before(state, "s-2"), Some(0.0));
        for text in ["", "[1", "[]", r#"{"projects":1}"#] {
            assert_eq!(before(text.as_bytes(), "s-1"), Some(0.0), "{text}");
        }
        // The user continued it by hand.
        assert_eq!(cost_before(Some(0.75), Some(0.5)), None);
        assert_eq!(cost_before(Some(0.75), None), None);
    }

    /// Bug: each resumed turn was charged with those before it.
    #[test]
    fn a_resumed_conversation_counts_on_from_its_own_file() {
        let projects = tempfile::tempdir().unwrap();
        let cost = || cost_in_conversation(projects.path(), "s-1");
        assert_eq!(cost(), None);
        let write = |path: &str, lines: &[&str]| {
            let path = projects.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, lines.join("\n")).unwrap();
        };
        let state = |id: &str, cost| {
            format!(r#"{{"type":"cost-state","sessionId":"{id}","totalCostUSD":{cost}}}"#)
        };
        write("-other/s-2.jsonl", &[&state("s-2", 9.0)]);
        let message =
            r#"{"type":"user","sessionId":"s-1","message":"\"cost-state\"","totalCostUSD":8}"#;
        write("-work/s-1.jsonl", &[message, "{", &state("s-3", 7.0)]);
        assert_eq!(cost(), None);
        let lines = [&state("s-1", 0.25), &state("s-1", 0.5), message, ""];
        write("-work/s-1.jsonl", &lines);
        assert_eq!(cost(), Some(0.5));
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
            let mut settings = ModelSettings::from_spec("acp:claude").unwrap();
            settings.state = Some(vec![state.to_owned()]);
            AgentSettings::of("m", &settings, &|_| None).is_ok()
        };
        assert!(check("~/.mine") && check("/var/lib/mine"));
        assert!(!check("~/") && !check("/") && !check("mine"));
    }

    #[test]
    fn a_name_that_is_unknown_is_an_error() {
        let settings = ModelSettings {
            kind: ModelKind::Acp,
            id: "cluade".into(),
            ..ModelSettings::default()
        };
        let error = AgentSettings::of("m", &settings, &|_| None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "model `m` has an invalid `id`: `acp:cluade` is not a known agent; did you mean `acp:claude`?"
        );
    }
}
