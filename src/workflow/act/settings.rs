//! Warns about agent settings in the repository: hooks, plugins and servers that take effect when
//! an agent works in it.
//!
//! Their author controls part of what the agent does, with its network access and login.

use super::ActingRoom;
use crate::workflow::notice::Notice;
use crate::workflow::user::Event;

/// Files that known agents read from a project and that can start programs.
const SETTINGS: [&str; 12] = [
    ".aider.conf.yml",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".gemini/settings.json",
    ".mcp.json",
    ".opencode/plugin",
    ".opencode/plugins",
    ".qwen/settings.json",
    "opencode.json",
    "opencode.jsonc",
];

pub(super) fn tell(room: &ActingRoom<'_, '_>) -> anyhow::Result<()> {
    let repository = &room.project.repository;
    let mut found = Vec::new();
    for path in SETTINGS {
        if repository
            .entry(room.recorded.tree, path.as_bytes())?
            .is_some()
        {
            found.push(path.to_owned());
        }
    }

    if !found.is_empty() {
        let notice = Notice::AgentSettings(found);
        room.user.borrow_mut().tell(Event::Notice(notice));
    }
    Ok(())
}
