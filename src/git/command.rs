//! The only way to run git non-interactively: independent of hooks, the environment and the
//! network.
//!
//! Prefer gix where it suffices: a process costs milliseconds, and a repository's configuration can
//! name programs. Diffs must also pass `--no-ext-diff` and `--no-textconv`, and paths follow `--`.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::Context as _;

use crate::host::{env, process};
use crate::text::sanitize::sanitize_block;

/// Settings of every command, which override the configuration.
const SETTINGS: [&str; 12] = [
    // A relative path means the user's files, in which git does not run.
    "diff.orderFile=/dev/null",
    // The configuration can name programs in these.
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.pager=cat",
    // Maintenance would run in the background and prune objects.
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "log.showSignature=false",
    // A partial clone must not fetch with the user's keys because they viewed a diff.
    "protocol.allow=never",
    "core.sshCommand=false",
];

/// Variables that select the user's configuration files, which our git reads too.
const CONFIG_FILES: [&str; 4] = [
    "GIT_ATTR_NOSYSTEM",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
];

/// Creates an empty repository in a directory, with the user's default branch.
pub fn init(dir: &Path) -> anyhow::Result<()> {
    run_checked(git_in(dir)?.args(["init", "--quiet"]), "make a repository").map(drop)
}

/// Returns a git command that runs in a directory.
///
/// Fails if git is in no absolute directory of `PATH` outside of that directory and the current
/// one, so a program in the worktree is never run.
pub fn git_in(dir: &Path) -> anyhow::Result<Command> {
    let current = env::current_dir().unwrap_or_else(|_| dir.to_owned());
    let Some(program) = process::find_outside("git", &[dir, &current]) else {
        anyhow::bail!("git is not installed: it is in no directory of PATH");
    };
    let mut command = process::command(program);
    command.current_dir(dir).stdin(Stdio::null());
    // Variables such as GIT_DIR would point git at another repository.
    for (name, _) in env::all().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_")) {
        if !CONFIG_FILES.iter().any(|allowed| name == *allowed) {
            command.env_remove(name);
        }
    }

    for (name, value) in [
        ("GIT_TERMINAL_PROMPT", "0"),
        // A replaced object has other content than its id says.
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_EDITOR", ":"),
        // We compare git's messages.
        ("LC_ALL", "C"),
    ] {
        command.env(name, value);
    }

    // Without optional locks, a command that reads never rewrites the user's index.
    command.args(["--no-pager", "--no-optional-locks", "--literal-pathspecs"]);
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }

    Ok(command)
}

/// Runs git and returns its output. Fails with git's message if git fails.
pub fn run_checked(command: &mut Command, action: &str) -> anyhow::Result<Vec<u8>> {
    check_output(command.output().context("starting git")?, action)
}

/// Like [`run_checked`], with an input.
pub fn run_with_input(
    command: &mut Command,
    input: &[u8],
    action: &str,
) -> anyhow::Result<Vec<u8>> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting git")?;
    let (pipe, input) = (child.stdin.take(), input.to_vec());

    // In a thread: git can fill the output pipe before it has read all input.
    let writer = std::thread::Builder::new();
    let writer = writer.spawn(move || pipe.map(|mut pipe| pipe.write_all(&input)))?;
    let output = child.wait_with_output()?;
    drop(writer.join());
    check_output(output, action)
}

fn check_output(output: Output, action: &str) -> anyhow::Result<Vec<u8>> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "git cannot {action}: {}",
        // It can name files and refs of another's.
        sanitize_block(stderr.trim().trim_start_matches("fatal: "))
    );
    Ok(output.stdout)
}
