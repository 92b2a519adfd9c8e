//! Runs git.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::Context as _;

use super::Reftable;
use crate::git::command::git_in;

/// Part of git's message if it does not know the format.
const UNKNOWN_FORMAT: &str = "unknown repository extension";

impl Reftable {
    pub(super) fn git(&self) -> anyhow::Result<Command> {
        let mut command = git_in(&self.own)?;
        command.arg("--git-dir").arg(&self.own);
        Ok(command)
    }

    pub(super) fn run_git(&self, args: &[&str]) -> anyhow::Result<Vec<u8>> {
        let output = self.git()?.args(args).output().context("starting git")?;
        let name = args.first().copied().unwrap_or_default();
        if output.status.success() {
            return Ok(output.stdout);
        }

        let stderr = String::from_utf8_lossy(&output.stderr);
        let is_old = stderr.contains(UNKNOWN_FORMAT);
        let hint = if is_old {
            "; a reftable needs git 2.45 or newer"
        } else {
            ""
        };

        anyhow::bail!("git {name} failed: {}{hint}", stderr.trim());
    }

    /// Returns git's output for the given input lines, even if git exits early.
    pub(super) fn run_with_input(&self, args: &[&str], lines: &str) -> anyhow::Result<String> {
        let mut command = self.git()?;
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().context("starting git")?;

        if let Some(mut stdin) = child.stdin.take() {
            // git can exit before it reads all lines.
            let _ = stdin.write_all(lines.as_bytes());
        }

        let output = child.wait_with_output().context("waiting for git")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
