//! Table of known agents: how to start, confine, install and log in to each.
//!
//! It contains no code: any other agent can be configured with the same fields.

use super::UsageScope;
use crate::config::settings::ModelKind;
use crate::text::near::nearest;

#[derive(Debug, PartialEq, Eq)]
pub struct AgentPreset {
    /// Without the kind.
    pub name: &'static str,
    /// Command line. A space separates arguments; none contains one.
    pub run: &'static str,
    pub resume: &'static str,
    /// Without questions and without the agent's own sandbox, for use in ours. Names differ between
    /// versions; the first one that exists is set.
    pub modes: &'static [&'static str],
    /// Empty keeps the agent's default.
    pub unconfined_mode: &'static str,
    /// Paths that it writes besides its worktree.
    pub state: &'static [&'static str],
    pub keys: &'static [&'static str],
    /// To set in a sandbox.
    pub variables: &'static [(&'static str, &'static str)],
    /// Prefixes of its own notes at the top of the worktree.
    pub leaves: &'static [&'static str],
    /// Name of its chat history in the temporary directory. The last answer in it is the message,
    /// because the output has other lines, too. If empty, the output is the message.
    pub history: &'static str,
    /// Names and rules.
    pub facts: &'static [(&'static str, &'static str)],
    /// Every one of its modes asks questions.
    pub always_asks: bool,
    /// It might need Python.
    pub is_python: bool,
    pub resumes: bool,
    /// What the tokens that it reports cover.
    pub tokens: UsageScope,
    /// What the cost that it reports covers.
    pub cost: UsageScope,
    /// File in its directory that can have the cost of the last conversation. If not, a resumed one
    /// counts from zero. Empty if the agent has no such file.
    pub cost_file: &'static str,
    /// Variable with that directory. The default is the home directory.
    pub dir_variable: &'static str,
    /// Both are for error messages, and empty for other programs.
    pub install: &'static str,
    pub login: &'static str,
}

const PLAIN: AgentPreset = AgentPreset {
    name: "",
    run: "",
    resume: "",
    modes: &[],
    unconfined_mode: "",
    state: &[],
    keys: &[],
    variables: &[],
    leaves: &[],
    history: "",
    facts: &[],
    always_asks: false,
    is_python: false,
    resumes: true,
    tokens: UsageScope::Call,
    cost: UsageScope::Call,
    cost_file: "",
    dir_variable: "",
    install: "",
    login: "",
};

const CLAUDE: AgentPreset = AgentPreset {
    name: "claude",
    state: &["~/.claude", "~/.claude.json", "~/.cache/claude-cli-nodejs"],
    keys: &[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
    ],
    // Claude Code refuses to skip permissions as root unless `IS_SANDBOX` is set.
    variables: &[("IS_SANDBOX", "1")],
    cost: UsageScope::Conversation,
    cost_file: ".claude.json",
    dir_variable: "CLAUDE_CONFIG_DIR",
    login: "run `claude` once and log in there, or set ANTHROPIC_API_KEY",
    ..PLAIN
};

const CODEX: AgentPreset = AgentPreset {
    name: "codex",
    state: &["~/.codex"],
    keys: &["OPENAI_API_KEY", "CODEX_API_KEY"],
    login: "run `codex login`, or set OPENAI_API_KEY",
    ..PLAIN
};

const GEMINI: AgentPreset = AgentPreset {
    name: "gemini",
    state: &["~/.gemini"],
    keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    install: "npm install -g @google/gemini-cli",
    login: "run `gemini` once and sign in there, or set GEMINI_API_KEY",
    ..PLAIN
};

const OPENCODE: AgentPreset = AgentPreset {
    name: "opencode",
    state: &[
        "~/.local/share/opencode",
        "~/.local/state/opencode",
        "~/.config/opencode",
        "~/.cache/opencode",
    ],
    keys: PROVIDER_KEYS,
    install: "npm install -g opencode-ai",
    login: "run `opencode auth login`",
    ..PLAIN
};

/// Of OpenCode and aider.
const PROVIDER_KEYS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "OPENROUTER_API_KEY",
];

/// What the cost of an agent covers that speaks the Agent Client Protocol.
const ACP_COST: UsageScope = UsageScope::Conversation;

/// Defaults for agents that speak the Agent Client Protocol.
const OVER_ACP: AgentPreset = AgentPreset {
    cost: ACP_COST,
    ..PLAIN
};

