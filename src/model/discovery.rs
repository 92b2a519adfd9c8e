//! Discovers models on this machine: keys in the environment, programs in `PATH`, local servers.
//!
//! All probes run in parallel, within [`PROBE_LIMIT`], and send no key. Replies are untrusted:
//! they are size-limited and used only if they are plain versions or names.
//!
//! Only a program that can be limited to answering is offered as a model: a model must not act on
//! its own. Agents are offered as what they are.

pub mod server;

use std::path::{Path, PathBuf};
use std::time::Duration;

use server::{FoundServer, ServerAddress, is_confidential};

use super::known::{self, KnownProgram, PROGRAMS, PROVIDERS, ProgramUsage, Provider};
use super::model_env::Variable;
use super::remote::{is_near, is_placeholder};
use crate::config::edit::NewModel;
use crate::config::settings::{ModelKind, ModelSettings, Price};
use crate::host::http::Url;
use crate::host::threads::{join_both, parallel_map};
use crate::host::{helper, process};
use crate::model::acting::preset;

/// Doesn't contain the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundKey {
    pub provider: &'static Provider,
    pub variable: &'static str,
}

/// Skips placeholders.
pub fn keys(variable: &Variable) -> Vec<FoundKey> {
    let has_key =
        |name: &&&'static str| variable(name).is_some_and(|value| !is_placeholder(value.trim()));
    PROVIDERS
        .iter()
        .filter_map(|provider| {
            let variable = provider.keys.iter().find(has_key)?;
            Some(FoundKey { provider, variable })
        })
        .collect()
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundModels {
    pub keys: Vec<FoundKey>,
    pub programs: Vec<FoundProgram>,
    pub servers: Vec<FoundServer>,
    pub agents: Vec<FoundAgent>,
    /// Servers that the user named, and why there is no list of their models.
    pub silent: Vec<(ServerAddress, String)>,
}

/// A known agent that edits files itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundAgent {
    pub kind: ModelKind,
    /// Of the preset.
    pub name: &'static str,
    pub program: &'static str,
}

impl FoundModels {
    /// Programs inside `repository` are never run. If not `is_looking`, no program is started and no
    /// gateway is asked.
    pub fn discover(
        repository: Option<&Path>,
        servers: Vec<ServerAddress>,
        is_looking: bool,
        variable: &Variable,
    ) -> FoundModels {
        let (installed, agents) = match is_looking {
            true => (on_path(repository), agents_on_path(repository)),
            false => Default::default(),
        };
        let keys = keys(variable);
        let gateways = server::gateways(variable);
        // Threads read no environment.
        let key_values: Vec<(&str, String)> = keys
            .iter()
            .filter_map(|key| Some((key.variable, variable(key.variable)?)))
            .collect();
        let ask = |address: &ServerAddress| {
            let Some(gateway) = &address.gateway else {
                return server::ask(address, None);
            };
            if !is_looking {
                return FoundServer::unlisted(address).ok_or_else(String::new);
            }
            let mut values = key_values.iter();
            let key = values.find(|(name, _)| Some(*name) == gateway.key);
            server::ask(address, key.map(|(_, value)| value.as_str()))
        };

        let addresses: Vec<ServerAddress> = gateways.into_iter().chain(servers).collect();
        let (programs, servers) = join_both(
            || parallel_map(&installed, |(entry, path)| ask_version(entry, path)),
            || parallel_map(&addresses, ask),
        );
        let mut models = FoundModels {
            keys,
            programs,
            agents,
            ..FoundModels::default()
        };
        for (address, answer) in addresses.into_iter().zip(servers) {
            match answer {
                Ok(server) => models.servers.push(server),
                Err(why) if address.is_named() => models.silent.push((address, why)),
                Err(_) => {}
            }
        }
        models
    }
}

/// Per server.
const MAX_SERVED: usize = 5;

