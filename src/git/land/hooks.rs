//! The user's hooks around a commit in a scratch worktree.
//!
//! git is given a folder of small scripts that start the hooks of the repository where they are.
//! The last one before the commit also turns `HEAD` of the scratch worktree away from the user's
//! branch: hooks have seen the branch that is committed to by then, and git moves what nobody sees.

use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::git::repository::Repository;
use crate::git::user_git::{answer, in_checkout, user_git};
use crate::host::{env, process};

/// A ref of the scratch worktree alone: the commit's parent, or before the first one the commit.
pub(super) const LANDING: &str = "refs/worktree/land";

/// What git runs before it makes a commit, in this order.
const BEFORE: [&str; 3] = ["pre-commit", "prepare-commit-msg", "commit-msg"];
/// What git runs once the commit is made.
const AFTER: &str = "post-commit";

/// The hooks of a repository.
pub(super) struct Hooks {
    /// The folder of scripts that git is given.
    pub folder: PathBuf,
    /// Whether one of them runs before a commit.
    pub any: bool,
}

/// Whether the hooks that check a commit run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// They do.
    Yes,
    /// `--no-verify`: only those that do not check run.
    No,
}

/// Writes the scripts.
///
/// # Errors
/// If the folder cannot be written, or no program runs there: git would take a script that cannot
/// run for none, and move the user's branch itself.
pub(super) fn wrap(
    repository: &Repository,
    (folder, rules): (&Path, &Path),
    verify: Verify,
) -> anyhow::Result<Hooks> {
    std::fs::create_dir_all(folder)?;
    let theirs = folder_of(repository)?;
    let last = match verify {
        Verify::Yes => "commit-msg",
        Verify::No => "prepare-commit-msg",
    };
    let mut hooks = Hooks {
        folder: folder.to_owned(),
        any: !repository.config_section("hook").is_empty(),
    };

    for name in BEFORE {
        let hook = process::find(theirs.join(name));
        hooks.any |= hook.is_some();
        if hook.is_some() || name == last {
            let script = folder.join(name);
            let text = text(hook.as_deref(), &settings(rules), name == last);
            std::fs::write(&script, text)?;
            std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o500))?;
            anyhow::ensure!(
                process::find(&script).is_some(),
                "no program can run in `{}`; set `worktree.root` to a directory where one can",
                folder.display()
            );
        }
    }

    Ok(hooks)
}

/// Returns what `git -c` hands down to a hook: what whoever called us gave, and the rules for what
/// is linked. Not our folder of scripts: a tool that keeps the hooks of a repository up to date
/// would write over them.
fn settings(rules: &Path) -> Vec<u8> {
    let given = env::var_os("GIT_CONFIG_PARAMETERS").unwrap_or_default();
    let mut settings = given.into_vec();
    if !settings.is_empty() {
        settings.push(b' ');
    }

    let path = rules.as_os_str().as_bytes();
    settings.extend(quoted(&[b"core.excludesFile=", path].concat()));
    settings
}

/// Returns a script that starts a hook, if there is one, and then turns `HEAD` away, if it is the
/// last one.
fn text(hook: Option<&Path>, settings: &[u8], is_last: bool) -> Vec<u8> {
    let mut text = b"#!/bin/sh\n".to_vec();
    if let Some(hook) = hook {
        text.extend_from_slice(b"export GIT_CONFIG_PARAMETERS=");
        text.extend(quoted(settings));
        text.push(b'\n');
        text.extend_from_slice(if is_last { b"" } else { b"exec " });
        text.extend(quoted(hook.as_os_str().as_bytes()));
        text.extend_from_slice(if is_last {
            b" \"$@\" || exit\n"
        } else {
            b" \"$@\"\n"
        });
    }

    if is_last {
        text.extend_from_slice(turn_away().as_bytes());
    }

    text
}

/// Returns the command that detaches `HEAD`; before the first commit, where that cannot be, it
/// leads to a ref of the worktree. Not always: to `git fsck` that is damage, if a crash leaves it.
fn turn_away() -> String {
    let git = "git -c core.hooksPath=/dev/null";
    format!(
        "git rev-parse --quiet --verify {LANDING} > /dev/null || exec {git} symbolic-ref HEAD {LANDING}\n\
         exec {git} update-ref --no-deref HEAD {LANDING}\n"
    )
}

/// Returns a text as one word of a shell.
fn quoted(text: &[u8]) -> Vec<u8> {
    let mut word = b"'".to_vec();
    for byte in text {
        match byte {
            b'\'' => word.extend_from_slice(b"'\\''"),
            byte => word.push(*byte),
        }
    }

    word.push(b'\'');
    word
}

/// Returns the folder of the user's hooks.
fn folder_of(repository: &Repository) -> anyhow::Result<PathBuf> {
    let mut git = in_checkout(user_git(repository.workdir())?, repository);
    git.args(["rev-parse", "--git-path", "hooks"]);
    let mut path = answer(&mut git, "tell where hooks are").context("looking for hooks")?;
    if path.last() == Some(&b'\n') {
        path.pop();
    }

    let path = PathBuf::from(std::ffi::OsString::from_vec(path));
    Ok(repository.workdir().join(path))
}

/// Runs the hook that hears of a commit once it is there; what it says of itself changes nothing.
pub fn after_commit(repository: &Repository) {
    let Ok(folder) = folder_of(repository) else {
        return;
    };
    let Some(hook) = process::find(folder.join(AFTER)) else {
        return;
    };
    let mut command = process::command(hook);
    command
        .current_dir(repository.workdir())
        .stdin(std::process::Stdio::null())
        .stdout(std::io::stderr());
    let _ = in_checkout(command, repository).status();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_hook_turns_head_away_if_it_is_content() {
        let check = |hook: Option<&str>, is_last, expected: &str| {
            let text = text(hook.map(Path::new), b"a=b", is_last);
            assert_eq!(String::from_utf8(text).unwrap(), expected);
        };
        let away = turn_away();
        let given = "export GIT_CONFIG_PARAMETERS='a=b'\n";
        check(
            Some("/it's/h"),
            false,
            &format!("#!/bin/sh\n{given}exec '/it'\\''s/h' \"$@\"\n"),
        );
        check(None, true, &format!("#!/bin/sh\n{away}"));
        check(
            Some("/h"),
            true,
            &format!("#!/bin/sh\n{given}'/h' \"$@\" || exit\n{away}"),
        );
    }
}
