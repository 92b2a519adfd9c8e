//! The agents that everybody knows: how each is started, where it keeps its state, how one
//! installs it and logs in.
//!
//! A table and no code: whoever has another agent says the same in the configuration.

use crate::text::near::nearest;

/// A known agent over one of the two ways.
#[derive(Debug, PartialEq, Eq)]
pub struct AgentPreset {
    /// Its name behind the colon.
    pub name: &'static str,
    /// The program and its arguments.
    pub run: &'static [&'static str],
    /// The same, to go on with a conversation.
    pub go_on: &'static [&'static str],
    /// The mode in which it asks nothing and has no sandbox of its own, as versions call it: the
    /// first one that it has is set where ours confines it.
    pub modes: &'static [&'static str],
    /// The mode where nothing confines it; none leaves its own.
    pub careful: &'static str,
    /// What it writes besides its folder.
    pub state: &'static [&'static str],
    /// The variables with keys that it knows.
    pub keys: &'static [&'static str],
    /// Variables that it gets where it is confined.
    pub variables: &'static [(&'static str, &'static str)],
    /// How the names of its own notes at the top of its folder begin.
    pub leaves: &'static [&'static str],
    /// What to find in its lines.
    pub facts: &'static [(&'static str, &'static str)],
    /// Whether it has no mode in which it does not ask.
    pub always_asks: bool,
    /// Whether a conversation survives to be resumed.
    pub resumes: bool,
    /// Whether the tokens that it tells are those of its last step only.
    pub tells_last_step: bool,
    /// Whether the tokens that it tells are those of the whole conversation.
    pub tells_conversation: bool,
    /// How to install it.
    pub install: &'static str,
    /// How to log in.
    pub login: &'static str,
}

/// What each field is where a row does not say.
const PLAIN: AgentPreset = AgentPreset {
    name: "",
    run: &[],
    go_on: &[],
    modes: &[],
    careful: "",
    state: &[],
    keys: &[],
    variables: &[],
    leaves: &[],
    facts: &[],
    always_asks: false,
    resumes: true,
    tells_last_step: false,
    tells_conversation: false,
    install: "",
    login: "",
};

/// Where Claude Code keeps its state.
const CLAUDE_STATE: &[&str] = &["~/.claude", "~/.claude.json", "~/.cache/claude-cli-nodejs"];
/// The keys that Claude Code knows.
const CLAUDE_KEYS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
];
/// Claude Code runs as root without questions only where it is told of a sandbox.
const CLAUDE_VARIABLES: &[(&str, &str)] = &[("IS_SANDBOX", "1")];
/// How one logs in to Claude Code.
const CLAUDE_LOGIN: &str = "run `claude` once and log in there, or set ANTHROPIC_API_KEY";
/// The keys that Codex knows.
const CODEX_KEYS: &[&str] = &["OPENAI_API_KEY", "CODEX_API_KEY"];
/// How one logs in to Codex.
const CODEX_LOGIN: &str = "run `codex login`, or set OPENAI_API_KEY";
/// The keys that Gemini CLI knows.
const GEMINI_KEYS: &[&str] = &["GEMINI_API_KEY", "GOOGLE_API_KEY"];
/// How one logs in to Gemini CLI.
const GEMINI_LOGIN: &str = "run `gemini` once and sign in there, or set GEMINI_API_KEY";
/// Where OpenCode keeps its state.
const OPENCODE_STATE: &[&str] = &[
    "~/.local/share/opencode",
    "~/.local/state/opencode",
    "~/.config/opencode",
    "~/.cache/opencode",
];
/// The keys of the providers that OpenCode and aider ask.
const PROVIDER_KEYS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "OPENROUTER_API_KEY",
];
/// How one logs in to OpenCode.
const OPENCODE_LOGIN: &str = "run `opencode auth login`";