const PROGRAM_TIMEOUT: Duration = Duration::from_secs(900);

/// Local servers can be slow.
const SERVER_TIMEOUT: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone, PartialEq)]
pub struct ModelOffer {
    /// In the configuration.
    pub name: String,
    /// The model or program behind it.
    pub about: String,
    /// One line.
    pub summary: String,
    /// Calls cost money.
    pub is_paid: bool,
    pub settings: ModelSettings,
}

impl ModelOffer {
    /// Address in the local network to which the key would go without encryption. Calls to other
    /// networks fail anyway.
    pub fn plain_address(&self) -> Option<&str> {
        let address = self.settings.base_url.as_deref();
        let has_key =
            self.settings.api_key_env.is_some() || !self.settings.api_key_command.is_empty();
        let is_plain = |address: &&str| {
            !is_confidential(address) && Url::parse(address).is_ok_and(|url| is_near(&url))
        };
        address.filter(|address| has_key && is_plain(address))
    }

    pub fn to_new(&self) -> NewModel {
        NewModel {
            model: self.name.clone(),
            entry: Some(self.settings.clone()),
        }
    }
}

impl FoundModels {
    /// Programs with a subscription, then services, servers, programs with an unknown provider, and
    /// agents.
    pub fn offers(&self) -> Vec<ModelOffer> {
        let programs = |is_paid: bool| {
            self.programs
                .iter()
                .filter(|program| program.refusal().is_none())
                .filter_map(|program| Some((program, program_offer(program.entry)?)))
                .filter(move |(_, offer)| offer.is_paid == is_paid)
                .map(|(program, offer)| ModelOffer {
                    about: program.titled(),
                    ..offer
                })
        };
        let services = self
            .keys
            .iter()
            .filter(|key| self.gateway(key.provider.name).is_none())
            .map(|key| service_offer(key.provider, key.variable, None));
        let servers = self.servers.iter().flat_map(server_offers);
        let agents = self.agents.iter().map(agent_offer);

        programs(false)
            .chain(services)
            .chain(servers)
            .chain(programs(true))
            .chain(agents)
            .collect()
    }

    fn gateway(&self, service: &str) -> Option<&FoundServer> {
        let mut servers = self.servers.iter();
        servers.find(|server| server.address.gateway.is_some() && server.address.name == service)
    }

    /// Installed but not usable, with the reason.
    pub fn refused(&self) -> impl Iterator<Item = (&FoundProgram, String)> {
        self.programs.iter().filter_map(|program| {
            let server = self
                .servers
                .iter()
                .find(|server| server.address.title == program.entry.title);
            match (server, program.getting()) {
                _ if self
                    .agents
                    .iter()
                    .any(|agent| agent.name == program.entry.name) =>
                {
                    None
                }
                (Some(server), Some(get)) if server.models.is_empty() => {
                    Some((program, format!("it has no model yet; `{get}` gets one")))
                }
                (Some(_), Some(_)) => None,
                _ => Some((program, program.refusal()?)),
            }
        })
    }

    /// Finds an offer by name, by the id that it shows, or by `name:id` for other models of a service
    /// or server. Known programs and services are found even if they aren't on this machine.
    pub fn find_offer(&self, word: &str) -> Option<ModelOffer> {
        let (name, id) = match word.split_once(':') {
            Some((name, id)) => (name, Some(id.trim())),
            None => (word, None),
        };
        if id.is_some_and(str::is_empty) {
            return None;
        }

        if let Some(server) = self.gateway(name) {
            let id = id.or_else(|| Some(server.models.first()?.as_str()))?;
            return Some(served_offer(server, id));
        }
        if let Some(provider) = Provider::find(name) {
            let found_key = self.keys.iter().find(|key| key.provider == provider);
            let variable = found_key.map_or(provider.keys[0], |key| key.variable);
            return Some(service_offer(provider, variable, id));
        }

        let server = self
            .servers
            .iter()
            .find(|server| server.address.name == name);
        if let (Some(server), Some(id)) = (server, id) {
            return Some(served_offer(server, id));
        }

        self.offers()
            .into_iter()
            .find(|offer| id.is_none() && offer.name == name)
            .or_else(|| program_offer(KnownProgram::find(name)?).filter(|_| id.is_none()))
            .or_else(|| self.offer_with_id(word))
    }

