//! Records prompts that a user gives to an agent outside TeDDy as turns, through the agent's hooks.
//!
//! The agent waits only until the event is written to a queue. Another process handles the queue in
//! order, so a hook cannot slow down or change what the agent does.

pub mod entry;
pub mod event;
pub mod hook_file;
pub mod queue;
mod state;
pub mod take;
pub mod trouble;

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// An agent with hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookedAgent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
}

impl HookedAgent {
    /// All agents.
    pub const ALL: [HookedAgent; 3] =
        [HookedAgent::Claude, HookedAgent::Codex, HookedAgent::Gemini];

    /// Name on the command line and in session names.
    pub fn name(self) -> &'static str {
        match self {
            HookedAgent::Claude => "claude",
            HookedAgent::Codex => "codex",
            HookedAgent::Gemini => "gemini",
        }
    }

    /// Looks up an agent by name.
    pub fn from_name(name: &str) -> Option<HookedAgent> {
        HookedAgent::ALL
            .into_iter()
            .find(|agent| agent.name() == name)
    }

    /// Directory of its settings, transcripts and login, relative to the home directory or a project.
    pub fn config_dir(self) -> &'static str {
        match self {
            HookedAgent::Claude => ".claude",
            HookedAgent::Codex => ".codex",
            HookedAgent::Gemini => ".gemini",
        }
    }

    /// Environment variable that overrides the directory in the home directory.
    pub fn dir_variable(self) -> Option<&'static str> {
        match self {
            HookedAgent::Claude => Some("CLAUDE_CONFIG_DIR"),
            HookedAgent::Codex => Some("CODEX_HOME"),
            HookedAgent::Gemini => None,
        }
    }

    /// Directory of its transcripts, relative to that of its settings.
    pub fn transcripts(self) -> &'static str {
        match self {
            HookedAgent::Claude => "projects",
            HookedAgent::Codex => "sessions",
            HookedAgent::Gemini => "tmp",
        }
    }

    /// Returns whether a path below [`HookedAgent::transcripts`] is a transcript, by its name.
    pub fn is_transcript(self, path: &Path) -> bool {
        let ends_in = |ending| path.extension().is_some_and(|found| found == ending);
        match self {
            HookedAgent::Claude | HookedAgent::Codex => ends_in("jsonl"),
            // The directory of a project has its shell history, too.
            HookedAgent::Gemini => {
                let dirs = path.parent().into_iter().flat_map(Path::components);
                let mut dirs = dirs.map(Component::as_os_str);
                dirs.any(|dir| dir == "chats") && (ends_in("json") || ends_in("jsonl"))
            }
        }
    }

    /// File name of its settings.
    pub fn file(self) -> &'static str {
        match self {
            HookedAgent::Codex => "config.toml",
            HookedAgent::Claude | HookedAgent::Gemini => "settings.json",
        }
    }
}

/// Directory for hook state, below our directory in `.git`.
pub fn hooks_dir(teddy_dir: &Path) -> PathBuf {
    teddy_dir.join("hooks")
}
