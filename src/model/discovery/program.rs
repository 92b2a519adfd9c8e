//! Known programs: how to run each without tools, and which are installed.
//!
//! Only a program that can be limited to answering is offered as a model: a model must not act on its
//! own. Agents are offered as what they are.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{FoundAgent, service};
use crate::host::{helper, process};
use crate::model::acting::preset;

/// For `--version`.
pub const LIMIT: Duration = Duration::from_secs(2);
const MAX_VERSION: usize = 32;

#[derive(Debug, PartialEq, Eq)]
pub struct KnownProgram {
    /// Name of the executable.
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
pub const PROGRAMS: [KnownProgram; 8] = [
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
        name: "aider",
        title: "aider",
        usage: ProgramUsage::Agent {
            why: "it prints its own words around an answer; the key that it uses serves the same models",
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
    pub fn getting(&self) -> Option<&'static str> {
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
pub(super) fn on_path(repository: Option<&Path>) -> Vec<(&'static KnownProgram, PathBuf)> {
    let excluded: Vec<&Path> = repository.into_iter().collect();
    PROGRAMS
        .iter()
        .filter_map(|entry| Some((entry, find_program(entry.name, &excluded)?)))
        .collect()
}

/// Known agents with their program. The Agent Client Protocol is preferred.
pub(super) fn agents_on_path(repository: Option<&Path>) -> Vec<FoundAgent> {
    let excluded: Vec<&Path> = repository.into_iter().collect();
    let mut agents: Vec<FoundAgent> = Vec::new();
    let protocols = [("acp", &preset::ACP[..]), ("agent", &preset::COMMANDS[..])];
    for (kind, presets) in protocols {
        for entry in presets {
            let Some(&program) = entry.run.first() else {
                continue;
            };
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

pub(super) fn ask(entry: &'static KnownProgram, path: &Path) -> FoundProgram {
    let mut command = process::command(path);
    command.arg("--version");
    // No program gets a key just to print its version.
    service::variables().for_each(|variable| {
        command.env_remove(variable);
    });

    let output = helper::probe(&mut command, LIMIT);
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
    use super::*;

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
        let entry = PROGRAMS.iter().find(|entry| entry.name == "opencode");
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