    fn offer_with_id(&self, id: &str) -> Option<ModelOffer> {
        let has = |server: &&FoundServer| server.models.iter().any(|model| model == id);
        if let Some(server) = self.servers.iter().find(has) {
            return Some(served_offer(server, id));
        }
        let mut keys = self.keys.iter();
        let key = keys.find(|key| key.provider.model == id)?;
        Some(service_offer(key.provider, key.variable, None))
    }
}

/// `None` for programs that don't answer.
fn program_offer(entry: &KnownProgram) -> Option<ModelOffer> {
    let ProgramUsage::Answers {
        run,
        summary,
        is_paid,
        key,
        ..
    } = entry.usage
    else {
        return None;
    };
    Some(ModelOffer {
        name: entry.name.to_owned(),
        about: entry.title.to_owned(),
        summary: summary.to_owned(),
        is_paid,
        settings: ModelSettings {
            kind: ModelKind::Command,
            run: run.iter().map(|&word| word.to_owned()).collect(),
            api_key_env: key.map(str::to_owned),
            timeout: Some(PROGRAM_TIMEOUT),
            ..ModelSettings::default()
        },
    })
}

fn service_offer(provider: &Provider, variable: &str, id: Option<&str>) -> ModelOffer {
    let id = id.unwrap_or(provider.model);
    // Without `api_key_env`, TeDDy sends the usual key to the provider's own address only.
    let is_usual = provider.base_variable.is_some();
    ModelOffer {
        name: provider.name.to_owned(),
        about: format!("{id} with {variable}"),
        summary: format!("the API of {}, paid per token", provider.title),
        is_paid: true,
        settings: ModelSettings {
            kind: provider.kind,
            id: id.to_owned(),
            base_url: (!is_usual).then(|| provider.base_url.to_owned()),
            api_key_env: (!is_usual).then(|| variable.to_owned()),
            ..ModelSettings::default()
        },
    }
}

fn server_offers(server: &FoundServer) -> Vec<ModelOffer> {
    let ids = server.models.iter().take(MAX_SERVED);
    ids.map(|id| served_offer(server, id)).collect()
}

fn agent_offer(agent: &FoundAgent) -> ModelOffer {
    let title = KnownProgram::find(agent.name);
    ModelOffer {
        name: format!("{}-agent", agent.name),
        about: title.map_or(agent.program, |entry| entry.title).to_owned(),
        summary: "edits files in a copy, you review".to_owned(),
        is_paid: false,
        settings: ModelSettings {
            kind: agent.kind,
            id: agent.name.to_owned(),
            ..ModelSettings::default()
        },
    }
}

fn served_offer(server: &FoundServer, id: &str) -> ModelOffer {
    if let Some(gateway) = &server.address.gateway {
        return ModelOffer {
            name: server.address.name.to_owned(),
            about: format!("{id}, {}", server.titled()),
            summary: format!("the server in {}", gateway.variable),
            is_paid: !gateway.is_near,
            settings: ModelSettings {
                kind: gateway.provider.kind,
                id: id.to_owned(),
                base_url: Some(gateway.base_url.clone()),
                api_key_env: gateway.key.map(str::to_owned),
                ..ModelSettings::default()
            },
        };
    }
    ModelOffer {
        name: server.address.name.to_owned(),
        about: format!("{id}, {}", server.titled()),
        summary: "local, free; small models often fail; 14B or more recommended".to_owned(),
        is_paid: false,
        settings: ModelSettings {
            kind: ModelKind::Openai,
            id: id.to_owned(),
            base_url: Some(server.base_url()),
            timeout: Some(SERVER_TIMEOUT),
            // Without a price, the cost would be unknown instead of 0.
            price: Some(Price {
                input: 0.0,
                output: 0.0,
                cache_read: Some(0.0),
                cache_write: None,
            }),
            ..ModelSettings::default()
        },
    }
}

