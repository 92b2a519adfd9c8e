//! Known providers, model servers, programs and search engines: one table for `setup`, the lookup of
//! keys, the sandbox and the documentation.
//!
//! Agents are in [`acting::preset`](super::acting::preset), because their rows are longer. The
//! tables contain no code: anything else can be configured with the same fields.

use super::acting::preset;
use crate::config::settings::ModelKind;

/// A service with an API.
#[derive(Debug, PartialEq, Eq)]
pub struct Provider {
    /// In the configuration.
    pub name: &'static str,
    pub title: &'static str,
    /// Can contain its key. The usual one is first.
    pub keys: &'static [&'static str],
    pub kind: ModelKind,
    pub base_url: &'static str,
    /// Variable that replaces `base_url`. Only the providers that defined a protocol have one.
    pub base_variable: Option<&'static str>,
    /// The one that `setup` offers.
    pub model: &'static str,
    /// Beginnings of the ids of its models, if they are unlikely elsewhere.
    pub families: &'static [&'static str],
}

pub const ANTHROPIC: Provider = Provider {
    name: "anthropic",
    title: "Anthropic",
    keys: &["ANTHROPIC_API_KEY"],
    kind: ModelKind::Anthropic,
    base_url: "https://api.anthropic.com/v1",
    base_variable: Some("ANTHROPIC_BASE_URL"),
    model: "claude-sonnet-5",
    families: &["claude-"],
};

pub const OPENAI: Provider = Provider {
    name: "openai",
    title: "OpenAI",
    keys: &["OPENAI_API_KEY"],
    kind: ModelKind::Openai,
    base_url: "https://api.openai.com/v1",
    base_variable: Some("OPENAI_BASE_URL"),
    model: "gpt-5.6-terra",
    families: &["gpt-", "chatgpt-", "o1", "o3", "o4"],
};

/// Defaults for services with OpenAI's protocol.
const COMPATIBLE: Provider = Provider {
    base_variable: None,
    families: &[],
    ..OPENAI
};

/// Most popular first.
pub const PROVIDERS: [Provider; 9] = [
    ANTHROPIC,
    OPENAI,
    Provider {
        name: "gemini",
        title: "Google Gemini",
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
        model: "gemini-flash-latest",
        families: &["gemini-"],
        ..COMPATIBLE
    },
    Provider {
        name: "openrouter",
        title: "OpenRouter",
        keys: &["OPENROUTER_API_KEY"],
        base_url: "https://openrouter.ai/api/v1",
        model: "openrouter/auto",
        ..COMPATIBLE
    },
    Provider {
        name: "mistral",
        title: "Mistral",
        keys: &["MISTRAL_API_KEY"],
        base_url: "https://api.mistral.ai/v1",
        model: "mistral-large-latest",
        families: &["mistral-", "codestral-", "devstral-"],
        ..COMPATIBLE
    },
    Provider {
        name: "deepseek",
        title: "DeepSeek",
        keys: &["DEEPSEEK_API_KEY"],
        base_url: "https://api.deepseek.com/v1",
        model: "deepseek-flash",
        families: &["deepseek-"],
        ..COMPATIBLE
    },
    Provider {
        name: "xai",
        title: "xAI",
        keys: &["XAI_API_KEY"],
        base_url: "https://api.x.ai/v1",
        model: "grok-4.5",
        families: &["grok-"],
        ..COMPATIBLE
    },
    Provider {
        name: "groq",
        title: "Groq",
        keys: &["GROQ_API_KEY"],
        base_url: "https://api.groq.com/openai/v1",
        model: "openai/gpt-oss-120b",
        ..COMPATIBLE
    },
    Provider {
        name: "together",
        title: "Together",
        keys: &["TOGETHER_API_KEY"],
        base_url: "https://api.together.xyz/v1",
        model: "openai/gpt-oss-120b",
        ..COMPATIBLE
    },
];

impl Provider {
    pub fn find(name: &str) -> Option<&'static Provider> {
        PROVIDERS.iter().find(|provider| provider.name == name)
    }
}

/// A model server on this machine.
pub struct LocalServer {
    /// In the configuration.
    pub name: &'static str,
    pub title: &'static str,
    pub port: u16,
    /// Variable with another address.
    pub variable: Option<&'static str>,
}

