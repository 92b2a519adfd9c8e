//! Reports paths and variables that an agent was denied, with the setting that grants them.
//!
//! The only evidence is the output of the agent and its tools. A path counts if the user can write it
//! and the sandbox denies it to the agent. A variable counts if only the user's environment has it.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use regex::Regex;
use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::host::env;
use crate::host::inherited::is_secret_name;
use crate::host::sandbox::Policy;
use crate::model::acting::AgentNeeds;
use crate::text::sanitize::sanitize_line;
use crate::workflow::confine::{FILE_ERRORS, READ_ONLY_ERRORS};

/// Maximum number of paths, and of variables, in a hint.
const MAX_NAMED: usize = 3;

/// A quoted path, or one without spaces.
const PATH: &str = r#"["'`‘“](/[^"'`’”]+)|(?:^|[\s:=(])(/[^\s:'"`,)]+)"#;

/// Directories without files of the user.
const DEVICES: [&str; 3] = ["/dev", "/proc", "/sys"];

const WRITABLE: &str = "`state` in the model's entry names what it can write besides the worktree";

/// Hints for the output of an agent or its tools, one per cause.
pub(super) fn explain_paths(policy: &Policy, printed: &str) -> Vec<String> {
    let path = Regex::new(PATH).expect("the expression is valid");
    let denied = printed.lines().filter_map(|line| denied_path(&path, line));
    // The agent chooses its output, so a hint must not suggest to grant it a secret.
    let denied = denied.filter(|(_, path)| is_refused_by(policy, Path::new(path)));
    let denied: BTreeSet<(bool, &str)> = denied.collect();
    let names_of = |read_only: bool| {
        let paths = denied.iter().filter(|(is_of, _)| *is_of == read_only);
        quoted(paths.map(|(_, path)| with_tilde(path)))
    };

    let written = names_of(true)
        .map(|names| format!("the sandbox does not let the agent write {names}; {WRITABLE}"));
    let used = names_of(false).map(|names| {
        format!(
            "the agent tried to use {names}, which the sandbox does not let it write; {WRITABLE}"
        )
    });
    written.into_iter().chain(used).collect()
}

/// Whether the user can write the path and the sandbox denies it to the agent.
fn is_refused_by(policy: &Policy, path: &Path) -> bool {
    // With `..`, the path can be in any of these directories.
    if path.components().any(|part| part == Component::ParentDir) {
        return false;
    }
    let real = path.canonicalize();
    let real = real.as_deref().unwrap_or(path);
    let Policy {
        write,
        add,
        hidden,
        private,
        ..
    } = policy;
    let dirs = [write, add, hidden, private].into_iter().flatten();
    let mut dirs = dirs
        .map(PathBuf::as_path)
        .chain(DEVICES.iter().map(Path::new));
    !dirs.any(|dir| path.starts_with(dir) || real.starts_with(dir)) && user_can_write(path)
}

/// Also for a path that does not exist, in a directory in which the user can create it.
fn user_can_write(path: &Path) -> bool {
    let allowed = path
        .ancestors()
        .find_map(|path| match access(path, Access::WRITE_OK) {
            Err(Errno::NOENT) => None,
            result => Some(result.is_ok()),
        });
    allowed == Some(true)
}

/// The first path after the error message in a line, or else the last one before it. Also whether
/// the error is that of a read-only file system.
fn denied_path<'l>(path: &Regex, line: &'l str) -> Option<(bool, &'l str)> {
    let found = |error: &&'static str| line.find(*error).map(|at| (at, *error));
    let (at, error) = FILE_ERRORS.iter().find_map(found)?;
    let (before, after) = line.split_at(at);
    let found = path
        .captures(after)
        .or_else(|| path.captures_iter(before).last())?;
    let name = found.get(1).or(found.get(2))?;
    Some((READ_ONLY_ERRORS.contains(&error), name.as_str()))
}

/// Hint for the output of a failed agent. `None` if it names no withheld variable.
pub(super) fn explain_variables(needs: &AgentNeeds, printed: &str) -> Option<String> {
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
        "the agent's environment lacks {names}; `api_key_env` in the model's entry passes a variable"
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

#[cfg(test)]
mod tests {
    use super::*;

    const USED: &str = "the agent tried to use";
    const WRITTEN: &str = "the sandbox does not let the agent write";

    /// `{d}` is a directory of the user's, with granted, hidden and other files in it.
    #[track_caller]
    fn check(printed: &str, expected: &[(&str, &str)]) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        std::fs::create_dir(path.join("secret")).unwrap();
        std::os::unix::fs::symlink(path.join("secret"), path.join("link")).unwrap();
        let policy = Policy {
            write: vec![path.join("tree")],
            add: vec![path.join("objects")],
            hidden: vec![path.join("secret")],
            ..Policy::default()
        };
        let path = path.to_str().unwrap();
        let hints = explain_paths(&policy, &printed.replace("{d}", path));
        let expected = expected.iter().map(|(begin, names)| {
            // The temporary directory can be in the home directory.
            let names = names.replace("{d}", &with_tilde(path));
            match *begin {
                USED => {
                    format!("{USED} {names}, which the sandbox does not let it write; {WRITABLE}")
                }
                _ => format!("{begin} {names}; {WRITABLE}"),
            }
        });
        assert_eq!(hints, expected.collect::<Vec<_>>(), "{printed}");
    }

    #[test]
    fn the_denied_path_is_reported() {
        for (printed, path) in [
            ("sh: 1: cannot create {d}/x: Permission denied", "`{d}/x`"),
            ("/bin/sh: {d}/x: Permission denied", "`{d}/x`"),
            (
                "Error: EACCES: permission denied, open '{d}/a b/c'",
                "`{d}/a b/c`",
            ),
            (
                "PermissionError: [Errno 13] Permission denied: '{d}/x'",
                "`{d}/x`",
            ),
            (
                "{d}/b: Permission denied\nok\n{d}/a: Permission denied",
                "`{d}/a`, `{d}/b`",
            ),
        ] {
            check(printed, &[(USED, path)]);
        }
    }

    #[test]
    fn writes_and_other_uses_have_separate_hints() {
        let printed = "touch: cannot touch ‘{d}/a b’: Read-only file system\n\
                       cat: {d}/x: Permission denied";
        check(printed, &[(WRITTEN, "`{d}/a b`"), (USED, "`{d}/x`")]);
    }

    #[test]
    fn nothing_is_denied_without_an_error_or_in_a_granted_directory() {
        check("wrote {d}/x", &[]);
        check("{d}/tree/a: Permission denied", &[]);
        check("rm: {d}/objects/a: Permission denied", &[]);
        check("cannot open /dev/kvm: Permission denied", &[]);
        check("Permission denied (publickey).", &[]);
    }

    /// Regression: a hint suggested to grant the agent a directory with keys.
    #[test]
    fn a_hidden_path_is_not_named() {
        check("cat: {d}/secret/key: Permission denied", &[]);
        check("cat: {d}/link: Permission denied", &[]);
        check("cat: {d}/x/../secret/key: Permission denied", &[]);
    }

    #[test]
    fn a_path_that_the_user_cannot_write_either_is_not_named() {
        if !rustix::process::geteuid().is_root() {
            check("cat: /etc/shadow: Permission denied", &[]);
            check("/usr/x: Permission denied", &[]);
        }
    }
}
