//! `verify --rerun`: runs a recorded plan again, offline and apart from the user's files, and compares the
//! resulting tree and the exit codes.

use anyhow::Context as _;
use serde::Serialize;

use crate::config::settings::{OnFailure, Sandbox};
use crate::git::diff;
use crate::git::object::{CommitId, TreeId};
use crate::git::repository::Repository;
use crate::host::sandbox::{Availability, availability};
use crate::plan::Plan;
use crate::plan::run::Ran;
use crate::project::Project;
use crate::session::artifact::{self, Artifacts};
use crate::session::meta::{Status, Workspace};
use crate::session::report;
use crate::session::turn::Turn;
use crate::text::hint::error_with_hint;
use crate::text::path::lossy_paths;
use crate::workflow::confine::backend::{CommandFiles, command_files};
use crate::workflow::trial::Trials;
use crate::workflow::user::User;

#[derive(Debug, Clone)]
pub struct RerunResult {
    pub turn: u64,
    /// As recorded.
    pub expected: TreeId,
    pub tree: TreeId,
    pub differences: Vec<String>,
    /// Commands that ended differently.
    pub exit_codes: Vec<ExitDifference>,
    pub unseen: Vec<Unseen>,
}

impl RerunResult {
    /// The files, and how each command ended.
    pub fn is_same(&self) -> bool {
        self.expected == self.tree && self.exit_codes.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExitDifference {
    /// Number of the action in the plan that ran, from 1.
    pub action: usize,
    /// In the turn. `None` if the command did not run to its end.
    pub expected: Option<i32>,
    /// `None` if the command did not run to its end.
    pub found: Option<i32>,
}

/// What commands of a rerun see otherwise than those of the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unseen {
    /// Ignored files, and those that `not_captured` names, are missing.
    FilesInNoSnapshot,
    /// These files are the user's present ones.
    PresentFiles,
    Network,
}

/// In a temporary worktree at the turn's `before`. Asks first if the commands cannot be confined.
pub fn rerun(project: &Project, turn: &str, user: &mut dyn User) -> anyhow::Result<RerunResult> {
    let turn = project.store().turn(&project.session_of(turn)?, turn)?;
    turn.session.writable()?;
    if !project.checkout().is_own_turn(&turn)? {
        return Err(not_own(&turn));
    }
    let (plan, workspace) = recorded(&project.repository, &turn)?;
    let commands = plan.actions.iter();
    let commands = commands.filter(|action| action.kind.command().is_some());
    let runs = commands.count();

    if runs > 0 && !is_confined(project) {
        let question = format!(
            "The commands of turn {} ({runs}) cannot be confined here. Run them again?",
            turn.number()
        );
        anyhow::ensure!(user.confirm(&question, "-y")?, "nothing was run");
    }

    let (tree, ran) = run_again(project, &turn, &plan, workspace.before, user)?;
    let expected = project.repository.commit(workspace.after)?.tree;
    let changes = diff::changes(&project.repository, expected, tree)?;
    let paths: Vec<Vec<u8>> = changes.into_iter().map(|change| change.path).collect();

    Ok(RerunResult {
        turn: turn.number(),
        expected,
        tree,
        differences: lossy_paths(&paths),
        exit_codes: exit_differences(&project.repository, &turn, &ran)?,
        unseen: match runs {
            0 => Vec::new(),
            _ => unseen(project, &turn),
        },
    })
}

fn not_own(turn: &Turn) -> anyhow::Error {
    let (session, number) = (&turn.session, turn.number());
    error_with_hint(
        format!(
            "turn {number} of session `{session}` is not recorded as yours; its plan does not run"
        ),
        format!("`teddy switch --adopt {session}` accepts the session"),
    )
}

/// With the report of the turn.
fn exit_differences(
    repository: &Repository,
    turn: &Turn,
    ran: &Ran,
) -> anyhow::Result<Vec<ExitDifference>> {
    let report = turn.text(repository, artifact::REPORT)?.unwrap_or_default();
    let Some(report) = report::read(&report) else {
        return Ok(Vec::new());
    };
    // The plan that ran has only the actions that were approved.
    let expected = report.iter().filter(|action| {
        let status = action.field("Status");
        status.is_none_or(|status| !status.starts_with("Skipped"))
    });
    let expected: Vec<Option<i32>> = expected
        .map(|action| action.field("Exit Code")?.parse().ok())
        .collect();
    // Without the same number of actions, no result can be matched with another.
    if expected.len() != ran.outcomes.len() {
        return Ok(Vec::new());
    }

    let pairs = expected.into_iter().zip(&ran.outcomes).enumerate();
    let differences = pairs.map(|(at, (expected, outcome))| ExitDifference {
        action: at + 1,
        expected,
        found: outcome.exit_code,
    });
    Ok(differences
        .filter(|code| code.expected != code.found)
        .collect())
}

/// What the user had in no snapshot is not recorded; what commands can see on this machine is.
fn unseen(project: &Project, turn: &Turn) -> Vec<Unseen> {
    let mut unseen = Vec::new();
    if command_files(project) == CommandFiles::Overlay {
        unseen.push(Unseen::PresentFiles);
    } else if !turn.meta.not_captured.is_empty() {
        unseen.push(Unseen::FilesInNoSnapshot);
    }
    if project.settings.execute.network && is_confined(project) {
        unseen.push(Unseen::Network);
    }
    unseen
}

/// As it ran, with the files before and after.
fn recorded(repository: &Repository, turn: &Turn) -> anyhow::Result<(Plan, Workspace)> {
    let (number, status) = (turn.number(), turn.meta.status);
    anyhow::ensure!(
        matches!(status, Status::Executed | Status::Failed),
        "no plan ran in turn {number}: it is `{}`",
        status.word()
    );
    let text = turn
        .plan_as_run(repository)?
        .with_context(|| format!("turn {number} has no `{}`", artifact::PLAN))?;
    let (plan, diagnostics) = crate::plan::parse(&text);
    anyhow::ensure!(
        diagnostics.is_empty(),
        "the plan of turn {number} cannot be read by this version"
    );
    let workspace = turn
        .meta
        .workspace
        .clone()
        .with_context(|| format!("turn {number} has no files recorded"))?;

    Ok((plan, workspace))
}

/// Commands can write only in their worktree.
fn is_confined(project: &Project) -> bool {
    project.settings.execute.sandbox != Sandbox::Off && availability() == Availability::Full
}

/// Returns the resulting tree, and how the actions ended.
fn run_again(
    project: &Project,
    turn: &Turn,
    plan: &Plan,
    before: CommitId,
    user: &mut dyn User,
) -> anyhow::Result<(TreeId, Ran)> {
    let previous = turn.previous.context("the session's start has no plan")?;
    let tip = Turn::read(&project.repository, &turn.session, previous)?;
    let artifacts = Artifacts(project.repository.files(turn.tree)?);
    let trials = Trials::begin(project, "verify")?;
    let result = trials.perform(&tip, before, Some(&artifacts), plan, user)?;
    let rolled_back = result.ran.failed && project.settings.on_failure == OnFailure::Rollback;
    let tree = match rolled_back {
        true => project.repository.commit(before)?.tree,
        false => result.worktree.tree,
    };
    Ok((tree, result.ran))
}