pub const SERVERS: [LocalServer; 4] = [
    LocalServer {
        name: "ollama",
        title: "Ollama",
        port: 11434,
        variable: Some("OLLAMA_HOST"),
    },
    LocalServer {
        name: "llamacpp",
        title: "llama.cpp",
        port: 8080,
        variable: None,
    },
    LocalServer {
        name: "lmstudio",
        title: "LM Studio",
        port: 1234,
        variable: None,
    },
    LocalServer {
        name: "vllm",
        title: "vLLM",
        port: 8000,
        variable: None,
    },
];

#[derive(Debug, PartialEq, Eq)]
pub struct KnownProgram {
    pub name: &'static str,
    /// Name of the product.
    pub title: &'static str,
    pub usage: ProgramUsage,
}

#[derive(Debug, PartialEq, Eq)]
pub enum ProgramUsage {
    /// It can be limited to reading a prompt and printing an answer.
    Answers {
        run: &'static [&'static str],
        summary: &'static str,
        /// Calls can cost money on top of a subscription.
        is_paid: bool,
        /// Variable with the key that it reads. A program gets no others.
        key: Option<&'static str>,
        /// Major version for which the command works as intended. `None` means any.
        only: Option<u32>,
    },
    /// It starts a server, which is discovered by its port.
    Serves {
        start: &'static str,
        /// Downloads a model.
        get: &'static str,
    },
    /// It can't be limited to answering.
    Agent {
        /// The reason and an alternative.
        why: &'static str,
    },
}

/// The commands turn off tools and questions, and settings from the repository that could turn them
/// on again.
pub const PROGRAMS: [KnownProgram; 11] = [
    KnownProgram {
        name: "claude",
        title: "Claude Code",
        usage: ProgramUsage::Answers {
            run: &[
                "claude",
                "-p",
                "--tools",
                "",
                // The rest turns off MCP servers and settings of the repository.
                "--strict-mcp-config",
                "--setting-sources",
                "user",
            ],
            summary: "your Claude subscription, answers only",
            is_paid: false,
            key: None,
            only: None,
        },
    },
    KnownProgram {
        name: "codex",
        title: "Codex",
        usage: ProgramUsage::Answers {
            run: &[
                "codex",
                "exec",
                "--sandbox",
                "read-only",
                // By default, Codex refuses to run outside of a repository.
                "--skip-git-repo-check",
                "-",
            ],
            summary: "your ChatGPT subscription, reads but cannot write",
            is_paid: false,
            key: None,
            only: None,
        },
    },
    KnownProgram {
        name: "opencode",
        title: "OpenCode",
        usage: ProgramUsage::Answers {
            run: &[
                "env",
                "OPENCODE_DISABLE_PROJECT_CONFIG=1",
                r#"OPENCODE_PERMISSION={"*":"deny"}"#,
                "opencode",
                "run",
            ],
            summary: "the provider set up in OpenCode, answers only",
            is_paid: true,
            key: None,
            only: Some(1),
        },
    },
    KnownProgram {
        name: "llm",
        title: "LLM",
        usage: ProgramUsage::Answers {
            run: &["llm", "prompt", "--no-log"],
            summary: "the default model of LLM",
            is_paid: true,
            key: Some("OPENAI_API_KEY"),
            only: None,
        },
    },
    KnownProgram {
        name: "gemini",
        title: "Gemini CLI",
        usage: ProgramUsage::Agent {
            why: "it edits files itself unless a policy forbids it; a GEMINI_API_KEY serves the same models",
        },
    },
    KnownProgram {
        name: "qwen",
        title: "Qwen Code",
        usage: ProgramUsage::Agent {
            why: "it edits files itself; the key that it uses serves the same models",
        },
    },
    KnownProgram {
        name: "vibe",
        title: "Mistral Vibe",
        usage: ProgramUsage::Agent {
            why: "it edits files itself; a MISTRAL_API_KEY serves the same models",
        },
    },
    KnownProgram {
        name: "kimi",
        title: "Kimi Code",
        usage: ProgramUsage::Agent {
            why: "it edits files itself; a key of Moonshot serves the same models",
        },
    },
    KnownProgram {
        name: "aider",
        title: "aider",
        usage: ProgramUsage::Agent {
            why: "it prints text of its own around an answer; the key that it uses serves the same models",
        },
    },
    KnownProgram {
        name: "ollama",
        title: "Ollama",
        usage: ProgramUsage::Serves {
            start: "ollama serve",
            get: "ollama pull <model>",
        },
    },
    KnownProgram {
        name: "lms",
        title: "LM Studio",
        usage: ProgramUsage::Serves {
            start: "lms server start",
            get: "lms get <model>",
        },
    },
];

