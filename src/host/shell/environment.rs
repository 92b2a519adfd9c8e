//! The environment of commands: the user's, without secrets and without variables that point git or
//! TeDDy at another repository.

use std::path::Path;
use std::process::Command;

use crate::host::{env, process};

// Substrings of names that suggest a secret.
const SECRET: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];
// Prefixes of git variables that describe the user, not a repository.
const GIT_USER: [&str; 6] = [
    "GIT_ATTR_NOSYSTEM",
    "GIT_AUTHOR_",
    "GIT_COMMITTER_",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
];
// A plan cannot set these, because they decide which code a command runs.
const RESERVED: [&str; 6] = ["PATH", "HOME", "BASH_ENV", "ENV", "IFS", "SHELLOPTS"];
// Prefixes of such names.
const RESERVED_START: [&str; 4] = ["GIT_", "LD_", "DYLD_", "TEDDY_"];

/// Returns whether a plan can set a variable.
pub fn may_set(name: &str) -> bool {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    plain
        && !RESERVED.contains(&name)
        && !RESERVED_START.iter().any(|start| name.starts_with(start))
        && !name.ends_with("_BASE_URL")
}

pub(in crate::host) struct CommandEnvironment<'a> {
    /// Variables to inherit although their names look like secrets or belong to git.
    pub(in crate::host) keep: &'a [String],
    /// Becomes `TMPDIR`.
    pub(in crate::host) temporary: &'a Path,
    pub(in crate::host) is_confined: bool,
}

impl CommandEnvironment<'_> {
    /// Sets up a command's environment. The caller adds the variables of the plan later.
    pub(in crate::host) fn give(&self, command: &mut Command) {
        for (name, _) in env::all() {
            let text = name.to_string_lossy();
            if !passes(&text) && !self.keeps(&text) {
                command.env_remove(&name);
            }
        }

        process::give_back(command, |name| self.keeps(name));
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

    fn keeps(&self, name: &str) -> bool {
        self.keep.iter().any(|kept| kept == name)
    }
}

fn passes(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let git = upper.starts_with("GIT_") && !GIT_USER.iter().any(|start| upper.starts_with(start));
    !git && !upper.starts_with("TEDDY_")
        && upper != "OLDPWD"
        && !SECRET.iter().any(|word| upper.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_repositories_do_not_pass() {
        for name in [
            "OPENAI_API_KEY",
            "npm_token",
            "AWS_SECRET_ACCESS_KEY",
            "PGPASSWORD",
            "GIT_DIR",
            "GIT_CONFIG_COUNT",
            "TEDDY_NOW",
        ] {
            assert!(!passes(name), "{name} passes");
        }
        for name in [
            "PATH",
            "HOME",
            "LANG",
            "CARGO_HOME",
            "GIT_AUTHOR_NAME",
            "GIT_CONFIG_GLOBAL",
        ] {
            assert!(passes(name), "{name} does not pass");
        }
    }

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
            assert!(!may_set(name), "{name} may be set");
        }
        assert!(may_set("RUST_LOG") && may_set("_X1"));
    }
}
