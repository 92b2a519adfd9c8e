//! Finds known programs and agents that are installed.
//!
//! Only a program that can be limited to answering is offered as a model: a model must not act on its
//! own. Agents are offered as what they are.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::FoundAgent;
use crate::config::settings::ModelKind;
use crate::host::{helper, process};
use crate::model::acting::preset;
use crate::model::known::{self, KnownProgram, PROGRAMS, ProgramUsage};

/// For `--version`.
pub const LIMIT: Duration = Duration::from_secs(2);
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

pub(super) fn ask(entry: &'static KnownProgram, path: &Path) -> FoundProgram {
    let mut command = process::command(path);
    command.arg("--version");
    // No program gets a key just to print its version.
    known::provider_keys().for_each(|variable| {
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
