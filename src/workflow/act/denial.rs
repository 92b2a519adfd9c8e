//! Names what an agent was denied, and the setting that grants it.
//!
//! The only evidence is what the agent and its tools print. A path counts if the sandbox does not let
//! the agent write it, and a variable if the user has it and the agent did not get it.

use std::collections::BTreeSet;
use std::path::Path;

use regex::Regex;

use crate::host::env;
use crate::host::inherited::is_secret_name;
use crate::host::sandbox::Policy;
use crate::model::ModelError;
use crate::model::acting::AgentNeeds;
use crate::text::sanitize::sanitize_line;
use crate::workflow::confine::FILE_ERRORS;

/// Paths, and variables, that are named at most.
const MAX_NAMED: usize = 3;

/// A quoted path, or one without spaces.
const PATH: &str = r#"["'`‘“](/[^"'`’”]+)|(?:^|[\s:=(])(/[^\s:'"`,)]+)"#;

/// Where nothing is a file of the user's.
const DEVICES: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Hint for what an agent or its tools printed. `None` if the sandbox denied nothing in it.
pub(super) fn explain_paths(policy: &Policy, printed: &str) -> Option<String> {
    let path = Regex::new(PATH).expect("the expression is valid");
    let is_granted = |path: &str| {
        let granted = policy.write.iter().map(|dir| dir.as_path());
        let mut granted = granted.chain(DEVICES.iter().map(Path::new));
        granted.any(|dir| Path::new(path).starts_with(dir))
    };
    let denied = printed.lines().filter_map(|line| denied_path(&path, line));
    let denied: BTreeSet<&str> = denied.filter(|path| !is_granted(path)).collect();
    let names = quoted(denied.iter().map(|path| with_tilde(path)))?;
    Some(format!(
        "the sandbox does not let the agent write {names}; `state` in the model's entry names what \
         it can write besides the worktree"
    ))
}

/// The first path behind the error of a line, else the last one before it.
fn denied_path<'l>(path: &Regex, line: &'l str) -> Option<&'l str> {
    let error = FILE_ERRORS.iter().find_map(|error| line.find(error))?;
    let (before, after) = line.split_at(error);
    let found = path
        .captures(after)
        .or_else(|| path.captures_iter(before).last())?;
    let name = found.get(1).or(found.get(2))?;
    Some(name.as_str())
}

/// Hint for what an agent printed that failed. `None` if it names no variable that it did not get.
fn explain_variables(needs: &AgentNeeds, printed: &str) -> Option<String> {
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let words = printed.split(|c| !is_name(c));
    let withheld = words.filter(|word| {
        word.contains('_')
            && is_secret_name(word)
            && !needs.keys.iter().any(|key| key == word)
            && env::is_set(word)
    });
    let withheld: BTreeSet<&str> = withheld.collect();
    let names = quoted(withheld.iter().map(|name| (*name).to_owned()))?;
    Some(format!(
        "the agent did not get {names}; `api_key_env` in the model's entry passes a variable on"
    ))
}

/// `None` without names.
fn quoted(names: impl Iterator<Item = String>) -> Option<String> {
    let names = names.take(MAX_NAMED);
    let names: Vec<String> = names
        .map(|name| format!("`{}`", sanitize_line(&name)))
        .collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn with_tilde(path: &str) -> String {
    let home = env::home().filter(|home| home.parent().is_some());
    let inside = home.and_then(|home| Path::new(path).strip_prefix(home).ok());
    match inside {
        Some(inside) => format!("~/{}", inside.display()),
        None => path.to_owned(),
    }
}

/// Adds what was denied to the remedy of a failed agent.
pub(super) fn explain_failure(
    error: ModelError,
    policy: Option<&Policy>,
    needs: &AgentNeeds,
    printed: &str,
) -> ModelError {
    let ModelError::Agent { detail, remedy } = error else {
        return error;
    };
    let paths = policy.and_then(|policy| explain_paths(policy, printed));
    let hints = [paths, explain_variables(needs, printed)];
    let hints = hints.into_iter().flatten().chain([remedy]);
    ModelError::Agent {
        detail,
        remedy: hints.collect::<Vec<_>>().join("; else "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(printed: &str, expected: Option<&str>) {
        let policy = Policy {
            write: vec!["/work/tree".into()],
            ..Policy::default()
        };
        let hint = explain_paths(&policy, printed);
        let named = hint.as_deref().map(|hint| {
            let (_, names) = hint.split_once("write ").unwrap();
            names.split_once(';').unwrap().0
        });
        assert_eq!(named, expected, "{printed}");
    }

    #[test]
    fn the_path_that_was_denied_is_named() {
        for (printed, path) in [
            ("sh: 1: cannot create /opt/x: Permission denied", "`/opt/x`"),
            ("/bin/sh: /opt/x: Permission denied", "`/opt/x`"),
            (
                "touch: cannot touch ‘/opt/a b’: Read-only file system",
                "`/opt/a b`",
            ),
            (
                "Error: EACCES: permission denied, open '/opt/a b/c'",
                "`/opt/a b/c`",
            ),
            (
                "PermissionError: [Errno 13] Permission denied: '/opt/x'",
                "`/opt/x`",
            ),
            (
                "/opt/b: Permission denied\nok\n/opt/a: Permission denied",
                "`/opt/a`, `/opt/b`",
            ),
        ] {
            check(printed, Some(path));
        }
    }

    #[test]
    fn nothing_is_denied_without_an_error_or_in_a_granted_directory() {
        check("wrote /opt/x", None);
        check("/work/tree/a: Permission denied", None);
        check("cannot open /dev/kvm: Permission denied", None);
        check("Permission denied (publickey).", None);
    }
}
