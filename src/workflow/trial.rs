//! Trials: a command run on what turns left, in a scratch worktree that is thrown away.
//!
//! The command is confined as those of a plan are. Nothing that it writes is kept, and the user's
//! files are not touched.

use std::time::Duration;

use crate::git::object::CommitId;
use crate::git::worktree;
use crate::host::lock::{Lock, patience};
use crate::plan::Plan;
use crate::plan::action::Action;
use crate::plan::action::execute::Execute;
use crate::session::artifact::Artifacts;
use crate::session::turn::Turn;
use crate::text::visible::strip_ansi;
use crate::workflow::execute::run_env::{Reach, RunEnv};
use crate::workflow::execute::stage::perform;
use crate::workflow::project::Project;
use crate::workflow::user::{Approved, User};

/// The name of the worktree, which no session can have.
const WORKTREE: &str = "_trial";
/// So many last lines of the output are kept.
const LAST_LINES: usize = 10;

/// The place of trials; the worktree goes with it.
pub(in crate::workflow) struct Trials<'p> {
    /// The project.
    project: &'p Project,
    /// Nobody else has trials meanwhile.
    _lock: Lock,
}

/// What came of running the command.
#[derive(Debug, Clone)]
pub(in crate::workflow) struct Trial {
    /// Its exit code; 124 after the time limit, 128 + n after signal n.
    pub exit_code: i32,
    /// How long it took.
    pub duration: Duration,
    /// The last lines of its output.
    pub tail: Vec<String>,
}

impl<'p> Trials<'p> {
    /// Waits for others to end their trials.
    ///
    /// # Errors
    /// They do not.
    pub(in crate::workflow) fn begin(project: &'p Project, word: &str) -> anyhow::Result<Self> {
        let lock = project.repository.teddy_dir().join("locks").join(WORKTREE);
        Ok(Trials {
            project,
            _lock: Lock::take(&lock, word, patience())?,
        })
    }

    /// Runs a command on the files of a commit; `turn` is the one whose settings hold.
    ///
    /// # Errors
    /// It cannot be run, or the user stopped it.
    pub(in crate::workflow) fn run(
        &self,
        turn: &Turn,
        commit: CommitId,
        command: &str,
        user: &mut dyn User,
    ) -> anyhow::Result<Trial> {
        let env = RunEnv {
            name: WORKTREE,
            tip: turn,
            before: commit,
            tree: self.project.repository.commit(commit)?.tree,
            users_own: false,
            reach: Reach::AsConfigured,
            artifacts: &Artifacts::default(),
        };
        let left = perform(self.project, &env, &Approved::all(&plan_of(command)), user)?;
        if let Some(why) = &left.ran.interruption {
            anyhow::bail!("interrupted: {why}");
        }

        let outcome = left.ran.outcomes.first();
        let outcome = outcome.ok_or_else(|| anyhow::anyhow!("the command was not run"))?;
        let Some(exit_code) = outcome.exit_code else {
            anyhow::bail!("the command could not be run: {}", outcome.detail)
        };
        Ok(Trial {
            exit_code,
            duration: outcome.duration,
            tail: last_lines(&outcome.output, LAST_LINES),
        })
    }
}

impl Drop for Trials<'_> {
    fn drop(&mut self) {
        // What resists is removed by the next `gc`.
        let _ = worktree::remove_session_worktree(&self.project.repository, WORKTREE);
    }
}

/// Returns the last lines of an output, without colours.
pub(in crate::workflow) fn last_lines(output: &[u8], most: usize) -> Vec<String> {
    let output = String::from_utf8_lossy(output);
    let lines: Vec<&str> = output.lines().collect();
    let last = lines.len().saturating_sub(most);
    lines[last..]
        .iter()
        .map(|line| strip_ansi(line).into_owned())
        .collect()
}

/// Returns the plan that runs a command.
fn plan_of(command: &str) -> Plan {
    Plan {
        title: "Trial".to_owned(),
        actions: vec![action_of(command)],
        ..Plan::default()
    }
}

/// Returns the action that runs a command, which may fail.
pub(in crate::workflow) fn action_of(command: &str) -> Action {
    let execute = Execute {
        command: command.to_owned(),
        language: "sh".to_owned(),
        cwd: None,
        env: Vec::new(),
        expected_outcome: String::new(),
        allow_failure: true,
        timeout: None,
    };
    Action {
        line: 1,
        fields: Vec::new(),
        kind: execute.into(),
    }
}
