//! Runs a command, or a recorded plan, on the files of a turn in a temporary worktree.
//!
//! Commands are confined like those of any plan. Nothing that they write is kept.

use std::time::Duration;

use crate::git::object::CommitId;
use crate::git::worktree;
use crate::host::lock::{Lock, patience};
use crate::plan::Plan;
use crate::plan::action::Action;
use crate::plan::action::execute::Execute;
use crate::project::Project;
use crate::session::artifact::Artifacts;
use crate::session::turn::Turn;
use crate::text::sanitize::strip_ansi;
use crate::workflow::execute::prepare::RunEnv;
use crate::workflow::execute::stage::{RunResult, perform};
use crate::workflow::user::{Approved, User};

/// Not a valid session name, so it cannot collide.
const WORKTREE: &str = "_trial";
const LAST_LINES: usize = 10;

/// Removes the worktree when dropped.
pub(in crate::workflow) struct Trials<'p> {
    project: &'p Project,
    _lock: Lock,
}

#[derive(Debug, Clone)]
pub(in crate::workflow) struct Trial {
    /// 124 after a timeout, 128 + n after signal n.
    pub exit_code: i32,
    pub duration: Duration,
    pub tail: Vec<String>,
}

impl<'p> Trials<'p> {
    pub(in crate::workflow) fn begin(project: &'p Project, word: &str) -> anyhow::Result<Self> {
        let lock = project.repository.teddy_dir().join("locks").join(WORKTREE);
        Ok(Trials {
            project,
            // Trials share one worktree.
            _lock: Lock::take(&lock, word, patience())?,
        })
    }

    /// Runs a plan after `tip`, on the files of a commit.
    pub(in crate::workflow) fn perform(
        &self,
        tip: &Turn,
        before: CommitId,
        replayed: Option<&Artifacts>,
        plan: &Plan,
        user: &mut dyn User,
    ) -> anyhow::Result<RunResult> {
        let none = Artifacts::default();
        let env = RunEnv {
            name: WORKTREE,
            tip,
            before,
            tree: self.project.repository.commit(before)?.tree,
            users_own: false,
            is_replay: replayed.is_some(),
            artifacts: replayed.unwrap_or(&none),
        };
        let result = perform(self.project, &env, &Approved::all(plan), user)?;
        match &result.ran.interruption {
            Some(why) => anyhow::bail!("interrupted: {why}"),
            None => Ok(result),
        }
    }

    /// `turn` determines the settings.
    pub(in crate::workflow) fn run(
        &self,
        turn: &Turn,
        commit: CommitId,
        command: &str,
        user: &mut dyn User,
    ) -> anyhow::Result<Trial> {
        let plan = plan_of(command);
        let result = self.perform(turn, commit, None, &plan, user)?;
        let outcome = result.ran.outcomes.first();
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
        // The next `gc` removes what is left.
        let _ = worktree::remove_session_worktree(&self.project.repository, WORKTREE);
    }
}

/// Returns whether an exit code says that a shell found no program, or one that it cannot execute.
/// Such a command has tested nothing.
pub(in crate::workflow) fn cannot_test(exit_code: i32) -> bool {
    matches!(exit_code, 126 | 127)
}

pub(in crate::workflow) fn last_lines(output: &[u8], most: usize) -> Vec<String> {
    let output = String::from_utf8_lossy(output);
    let lines: Vec<&str> = output.lines().collect();
    let last = lines.len().saturating_sub(most);
    lines[last..]
        .iter()
        .map(|line| strip_ansi(line).into_owned())
        .collect()
}

fn plan_of(command: &str) -> Plan {
    Plan {
        title: "Trial".to_owned(),
        actions: vec![action_of(command)],
        ..Plan::default()
    }
}

/// The action is allowed to fail.
pub(in crate::workflow) fn action_of(command: &str) -> Action {
    let execute = Execute {
        command: command.to_owned(),
        language: "sh".to_owned(),
        allow_failure: true,
        ..Execute::default()
    };
    Action {
        line: 1,
        fields: Vec::new(),
        kind: execute.into(),
    }
}