impl KnownProgram {
    pub fn find(name: &str) -> Option<&'static KnownProgram> {
        PROGRAMS.iter().find(|program| program.name == name)
    }

    /// It can be used as a model.
    pub fn answers(&self) -> bool {
        matches!(self.usage, ProgramUsage::Answers { .. })
    }
}

pub const BRAVE_KEY: &str = "BRAVE_API_KEY";
pub const TAVILY_KEY: &str = "TAVILY_API_KEY";

pub fn provider_keys() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().flat_map(|provider| provider.keys).copied()
}

/// Of providers, agents and search engines.
pub fn usual_keys() -> impl Iterator<Item = String> {
    let agents = preset::all().flat_map(|agent| agent.keys).copied();
    let all = provider_keys().chain(agents).chain([BRAVE_KEY, TAVILY_KEY]);
    all.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::model::acting::preset::AgentPreset;

    /// Expects the line in `docs/models.md`, which is generated from the tables.
    fn check(line: &str) {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/models.md");
        let page = std::fs::read_to_string(page).unwrap();
        let is_there = page.lines().any(|other| other == line);
        assert!(is_there, "docs/models.md needs the line\n{line}");
    }

    fn quoted(names: &[&str], separator: &str) -> String {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(separator)
    }

    #[test]
    fn the_page_about_models_lists_what_setup_finds() {
        let keys = PROVIDERS.map(|provider| quoted(provider.keys, " or "));
        check(&format!(
            "| keys | {} | the service's API; `name:id` selects another of its models: `--model groq:openai/gpt-oss-20b` |",
            keys.join(", ")
        ));

        let programs = PROGRAMS.iter().filter(|program| program.answers());
        let programs: Vec<&str> = programs.map(|program| program.name).collect();
        check(&format!(
            "| programs | {} in the absolute directories of `PATH`, never in the repository | a command that only answers, without editing files |",
            quoted(&programs, ", ")
        ));

        let servers = SERVERS.map(|server| match server.variable {
            Some(variable) => format!("{} ({}, or `{variable}`)", server.title, server.port),
            None => format!("{} ({})", server.title, server.port),
        });
        check(&format!(
            "| servers | {} on this machine; `--server URL` adds one, `TEDDY_SERVERS` replaces the list | each of its models |",
            servers.join(", ")
        ));
    }

    #[test]
    fn the_page_about_models_lists_the_agents() {
        let install = |agent: &AgentPreset| match agent.install.strip_prefix("npm install -g ") {
            Some(package) => ("npm install -g ", package),
            None => ("", agent.install),
        };
        let row = |program: &KnownProgram| {
            let acp = preset::find_by_name(&preset::ACP, program.name);
            let command = preset::find_by_name(&preset::COMMANDS, program.name);
            let mut commands: Vec<_> = acp.into_iter().chain(command).map(install).collect();
            commands.dedup();
            let (start, first) = *commands.first()?;
            let others: String = commands[1..]
                .iter()
                .map(|(_, package)| format!(", `{package}`"))
                .collect();
            let id = |kind: &str, preset: Option<&AgentPreset>| {
                preset.map_or(String::new(), |preset| format!("`{kind}:{}` ", preset.name))
            };
            let (acp, command) = (id("acp", acp), id("agent", command));
            let title = program.title;
            Some((
                title,
                format!("| {title} | {acp}| {command}| `{start}{first}`{others} |"),
            ))
        };
        let rows: Vec<_> = PROGRAMS.iter().filter_map(row).collect();
        rows.iter().for_each(|(_, row)| check(row));

        let titles: Vec<&str> = rows.iter().map(|(title, _)| *title).collect();
        check(&format!(
            "| {} | `PATH` | as agents: they edit files in a copy, and you review ([agents](agents.md)) |",
            titles.join(", ")
        ));
        // Every agent has a row.
        assert!(preset::all().all(|agent| KnownProgram::find(agent.name).is_some()));
    }

    #[test]
    fn every_address_has_tls() {
        for provider in &PROVIDERS {
            assert!(
                provider.base_url.starts_with("https://"),
                "{}",
                provider.name
            );
        }
    }
}
