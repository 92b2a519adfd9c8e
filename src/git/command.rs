//! The one way to run git itself: nothing of a clone's, of the environment or of the network has
//! a say in what it does.
//!
//! Not for what gix can do: a process costs milliseconds, and a repository's configuration can name
//! programs. Diffs additionally take `--no-ext-diff` and `--no-textconv`, and paths come after
//! `--`.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::host::{env, process};

/// What every command is told, whatever the configuration says.
const SETTINGS: [&str; 12] = [
    // A relative path means the user's files, in which git does not run.
    "diff.orderFile=/dev/null",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.pager=cat",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "log.showSignature=false",
    "protocol.allow=never",
    "core.sshCommand=false",
];

/// Makes an empty repository in a folder, on the branch that the user's git starts with.
///
/// # Errors
/// Where git is not installed or the folder cannot be written.
pub fn init(folder: &Path) -> anyhow::Result<()> {
    let output = git_in(folder)?.args(["init", "--quiet"]).output()?;
    anyhow::ensure!(
        output.status.success(),
        "git init failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

/// Returns a git command that runs in a folder, for `git init` say.
///
/// # Errors
/// Where git is not in an absolute folder of `PATH` outside this one and the current one.
pub fn git_in(folder: &Path) -> anyhow::Result<Command> {
    let current = env::current_dir().unwrap_or_else(|_| folder.to_owned());
    let Some(program) = process::find_outside("git", &[folder, &current]) else {
        anyhow::bail!("git is not installed: it is in no directory of PATH");
    };
    let mut command = process::command(program);
    command.current_dir(folder).stdin(Stdio::null());
    for (name, _) in env::all().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_")) {
        command.env_remove(name);
    }

    for (name, value) in [
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_EDITOR", ":"),
        ("LC_ALL", "C"),
    ] {
        command.env(name, value);
    }

    command.args(["--no-pager", "--no-optional-locks", "--literal-pathspecs"]);
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }

    Ok(command)
}