/// The agents that speak the Agent Client Protocol, behind `acp:`.
pub const ACP: [AgentPreset; 5] = [
    AgentPreset {
        name: "claude",
        run: &["claude-agent-acp"],
        modes: &["bypassPermissions"],
        careful: "default",
        state: CLAUDE_STATE,
        keys: CLAUDE_KEYS,
        variables: CLAUDE_VARIABLES,
        install: "npm install -g @agentclientprotocol/claude-agent-acp",
        login: CLAUDE_LOGIN,
        ..PLAIN
    },
    AgentPreset {
        name: "codex",
        run: &["codex-acp"],
        modes: &["agent-full-access", "full-access"],
        careful: "agent",
        state: &["~/.codex"],
        keys: CODEX_KEYS,
        install: "npm install -g @agentclientprotocol/codex-acp",
        login: CODEX_LOGIN,
        ..PLAIN
    },
    AgentPreset {
        name: "gemini",
        run: &["gemini", "--acp"],
        // It has no other mode in a folder that it was not told to trust.
        always_asks: true,
        state: &["~/.gemini"],
        keys: GEMINI_KEYS,
        // Its `session/load` erases what it loads.
        resumes: false,
        install: "npm install -g @google/gemini-cli",
        login: GEMINI_LOGIN,
        ..PLAIN
    },
    AgentPreset {
        name: "opencode",
        run: &["opencode", "acp"],
        state: OPENCODE_STATE,
        keys: PROVIDER_KEYS,
        tells_last_step: true,
        install: "npm install -g opencode-ai",
        login: OPENCODE_LOGIN,
        ..PLAIN
    },
    AgentPreset {
        name: "qwen",
        run: &["qwen", "--acp"],
        modes: &["yolo"],
        careful: "default",
        state: &["~/.qwen"],
        keys: &["DASHSCOPE_API_KEY", "OPENAI_API_KEY"],
        install: "npm install -g @qwen-code/qwen-code",
        login: "run `qwen` once and sign in there",
        ..PLAIN
    },
];

/// The agents that are commands, behind `agent:`.
pub const COMMANDS: [AgentPreset; 5] = [
    AgentPreset {
        name: "claude",
        run: &[
            "claude",
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-mode",
            "{mode}",
        ],
        go_on: &[
            "claude",
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-mode",
            "{mode}",
            "--resume",
            "{conversation}",
        ],
        modes: &["bypassPermissions"],
        careful: "acceptEdits",
        state: CLAUDE_STATE,
        keys: CLAUDE_KEYS,
        variables: CLAUDE_VARIABLES,
        facts: &[
            ("conversation", "session_id"),
            ("message", "type=result result"),
            ("cost", "type=result total_cost_usd"),
            (
                "tokens_in",
                "type=result usage.input_tokens usage.cache_read_input_tokens usage.cache_creation_input_tokens",
            ),
            ("tokens_out", "type=result usage.output_tokens"),
            ("cached", "type=result usage.cache_read_input_tokens"),
            ("version", "claude_code_version"),
        ],
        install: "npm install -g @anthropic-ai/claude-code",
        login: CLAUDE_LOGIN,
        ..PLAIN
    },
    AgentPreset {
        name: "codex",
        run: &[
            "codex",
            "exec",
            "--json",
            "--skip-git-repo-check",
            "-s",
            "{mode}",
            "-",
        ],
        go_on: &[
            "codex",
            "exec",
            "--skip-git-repo-check",
            "-s",
            "{mode}",
            "resume",
            "--json",
            "{conversation}",
            "-",
        ],
        modes: &["danger-full-access"],
        careful: "workspace-write",
        state: &["~/.codex"],
        keys: CODEX_KEYS,
        facts: &[
            ("conversation", "type=thread.started thread_id"),
            ("message", "item.type=agent_message item.text"),
            ("tokens_in", "type=turn.completed usage.input_tokens"),
            ("tokens_out", "type=turn.completed usage.output_tokens"),
            ("cached", "type=turn.completed usage.cached_input_tokens"),
        ],
        tells_conversation: true,
        install: "npm install -g @openai/codex",
        login: CODEX_LOGIN,
        ..PLAIN
    },
    AgentPreset {
        name: "gemini",
        run: &["gemini", "--approval-mode", "{mode}", "-o", "stream-json"],
        go_on: &[
            "gemini",
            "--approval-mode",
            "{mode}",
            "-o",
            "stream-json",
            "--resume",
            "{conversation}",
        ],
        modes: &["yolo"],
        careful: "auto_edit",
        state: &["~/.gemini"],
        keys: GEMINI_KEYS,
        // Without it nothing is edited, whatever the mode.
        variables: &[("GEMINI_CLI_TRUST_WORKSPACE", "true")],
        facts: &[
            ("conversation", "type=init session_id"),
            ("message", "join role=assistant content"),
            ("tokens_in", "type=result stats.input_tokens"),
            ("tokens_out", "type=result stats.output_tokens"),
            ("cached", "type=result stats.cached"),
        ],
        install: "npm install -g @google/gemini-cli",
        login: GEMINI_LOGIN,
        ..PLAIN
    },
    AgentPreset {
        name: "opencode",
        run: &["opencode", "run", "--auto", "--format", "json"],
        go_on: &[
            "opencode",
            "run",
            "--auto",
            "--format",
            "json",
            "-s",
            "{conversation}",
        ],
        state: OPENCODE_STATE,
        keys: PROVIDER_KEYS,
        facts: &[
            ("conversation", "sessionID"),
            ("message", "type=text part.text"),
            ("cost", "sum type=step_finish part.cost"),
            (
                "tokens_in",
                "sum type=step_finish part.tokens.input part.tokens.cache.read part.tokens.cache.write",
            ),
            ("tokens_out", "sum type=step_finish part.tokens.output"),
            ("cached", "sum type=step_finish part.tokens.cache.read"),
        ],
        install: "npm install -g opencode-ai",
        login: OPENCODE_LOGIN,
        ..PLAIN
    },
    AgentPreset {
        name: "aider",
        run: &[
            "aider",
            "--message-file",
            "{input}",
            "--yes-always",
            "--no-auto-commits",
            "--no-dirty-commits",
            "--no-gitignore",
            "--no-pretty",
            "--no-stream",
            "--no-check-update",
            "--no-analytics",
            "--input-history-file",
            "{tmp}/aider.input",
            "--chat-history-file",
            "{tmp}/aider.chat",
        ],
        state: &["~/.aider"],
        keys: PROVIDER_KEYS,
        leaves: &[".aider."],
        resumes: false,
        install: "python -m pip install aider-install && aider-install",
        login: "set the key of your provider, such as ANTHROPIC_API_KEY",
        ..PLAIN
    },
];