impl AgentPreset {
    pub fn program(&self) -> &'static str {
        self.run.split(' ').next().unwrap_or_default()
    }
}

/// Any other program.
pub const OTHER_COMMAND: AgentPreset = AgentPreset {
    is_python: true,
    ..PLAIN
};
pub const OTHER_ACP: AgentPreset = AgentPreset {
    is_python: true,
    ..OVER_ACP
};

/// Known agents that speak the Agent Client Protocol, as in `acp:claude`.
pub const ACP: [AgentPreset; 7] = [
    AgentPreset {
        run: "claude-agent-acp",
        modes: &["bypassPermissions"],
        unconfined_mode: "default",
        install: "npm install -g @agentclientprotocol/claude-agent-acp",
        ..CLAUDE
    },
    AgentPreset {
        run: "codex-acp",
        modes: &["agent-full-access", "full-access"],
        unconfined_mode: "agent",
        install: "npm install -g @agentclientprotocol/codex-acp",
        cost: ACP_COST,
        ..CODEX
    },
    AgentPreset {
        run: "gemini --acp",
        // In a directory that isn't trusted, it has no mode without questions.
        always_asks: true,
        // Its `session/load` erases the conversation that it loads.
        resumes: false,
        cost: ACP_COST,
        ..GEMINI
    },
    AgentPreset {
        run: "opencode acp",
        tokens: UsageScope::LastStep,
        cost: ACP_COST,
        ..OPENCODE
    },
    AgentPreset {
        name: "qwen",
        run: "qwen --acp",
        modes: &["yolo"],
        unconfined_mode: "default",
        state: &["~/.qwen"],
        keys: &["DASHSCOPE_API_KEY", "OPENAI_API_KEY"],
        install: "npm install -g @qwen-code/qwen-code",
        login: "run `qwen` once and sign in there",
        ..OVER_ACP
    },
    AgentPreset {
        name: "vibe",
        run: "vibe-acp",
        modes: &["auto-approve"],
        unconfined_mode: "ask",
        state: &["~/.vibe"],
        keys: &["MISTRAL_API_KEY"],
        is_python: true,
        tokens: UsageScope::Conversation,
        install: "python -m pip install mistral-vibe",
        login: "run `vibe --setup`, or set MISTRAL_API_KEY",
        ..OVER_ACP
    },
    AgentPreset {
        name: "kimi",
        run: "kimi acp",
        modes: &["yolo"],
        unconfined_mode: "default",
        state: &["~/.kimi-code"],
        // Used with `KIMI_MODEL_NAME`.
        keys: &["KIMI_MODEL_API_KEY"],
        install: "npm install -g @moonshot-ai/kimi-code",
        login: "run `kimi login`, or set KIMI_MODEL_NAME and KIMI_MODEL_API_KEY",
        ..OVER_ACP
    },
];

