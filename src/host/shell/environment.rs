//! The environment of commands and agents: the listed variables of the user's, and which of them a
//! plan can set.

use std::path::Path;
use std::process::Command;

use crate::host::inherited::{ChildKind, give_listed};

// A plan cannot set these, because they decide which code a command runs.
const RESERVED_VARIABLES: [&str; 6] = ["PATH", "HOME", "BASH_ENV", "ENV", "IFS", "SHELLOPTS"];
// Prefixes of such names.
const RESERVED_PREFIXES: [&str; 4] = ["GIT_", "LD_", "DYLD_", "TEDDY_"];

/// Returns whether a plan can set a variable.
pub fn may_set_variable(name: &str) -> bool {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    plain
        && !RESERVED_VARIABLES.contains(&name)
        && !RESERVED_PREFIXES
            .iter()
            .any(|start| name.starts_with(start))
        && !name.ends_with("_BASE_URL")
}

pub(in crate::host) struct CommandEnvironment<'a> {
    pub(in crate::host) kind: ChildKind,
    /// Variables to inherit although no list has them.
    pub(in crate::host) keep: &'a [String],
    /// Becomes `TMPDIR`.
    pub(in crate::host) temporary: &'a Path,
    pub(in crate::host) is_confined: bool,
}

impl CommandEnvironment<'_> {
    /// Sets up a command's environment. The caller adds the variables of the plan later.
    pub(in crate::host) fn give(&self, command: &mut Command) {
        give_listed(command, self.kind, self.keep);
        command.env("TMPDIR", self.temporary);

        // No user can answer a prompt or write a commit message.
        command
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_EDITOR", ":");
        if self.is_confined {
            // Automatic gc cannot access the user's repository from the sandbox.
            command.env("GIT_CONFIG_COUNT", "2");
            command
                .env("GIT_CONFIG_KEY_0", "gc.auto")
                .env("GIT_CONFIG_VALUE_0", "0");
            command
                .env("GIT_CONFIG_KEY_1", "maintenance.auto")
                .env("GIT_CONFIG_VALUE_1", "false");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_may_not_choose_what_commands_run() {
        for name in [
            "PATH",
            "LD_PRELOAD",
            "GIT_SSH_COMMAND",
            "BASH_ENV",
            "OPENAI_BASE_URL",
            "a-b",
            "",
            "1A",
            "BASH_FUNC_x%%",
        ] {
            assert!(!may_set_variable(name), "{name} may be set");
        }
        assert!(may_set_variable("RUST_LOG") && may_set_variable("_X1"));
    }
}