/// For `--version`.
const PROBE_LIMIT: Duration = Duration::from_secs(2);
const MAX_VERSION: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundProgram {
    pub entry: &'static KnownProgram,
    pub path: PathBuf,
    /// `None` if it doesn't print a plain one.
    pub version: Option<String>,
}

impl FoundProgram {
    pub fn titled(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.entry.title),
            None => self.entry.title.to_owned(),
        }
    }

    /// `None` if it can be used as a model.
    pub fn refusal(&self) -> Option<String> {
        match self.entry.usage {
            ProgramUsage::Answers {
                only: Some(major), ..
            } if self.major() != Some(major) => Some(format!(
                "only version {major} is known to be held to answering"
            )),
            ProgramUsage::Answers { .. } => None,
            ProgramUsage::Serves { start, .. } => {
                Some(format!("`{start}` makes its models available"))
            }
            ProgramUsage::Agent { why } => Some(why.to_owned()),
        }
    }

    /// Downloads a model for its server.
    fn getting(&self) -> Option<&'static str> {
        match self.entry.usage {
            ProgramUsage::Serves { get, .. } => Some(get),
            _ => None,
        }
    }

    fn major(&self) -> Option<u32> {
        self.version.as_ref()?.split('.').next()?.parse().ok()
    }
}

/// Only absolute directories, and nothing inside the repository: a clone must not choose a program.
fn on_path(repository: Option<&Path>) -> Vec<(&'static KnownProgram, PathBuf)> {
    let excluded: Vec<&Path> = repository.into_iter().collect();
    PROGRAMS
        .iter()
        .filter_map(|entry| Some((entry, find_program(entry.name, &excluded)?)))
        .collect()
}

/// Known agents with their program. The Agent Client Protocol is preferred.
fn agents_on_path(repository: Option<&Path>) -> Vec<FoundAgent> {
    let excluded: Vec<&Path> = repository.into_iter().collect();
    let mut agents: Vec<FoundAgent> = Vec::new();
    for kind in [ModelKind::Acp, ModelKind::Agent] {
        for entry in preset::of_kind(kind) {
            let program = entry.program();
            let is_known = agents.iter().any(|agent| agent.name == entry.name);
            if !is_known && find_program(program, &excluded).is_some() {
                agents.push(FoundAgent {
                    kind,
                    name: entry.name,
                    program,
                });
            }
        }
    }
    agents
}

/// Finds a program that is not inside the repository, also not through a symlink.
fn find_program(name: &str, excluded: &[&Path]) -> Option<PathBuf> {
    let path = process::find_outside(name, excluded)?;
    // A directory in `PATH` can be a symlink into the repository.
    let real = path.canonicalize().ok()?;
    let is_inside = excluded.iter().any(|dir| {
        let dir = dir.canonicalize();
        dir.map_or(true, |dir| real.starts_with(dir))
    });
    (!is_inside).then_some(path)
}

fn ask_version(entry: &'static KnownProgram, path: &Path) -> FoundProgram {
    let mut command = process::command(path);
    command.arg("--version");
    // No program gets a key just to print its version.
    known::provider_keys().for_each(|variable| {
        command.env_remove(variable);
    });

    let output = helper::probe(&mut command, PROBE_LIMIT);
    FoundProgram {
        entry,
        path: path.to_owned(),
        version: output.and_then(|output| version(&output)),
    }
}