/// As in `agent:claude`.
pub const COMMANDS: [AgentPreset; 5] = [
    AgentPreset {
        run: "claude -p --output-format stream-json --verbose --permission-mode {mode}",
        resume: "claude -p --output-format stream-json --verbose --permission-mode {mode} \
                 --resume {conversation}",
        modes: &["bypassPermissions"],
        unconfined_mode: "acceptEdits",
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
        ..CLAUDE
    },
    AgentPreset {
        // By default, Codex refuses to run outside of a repository.
        run: "codex exec --json --skip-git-repo-check -s {mode} -",
        resume: "codex exec --skip-git-repo-check -s {mode} resume --json {conversation} -",
        modes: &["danger-full-access"],
        unconfined_mode: "workspace-write",
        facts: &[
            ("conversation", "type=thread.started thread_id"),
            ("message", "item.type=agent_message item.text"),
            ("tokens_in", "type=turn.completed usage.input_tokens"),
            ("tokens_out", "type=turn.completed usage.output_tokens"),
            ("cached", "type=turn.completed usage.cached_input_tokens"),
        ],
        tokens: UsageScope::Conversation,
        install: "npm install -g @openai/codex",
        ..CODEX
    },
    AgentPreset {
        run: "gemini --approval-mode {mode} -o stream-json",
        resume: "gemini --approval-mode {mode} -o stream-json --resume {conversation}",
        modes: &["yolo"],
        unconfined_mode: "auto_edit",
        // Without this variable it refuses to edit anything, in every mode.
        variables: &[("GEMINI_CLI_TRUST_WORKSPACE", "true")],
        facts: &[
            ("conversation", "type=init session_id"),
            ("message", "join role=assistant content"),
            ("tokens_in", "type=result stats.input_tokens"),
            ("tokens_out", "type=result stats.output_tokens"),
            ("cached", "type=result stats.cached"),
        ],
        ..GEMINI
    },
    AgentPreset {
        run: "opencode run --auto --format json",
        resume: "opencode run --auto --format json -s {conversation}",
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
        ..OPENCODE
    },
    AgentPreset {
        name: "aider",
        run: "aider --message-file {input} --yes-always --no-auto-commits --no-dirty-commits \
              --no-gitignore --no-pretty --no-stream --no-check-update --no-analytics \
              --no-show-model-warnings --no-show-release-notes \
              --input-history-file {tmp}/aider.input --chat-history-file {tmp}/aider.chat",
        state: &[
            "~/.aider",
            "~/.aider.conf.yml",
            "~/.aider.model.settings.yml",
            "~/.aider.model.metadata.json",
        ],
        keys: PROVIDER_KEYS,
        leaves: &[".aider."],
        history: "aider.chat",
        is_python: true,
        resumes: false,
        install: "python -m pip install aider-install && aider-install",
        login: "set the key of your provider, such as ANTHROPIC_API_KEY",
        ..PLAIN
    },
];

/// Empty for models that aren't agents.
pub fn of_kind(kind: ModelKind) -> &'static [AgentPreset] {
    match kind {
        ModelKind::Acp => &ACP,
        ModelKind::Agent => &COMMANDS,
        _ => &[],
    }
}

pub fn all() -> impl Iterator<Item = &'static AgentPreset> {
    ACP.iter().chain(&COMMANDS)
}

pub fn find_by_name(presets: &'static [AgentPreset], name: &str) -> Option<&'static AgentPreset> {
    presets.iter().find(|preset| preset.name == name)
}

/// Ignores the directory of the program.
pub fn of_program(presets: &'static [AgentPreset], program: &str) -> Option<&'static AgentPreset> {
    let name = program.rsplit('/').next()?;
    presets.iter().find(|preset| preset.program() == name)
}

/// With a suggestion, or with the configuration that makes it an agent.
pub fn unknown(kind: ModelKind, name: &str) -> String {
    let names = of_kind(kind).iter().map(|preset| preset.name);
    let kind = kind.name();
    if let Some(suggestion) = nearest(name, names.clone()) {
        return format!(
            "`{kind}:{name}` is not a known agent; did you mean `{kind}:{suggestion}`?"
        );
    }

    let options: Vec<String> = names.map(|name| format!("`{kind}:{name}`")).collect();
    format!(
        "`{kind}:{name}` is not a known agent; known are {}; any other program is one with \
         `kind: {kind}` and `run: [PROGRAM, ARGUMENT]` in an entry of `models`",
        options.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_found_by_name_and_by_program() {
        assert_eq!(
            find_by_name(&ACP, "gemini").map(|preset| preset.resumes),
            Some(false)
        );
        let matched = of_program(&ACP, "/opt/bin/claude-agent-acp");
        assert_eq!(matched.map(|preset| preset.name), Some("claude"));
        assert_eq!(of_program(&COMMANDS, "my-agent"), None);
    }

    #[test]
    fn a_slip_of_the_keys_is_forgiven() {
        assert_eq!(
            unknown(ModelKind::Acp, "cluade"),
            "`acp:cluade` is not a known agent; did you mean `acp:claude`?"
        );
        assert_eq!(
            unknown(ModelKind::Agent, "x-y-z"),
            "`agent:x-y-z` is not a known agent; known are `agent:claude`, `agent:codex`, \
             `agent:gemini`, `agent:opencode`, `agent:aider`; any other program is one with \
             `kind: agent` and `run: [PROGRAM, ARGUMENT]` in an entry of `models`"
        );
    }

    #[test]
    fn every_row_is_whole() {
        for preset in all() {
            let is_whole = !preset.run.is_empty()
                && !preset.state.is_empty()
                && preset.install.contains("install")
                && !preset.login.is_empty();
            assert!(is_whole, "{}", preset.name);
        }
    }
}
