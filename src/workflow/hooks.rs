//! Records prompts that a user gives to an agent outside TeDDy as turns, through the agent's hooks.
//!
//! The agent waits only until the event is in a queue. Another process handles the queue in order,
//! so a hook cannot slow down or change what the agent does.

pub mod event;
pub mod hook_file;
pub mod take;

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::host::clock;
use crate::host::file::{append_regular, make_dirs, read_regular};
use crate::text::sanitize::sanitize_line;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookedAgent {
    Claude,
    Codex,
    Gemini,
}

impl HookedAgent {
    pub const ALL: [HookedAgent; 3] =
        [HookedAgent::Claude, HookedAgent::Codex, HookedAgent::Gemini];

    /// On the command line and in session names.
    pub fn name(self) -> &'static str {
        match self {
            HookedAgent::Claude => "claude",
            HookedAgent::Codex => "codex",
            HookedAgent::Gemini => "gemini",
        }
    }

    pub fn from_name(name: &str) -> Option<HookedAgent> {
        HookedAgent::ALL
            .into_iter()
            .find(|agent| agent.name() == name)
    }

    /// Relative to the home directory or a project.
    pub fn config_dir(self) -> &'static str {
        match self {
            HookedAgent::Claude => ".claude",
            HookedAgent::Codex => ".codex",
            HookedAgent::Gemini => ".gemini",
        }
    }

    /// Overrides the directory in the home directory.
    pub fn dir_variable(self) -> Option<&'static str> {
        match self {
            HookedAgent::Claude => Some("CLAUDE_CONFIG_DIR"),
            HookedAgent::Codex => Some("CODEX_HOME"),
            HookedAgent::Gemini => None,
        }
    }

    /// Relative to the directory of its settings.
    pub fn transcripts(self) -> &'static str {
        match self {
            HookedAgent::Claude => "projects",
            HookedAgent::Codex => "sessions",
            HookedAgent::Gemini => "tmp",
        }
    }

    /// `path` is below [`HookedAgent::transcripts`].
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

    /// Of its settings.
    pub fn file(self) -> &'static str {
        match self {
            HookedAgent::Codex => "hooks.json",
            HookedAgent::Claude | HookedAgent::Gemini => "settings.json",
        }
    }
}

/// Below our directory in `.git`.
pub fn hooks_dir(teddy_dir: &Path) -> PathBuf {
    teddy_dir.join("hooks")
}

/// In bytes. Further errors are dropped.
const MAX_ERROR_LOG: u64 = 32 << 10;

// In characters.
const MAX_ERROR_LINE: usize = 500;

/// Fails silently: a hook must not disturb the agent.
pub fn note_error(hooks: &Path, message: &str) {
    let file = error_log(hooks);
    let size = file.metadata().map_or(0, |metadata| metadata.len());
    if size > MAX_ERROR_LOG || make_dirs(hooks).is_err() {
        return;
    }

    let line: String = sanitize_line(message)
        .chars()
        .take(MAX_ERROR_LINE)
        .collect();
    let _ = append_regular(&file, format!("{} {line}\n", clock::stamp()).as_bytes());
}

/// Since a hook last recorded a turn, oldest first.
pub fn read_errors(hooks: &Path) -> Vec<String> {
    let bytes = read_regular(&error_log(hooks), 4 * MAX_ERROR_LOG).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.lines().map(str::to_owned).collect()
}

pub fn clear_errors(hooks: &Path) {
    // The file usually does not exist.
    let _ = std::fs::remove_file(error_log(hooks));
}

pub fn error_log(hooks: &Path) -> PathBuf {
    hooks.join("troubles.log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troubles_are_kept_in_order_bounded_and_visible() {
        let dir = tempfile::tempdir().unwrap();
        let hooks = dir.path().join("hooks");
        assert_eq!(read_errors(&hooks), Vec::<String>::new());
        note_error(&hooks, "one\n\u{1b}[2J");
        note_error(&hooks, &"x".repeat(10_000));
        let lines = read_errors(&hooks);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].ends_with("one\\u{a}\\u{1b}[2J"), "{lines:?}");
        for _ in 0..1000 {
            note_error(&hooks, &"y".repeat(400));
        }
        assert!(error_log(&hooks).metadata().unwrap().len() < MAX_ERROR_LOG + 1000);
        clear_errors(&hooks);
        assert_eq!(read_errors(&hooks), Vec::<String>::new());
    }
}
