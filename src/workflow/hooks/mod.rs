//! Hooks: an agent that a user drives by hand tells when it gets a prompt and when it is done, and
//! each prompt becomes a turn.
//!
//! What the agent waits for is only that the event is written down. Everything else is done by a
//! process of its own, one event after another, so that nothing here slows an agent, stops it or
//! changes what it does.

pub mod entry;
pub mod event;
pub mod place;
pub mod queue;
mod state;
pub mod take;
pub mod trouble;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// An agent that knows hooks.
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
    /// All of them.
    pub const ALL: [HookedAgent; 3] =
        [HookedAgent::Claude, HookedAgent::Codex, HookedAgent::Gemini];

    /// Returns how it is called on the command line, and in the names of sessions.
    pub fn name(self) -> &'static str {
        match self {
            HookedAgent::Claude => "claude",
            HookedAgent::Codex => "codex",
            HookedAgent::Gemini => "gemini",
        }
    }

    /// Returns the agent of a name.
    pub fn named(name: &str) -> Option<HookedAgent> {
        HookedAgent::ALL
            .into_iter()
            .find(|agent| agent.name() == name)
    }

    /// Returns the folder of its settings and transcripts, below the home folder or a project.
    pub fn folder(self) -> &'static str {
        match self {
            HookedAgent::Claude => ".claude",
            HookedAgent::Codex => ".codex",
            HookedAgent::Gemini => ".gemini",
        }
    }

    /// Returns the variable that names another folder than that below the home folder.
    pub fn folder_variable(self) -> Option<&'static str> {
        match self {
            HookedAgent::Claude => Some("CLAUDE_CONFIG_DIR"),
            HookedAgent::Codex => Some("CODEX_HOME"),
            HookedAgent::Gemini => None,
        }
    }

    /// Returns the name of its file of settings.
    pub fn file(self) -> &'static str {
        match self {
            HookedAgent::Codex => "config.toml",
            HookedAgent::Claude | HookedAgent::Gemini => "settings.json",
        }
    }
}

/// Returns where a repository keeps what hooks tell, in the folder of ours below `.git`.
pub fn folder(teddy_dir: &Path) -> PathBuf {
    teddy_dir.join("hooks")
}
