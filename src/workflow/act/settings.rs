//! What a repository brings for agents: settings, hooks and servers that take effect when one works
//! in it. Whoever wrote them has a say in what the agent does, with its network and its login.

use super::ActingRoom;
use crate::workflow::notice::Notice;
use crate::workflow::user::Event;

/// The files that the known agents read in a project and that can make them run something.
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

/// Names the settings that a model which edits files will find in its copy of the project.
///
/// # Errors
/// The tree cannot be read.
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
