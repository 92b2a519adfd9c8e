//! The value of an EXECUTE.

use std::time::Duration;

use crate::text::path::RepoPath;

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execute {
    /// The script, as passed to a shell or to the program of its `#!` line.
    pub command: String,
    /// Info string of the block.
    pub language: String,
    /// Working directory; the project root if `None`.
    pub cwd: Option<RepoPath>,
    /// Variables for this command only.
    pub env: Vec<(String, String)>,
    /// The outcome that the model expects.
    pub expected_outcome: String,
    /// `- **Allow Failure:** true`: a nonzero exit code does not stop the plan.
    pub allow_failure: bool,
    /// `- **Timeout:** 30`: the command's own time limit.
    pub timeout: Option<Duration>,
    /// `- **Network:** true`: the user has granted this command the network in the review. A mistake
    /// in a plan that was not reviewed.
    pub network: bool,
}

impl Execute {
    /// Describes everything that differs from a command in the root without a time limit.
    pub fn settings(&self) -> Vec<String> {
        let dir = self.cwd.as_ref().map(|cwd| format!("in {cwd}"));
        let env = self
            .env
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let limit = self
            .timeout
            .map(|limit| format!("at most {} s", limit.as_secs()));
        let failure = self.allow_failure.then(|| "may fail".to_owned());
        let network = self.network.then(|| "with the network".to_owned());
        let settings = dir.into_iter().chain(env).chain(limit);

        settings.chain(failure).chain(network).collect()
    }
}
