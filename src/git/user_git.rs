//! Runs git as the user would: with their settings, identity, hooks and keys.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::git::repository::Repository;
use crate::host::{env, process};

/// Variables that point git at another repository or another part of it.
const ELSEWHERE: [&str; 12] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Returns git in a directory, with the user's identity from settings and environment.
///
/// Fails if git is in no absolute directory of `PATH` outside of that directory and the current
/// one.
pub(super) fn user_git(dir: &Path) -> anyhow::Result<Command> {
    let current = env::current_dir().unwrap_or_else(|_| dir.to_owned());
    let Some(program) = process::find_outside("git", &[dir, &current]) else {
        anyhow::bail!("git is not installed: it is in no directory of PATH");
    };

    let mut command = process::command(program);
    // Hooks and helpers of git's find the environment in which the user would run git.
    process::restore_env(&mut command, |_| true);
    command.current_dir(dir).stdin(Stdio::null());
    for name in ELSEWHERE {
        command.env_remove(name);
    }

    command.arg("--no-pager");
    Ok(command)
}

pub(super) fn silent_git(dir: &Path) -> anyhow::Result<Command> {
    let mut command = user_git(dir)?;
    command.args(["-c", "core.hooksPath=/dev/null"]);
    Ok(command)
}

/// Returns the user's git for the files of a repository.
pub(super) fn git_for(repository: &Repository) -> anyhow::Result<Command> {
    user_git(repository.workdir()).map(|git| in_checkout(git, repository))
}

/// Like [`git_for`], without hooks.
pub(super) fn silent_git_for(repository: &Repository) -> anyhow::Result<Command> {
    silent_git(repository.workdir()).map(|git| in_checkout(git, repository))
}

pub(super) fn in_checkout(mut command: Command, repository: &Repository) -> Command {
    command
        .env("GIT_DIR", repository.git_dir())
        .env("GIT_WORK_TREE", repository.workdir());
    command
}