/// The first word that starts with two numbers separated by a dot.
fn version(output: &str) -> Option<String> {
    output
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '"'))
        .map(|word| word.strip_prefix(['v', 'V']).unwrap_or(word))
        .map(|word| word.trim_end_matches(['.', ':']))
        .find(|word| is_version(word))
        .map(str::to_owned)
}

fn is_version(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_');
    let is_number = |part: &str| {
        let digits = part.chars().take_while(char::is_ascii_digit).count();
        (1..=9).contains(&digits)
    };
    let mut parts = word.splitn(2, '.');

    word.len() <= MAX_VERSION
        && word.chars().all(is_plain)
        && parts
            .next()
            .is_some_and(|part| is_number(part) && part.chars().all(|c| c.is_ascii_digit()))
        && parts.next().is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::edit::flow;
    use crate::model::discovery::server::{parse_address, usual};
    use crate::model::known::PROGRAMS;

    fn all() -> FoundModels {
        FoundModels {
            keys: PROVIDERS
                .iter()
                .map(|provider| FoundKey {
                    provider,
                    variable: provider.keys[0],
                })
                .collect(),
            programs: PROGRAMS
                .iter()
                .map(|entry| FoundProgram {
                    entry,
                    path: PathBuf::new(),
                    version: Some("1.5.0".to_owned()),
                })
                .collect(),
            servers: vec![FoundServer {
                address: parse_address("http://127.0.0.1:9").unwrap(),
                models: vec!["b".to_owned(), "a:7b".to_owned()],
            }],
            agents: vec![FoundAgent {
                kind: ModelKind::Acp,
                name: "gemini",
                program: "gemini",
            }],
            silent: Vec::new(),
        }
    }

    #[test]
    fn subscriptions_come_first_and_unknown_costs_last() {
        let offers = all().offers();
        let names: Vec<&str> = offers.iter().map(|offer| offer.name.as_str()).collect();
        assert_eq!(names[..3], ["claude", "codex", "anthropic"]);
        assert_eq!(
            names[names.len() - 5..],
            ["local", "local", "opencode", "llm", "gemini-agent"]
        );
        let refused: Vec<&str> = all()
            .refused()
            .map(|(program, _)| program.entry.name)
            .collect::<Vec<_>>();
        assert_eq!(refused, ["qwen", "vibe", "kimi", "aider", "ollama", "lms"]);
    }

    #[test]
    fn a_server_without_models_says_how_to_get_one() {
        let check = |models: &[&str], expected: Option<&str>| {
            let mut discovered = all();
            discovered.servers = vec![FoundServer {
                address: usual(&|_| None).remove(0),
                models: models.iter().map(|&id| id.to_owned()).collect(),
            }];
            let why = discovered
                .refused()
                .find(|(program, _)| program.entry.name == "ollama")
                .map(|(_, why)| why);
            assert_eq!(why.as_deref(), expected);
        };
        check(
            &[],
            Some("it has no model yet; `ollama pull <model>` gets one"),
        );
        check(&["qwen3"], None);
    }

    #[test]
    fn a_word_names_an_offer_or_another_model_of_it() {
        let check = |word: &str, expected: Option<(&str, &str)>| {
            let offer = all().find_offer(word);
            let actual = offer
                .as_ref()
                .map(|offer| (offer.name.as_str(), offer.settings.id.as_str()));
            assert_eq!(actual, expected, "{word}");
        };
        check("claude", Some(("claude", "")));
        check("groq", Some(("groq", "openai/gpt-oss-120b")));
        check("openai:gpt-5", Some(("openai", "gpt-5")));
        check("local", Some(("local", "b")));
        check("local:a:7b", Some(("local", "a:7b")));
        check("a:7b", Some(("local", "a:7b")));
        check("openai/gpt-oss-120b", Some(("groq", "openai/gpt-oss-120b")));
        check("gemini-agent", Some(("gemini-agent", "gemini")));
        check("claude:x", None);
        check("gemini:x", Some(("gemini", "x")));
        check("aider", None);
        check("openai:", None);
        let none = FoundModels::default();
        assert_eq!(
            none.find_offer("codex").map(|offer| offer.name).as_deref(),
            Some("codex")
        );
    }

    #[test]
    fn what_is_offered_is_what_the_document_shows() {
        let document = include_str!("../../docs/models.md");
        for program in &PROGRAMS {
            let Some(offer) = program_offer(program) else {
                continue;
            };
            let start = format!("  {}: {{", program.name);
            let line = document.lines().find(|line| line.starts_with(&start));
            let (_, entry) = line.unwrap().split_once(": ").unwrap();
            let documented: ModelSettings = serde_yaml::from_str(entry).unwrap();
            assert_eq!(documented, offer.settings, "{}", program.name);
        }
    }

    #[test]
    fn every_offer_can_be_written_down() {
        for offer in all().offers() {
            let read: ModelSettings = serde_yaml::from_str(&flow(&offer.settings)).unwrap();
            assert_eq!(read, offer.settings, "{}", offer.name);
        }
    }

    fn check_keys(set: &'static [(&str, &str)], expected: &[(&str, &str)]) {
        let variable = |name: &str| {
            let value = set.iter().find(|(set, _)| *set == name);
            value.map(|(_, value)| (*value).to_owned())
        };
        let actual = keys(&variable);
        let actual: Vec<_> = actual
            .iter()
            .map(|key| (key.provider.name, key.variable))
            .collect();
        assert_eq!(actual, expected);
    }

    #[test]
    fn a_key_is_found_by_its_variable() {
        check_keys(
            &[("OPENAI_API_KEY", "sk-abc123"), ("XAI_API_KEY", "xai-1")],
            &[("openai", "OPENAI_API_KEY"), ("xai", "XAI_API_KEY")],
        );
        check_keys(
            &[("GOOGLE_API_KEY", "AIza1234")],
            &[("gemini", "GOOGLE_API_KEY")],
        );
    }

    #[test]
    fn what_stands_in_examples_is_no_key() {
        check_keys(&[("OPENAI_API_KEY", "..."), ("GROQ_API_KEY", "<key>")], &[]);
        check_keys(&[("ANTHROPIC_API_KEY", " ")], &[]);
    }

    fn check(output: &str, expected: Option<&str>) {
        assert_eq!(version(output).as_deref(), expected, "{output:?}");
    }

    #[test]
    fn a_version_is_found_in_what_programs_say() {
        check("2.1.287 (Claude Code)\n", Some("2.1.287"));
        check("codex-cli 0.98.0\n", Some("0.98.0"));
        check("aider 0.86.1", Some("0.86.1"));
        check("llm, version 0.27.1", Some("0.27.1"));
        check("ollama version is 0.12.3", Some("0.12.3"));
        check(
            "Warning: no server.\nclient version is v0.5.0-rc1.",
            Some("0.5.0-rc1"),
        );
        check("opencode 1.18.18+build.5", Some("1.18.18+build.5"));
    }

    #[test]
    fn what_is_no_version_is_none() {
        check("", None);
        check("usage: claude [options]", None);
        check("version 5", None);
        check("see https://example.org/1.2", None);
        check("1.2\u{1b}[31m", None);
        check(&format!("1.{}", "2".repeat(100)), None);
        check(".5 5. a.1 1.a", None);
    }

    #[test]
    fn a_program_of_another_generation_is_not_offered() {
        let entry = KnownProgram::find("opencode");
        let program = |version: Option<&str>| FoundProgram {
            entry: entry.unwrap(),
            path: PathBuf::new(),
            version: version.map(str::to_owned),
        };
        assert_eq!(program(Some("1.18.0")).refusal(), None);
        for other in [Some("2.0.1"), None] {
            let why = program(other).refusal().unwrap();
            assert!(why.starts_with("only version 1"), "{why}");
        }
    }
}