/// Returns the agent of this name.
pub fn named(presets: &'static [AgentPreset], name: &str) -> Option<&'static AgentPreset> {
    presets.iter().find(|preset| preset.name == name)
}

/// Returns the agent whose program this is, by the last part of its path.
pub fn of_program(presets: &'static [AgentPreset], program: &str) -> Option<&'static AgentPreset> {
    let name = program.rsplit('/').next()?;
    presets
        .iter()
        .find(|preset| preset.run.first() == Some(&name))
}

/// Says that there is no agent of this name, and which one may be meant.
pub fn unknown(presets: &'static [AgentPreset], kind: &str, name: &str) -> String {
    let names = presets.iter().map(|preset| preset.name);
    if let Some(meant) = nearest(name, names.clone()) {
        return format!("`{kind}:{name}` is not a known agent; did you mean `{kind}:{meant}`?");
    }

    let known: Vec<String> = names.map(|name| format!("`{kind}:{name}`")).collect();
    format!(
        "`{kind}:{name}` is not a known agent; known are {}",
        known.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_found_by_name_and_by_program() {
        assert_eq!(
            named(&ACP, "gemini").map(|preset| preset.resumes),
            Some(false)
        );
        let found = of_program(&ACP, "/opt/bin/claude-agent-acp");
        assert_eq!(found.map(|preset| preset.name), Some("claude"));
        assert_eq!(of_program(&COMMANDS, "my-agent"), None);
    }

    #[test]
    fn a_slip_of_the_keys_is_forgiven() {
        assert_eq!(
            unknown(&ACP, "acp", "cluade"),
            "`acp:cluade` is not a known agent; did you mean `acp:claude`?"
        );
        assert!(unknown(&COMMANDS, "agent", "x").ends_with("`agent:opencode`, `agent:aider`"));
    }

    #[test]
    fn every_row_is_whole() {
        for preset in ACP.iter().chain(&COMMANDS) {
            let is_whole = !preset.run.is_empty()
                && !preset.state.is_empty()
                && preset.install.contains("install")
                && !preset.login.is_empty();
            assert!(is_whole, "{}", preset.name);
        }
    }
}
