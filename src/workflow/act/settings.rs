//! Warns about agent settings in the repository: hooks, plugins and servers that take effect when
//! an agent works in it.
//!
//! Their author controls part of what the agent does, with its network access and login.

use super::WorktreeEnv;
use crate::workflow::notice::Notice;
use crate::workflow::user::Event;

/// Files that known agents read from a project and that can start programs.
const AGENT_SETTINGS: [&str; 12] = [
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

pub(super) fn report_agent_settings(env: &WorktreeEnv<'_, '_>) -> anyhow::Result<()> {
    let repository = &env.project.repository;
    let mut paths = Vec::new();
    for path in AGENT_SETTINGS {
        if repository
            .entry(env.recorded.tree, path.as_bytes())?
            .is_some()
        {
            paths.push(path.to_owned());
        }
    }

    if !paths.is_empty() {
        let notice = Notice::AgentSettings(paths);
        env.user.borrow_mut().report(Event::Notice(notice));
    }
    Ok(())
}
