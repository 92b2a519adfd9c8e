//! `replay`: runs a recorded plan again, offline and apart from the user's files, and compares the
//! resulting tree.

use crate::git::diff;
use crate::git::worktree;
use anyhow::Context as _;

use crate::config::settings::{OnFailure, Sandbox};
use crate::git::object::TreeId;
use crate::git::repository::Repository;
use crate::host::lock::{Lock, patience};
use crate::host::sandbox::{Availability, availability};
use crate::plan::Plan;
use crate::session::artifact::{self, Artifacts};
use crate::session::meta::{Status, Workspace};
use crate::session::turn::Turn;
use crate::text::path::shown;
use crate::workflow::execute::run_env::{Reach, RunEnv};
use crate::workflow::execute::stage::perform;
use crate::workflow::project::Project;
use crate::workflow::user::{Approved, User};

/// Not a valid session name, so it cannot collide.
const WORKTREE: &str = "_replay";

/// Result of a replay.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// Turn number.
    pub turn: u64,
    /// The recorded tree.
    pub expected: TreeId,
    /// The new tree.
    pub tree: TreeId,
    /// Differing paths.
    pub differences: Vec<String>,
}

/// Runs the plan of a turn again in a temporary worktree at the turn's `before`. Asks first if the
/// commands cannot be confined.
pub fn replay(project: &Project, turn: &str, user: &mut dyn User) -> anyhow::Result<Replayed> {
    let turn = project.store().turn(&project.session_of(turn)?, turn)?;
    turn.session.writable()?;
    let (plan, workspace) = recorded(&project.repository, &turn)?;
    let runs = plan
        .actions
        .iter()
        .filter(|action| action.kind.command().is_some())
        .count();

    if runs > 0 && !is_confined(project) {
        let question = format!(
            "The commands of turn {} ({runs}) cannot be confined here. Run them again?",
            turn.number()
        );
        anyhow::ensure!(user.confirm(&question, "-y")?, "nothing was run");
    }

    let _lock = Lock::take(
        &project.repository.teddy_dir().join("locks").join(WORKTREE),
        "replay",
        patience(),
    )?;
    let tree = run_again(project, &turn, (&plan, &workspace), user);
    // Also if the run failed.
    worktree::remove_session_worktree(&project.repository, WORKTREE)?;
    let tree = tree?;
    let expected = project.repository.commit(workspace.after)?.tree;
    let changes = diff::changes(&project.repository, expected, tree)?;
    let paths: Vec<Vec<u8>> = changes.into_iter().map(|change| change.path).collect();

    Ok(Replayed {
        turn: turn.number(),
        expected,
        tree,
        differences: shown(&paths),
    })
}

fn recorded(repository: &Repository, turn: &Turn) -> anyhow::Result<(Plan, Workspace)> {
    let (number, status) = (turn.number(), turn.meta.status);
    anyhow::ensure!(
        matches!(status, Status::Executed | Status::Failed),
        "no plan ran in turn {number}: it is `{}`",
        status.word()
    );
    let text = |name: &str| turn.text(repository, name);
    let text = match text(artifact::APPROVED)? {
        Some(approved) => approved,
        None => text(artifact::PLAN)?
            .with_context(|| format!("turn {number} has no `{}`", artifact::PLAN))?,
    };

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

/// Returns `true` if commands can write only in their worktree.
fn is_confined(project: &Project) -> bool {
    project.settings.execute.sandbox != Sandbox::Off && availability() == Availability::Full
}

fn run_again(
    project: &Project,
    turn: &Turn,
    (plan, workspace): (&Plan, &Workspace),
    user: &mut dyn User,
) -> anyhow::Result<TreeId> {
    let previous = turn.previous.context("the session's start has no plan")?;
    let tip = Turn::read(&project.repository, &turn.session, previous)?;
    let tree = project.repository.commit(workspace.before)?.tree;
    let artifacts = Artifacts(project.repository.files(turn.tree)?);
    let env = RunEnv {
        name: WORKTREE,
        tip: &tip,
        before: workspace.before,
        tree,
        users_own: false,
        reach: Reach::Recorded(&artifacts),
        artifacts: &artifacts,
    };

    let left = perform(project, &env, &Approved::all(plan), user)?;
    if let Some(why) = &left.ran.interruption {
        anyhow::bail!("interrupted: {why}");
    }

    let rolled_back = left.ran.failed && project.settings.on_failure == OnFailure::Rollback;
    Ok(if rolled_back { tree } else { left.taken.tree })
}
