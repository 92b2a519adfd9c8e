//! The value of an EXECUTE.

use std::time::Duration;

use crate::text::path::RepoPath;

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execute {
    /// The script, as `sh` gets it.
    pub command: String,
    /// The info string of the block.
    pub language: String,
    /// The folder to run in; the project's root without one.
    pub cwd: Option<RepoPath>,
    /// Variables for this command alone.
    pub env: Vec<(String, String)>,
    /// What the model expects to see.
    pub expected_outcome: String,
    /// `- **Allow Failure:** true`: an exit code other than 0 does not stop the plan.
    pub allow_failure: bool,
    /// `- **Timeout:** 30`: a limit of its own, in seconds.
    pub timeout: Option<Duration>,
}

impl Execute {
    /// Returns in what it differs from a command that runs in the root without a limit.
    pub fn settings(&self) -> Vec<String> {
        let folder = self.cwd.as_ref().map(|cwd| format!("in {cwd}"));
        let env = self
            .env
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let limit = self
            .timeout
            .map(|limit| format!("at most {} s", limit.as_secs()));
        let failure = self.allow_failure.then(|| "may fail".to_owned());
        let settings = folder.into_iter().chain(env).chain(limit);

        settings.chain(failure).collect()
    }
}
