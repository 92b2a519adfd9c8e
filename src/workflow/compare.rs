//! `compare`: compares turns or sessions by size, cost and time, and optionally by running a
//! command on each. Read-only, except for the temporary worktree of the command.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;

use crate::git::diff::{self, TreeChange};
use crate::git::object::{CommitId, TreeId};
use crate::git::repository::Repository;
use crate::project::Project;
use crate::query::sum::{LastTurn, sum};
use crate::query::summary;
use crate::session::meta::{Status, Workspace};
use crate::session::name::SessionName;
use crate::session::store::StoreError;
use crate::session::turn::Turn;
use crate::text::hint::error_with_hint;
use crate::workflow::trial::{Trials, cannot_test};
use crate::workflow::user::User;
use crate::workspace::file_move::changes_of;

#[derive(Debug, Clone, Serialize)]
pub struct Side {
    /// As the user gave it.
    pub name: String,
    /// The newest turn with files.
    pub commit: CommitId,
    pub status: Status,
    /// Each once.
    pub models: Vec<String>,
    pub turns: usize,
    pub files: usize,
    /// `None` if a file is binary or too large.
    pub added: Option<usize>,
    /// `None` like `added`.
    pub removed: Option<usize>,
    /// `None` if unknown.
    pub tokens_in: Option<u64>,
    /// `None` if unknown.
    pub tokens_out: Option<u64>,
    /// In dollars; `None` if unknown.
    pub cost: Option<f64>,
    /// Sum over the turns; `None` if not recorded.
    pub seconds: Option<f64>,
    /// After the newest turn.
    pub tree: TreeId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<CompareCheck>,
}

#[derive(Debug, Clone, Serialize)]
pub struct CompareCheck {
    pub exit_code: i32,
    pub seconds: f64,
    /// Last lines of the output.
    pub tail: Vec<String>,
}

impl CompareCheck {
    /// Returns whether the command could not be run, so that it tested nothing.
    pub fn has_not_run(&self) -> bool {
        cannot_test(self.exit_code)
    }
}

struct ComparedSide {
    name: String,
    /// Newest first.
    turns: Vec<Turn>,
    /// The first `own` turns are measured; the others are shared.
    own: usize,
    /// The name denotes a session, not a turn.
    is_session: bool,
}

impl ComparedSide {
    fn own(&self) -> &[Turn] {
        &self.turns[..self.own]
    }
}

/// Leaves out turns that all sessions share.
pub fn compare(
    project: &Project,
    names: &[String],
    command: Option<&str>,
    user: &mut dyn User,
) -> anyhow::Result<Vec<Side>> {
    let (mut sides, chosen) = measured(project, names)?;
    let Some(command) = command else {
        return Ok(sides);
    };
    let trials = Trials::begin(project, "compare")?;
    for (side, chosen) in sides.iter_mut().zip(&chosen) {
        let (turn, workspace) = last(chosen)?;
        let trial = trials.run(turn, workspace.after, command, user)?;
        side.check = Some(CompareCheck {
            exit_code: trial.exit_code,
            seconds: rounded(trial.duration),
            tail: trial.tail,
        });
    }

    Ok(sides)
}

/// Without a command.
pub fn sides(project: &Project, names: &[String]) -> anyhow::Result<Vec<Side>> {
    measured(project, names).map(|(sides, _)| sides)
}

fn measured(project: &Project, names: &[String]) -> anyhow::Result<(Vec<Side>, Vec<ComparedSide>)> {
    let mut chosen = names
        .iter()
        .map(|name| choose(project, name))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let base = leave_shared_out(&mut chosen);
    let sides = chosen.iter().map(|one| measure(project, one, base));
    Ok((sides.collect::<anyhow::Result<_>>()?, chosen))
}

/// A session name selects all its turns; any other name selects one turn.
fn choose(project: &Project, name: &str) -> anyhow::Result<ComparedSide> {
    let store = project.store();
    let session = SessionName::from_address(name).ok();
    let session = session.filter(|session| store.has(session).unwrap_or_default());
    let is_session = session.is_some();
    let turns: Vec<Turn> = match session {
        Some(session) => {
            let tip = store.tip(&session)?;
            store.history(tip).collect::<anyhow::Result<_>>()?
        }
        None => vec![turn(project, name)?],
    };

    Ok(ComparedSide {
        name: name.to_owned(),
        own: turns.len(),
        turns,
        is_session,
    })
}

fn turn(project: &Project, name: &str) -> anyhow::Result<Turn> {
    let store = project.store();
    let resolved = store.turn(&project.session_of(name)?, name);
    let is_unknown = |error: &anyhow::Error| {
        let error = error.downcast_ref();
        matches!(error, Some(StoreError::NoTurn { .. }))
    };

    match (SessionName::parse(name), resolved) {
        (Ok(session), Err(error)) if is_unknown(&error) => store.tip(&session),
        (_, resolved) => resolved,
    }
}

/// Shared turns say nothing about the difference. Returns the workspace commit after the last one.
fn leave_shared_out(chosen: &mut [ComparedSide]) -> Option<CommitId> {
    let commits = |one: &ComparedSide| -> HashSet<CommitId> {
        one.turns.iter().map(|turn| turn.commit).collect()
    };
    let shared = chosen.iter().map(commits).reduce(|mut all, next| {
        all.retain(|commit| next.contains(commit));
        all
    });
    let shared = shared.unwrap_or_default();

    // Comparing a session with itself would leave nothing. A turn that is named explicitly always
    // counts.
    let is_own = |one: &ComparedSide| one.turns.len() > shared.len();
    if !chosen.iter().all(|one| one.is_session) || !chosen.iter().any(is_own) {
        return None;
    }

    let newest = chosen.first()?.turns.iter();
    let newest = newest.filter(|turn| shared.contains(&turn.commit));
    let base = newest
        .filter_map(|turn| turn.meta.workspace.as_ref())
        .next();
    let base = base.map(|workspace| workspace.after);

    for one in chosen {
        one.own = one.turns.len() - shared.len();
    }

    base
}

/// Without the user's own edits, in the files that all sides come from if there are such.
fn measure(
    project: &Project,
    chosen: &ComparedSide,
    base: Option<CommitId>,
) -> anyhow::Result<Side> {
    let repository = &project.repository;
    let tree = |commit| repository.commit(commit).map(|commit| commit.tree);
    let (turn, workspace) = last(chosen)?;
    let (base, after) = (base.map(tree).transpose()?, tree(workspace.after)?);
    let changes = match chosen.is_session {
        // As `log` and `diff` show it.
        false => changes_of(repository, workspace.change())?,
        true => match sum(
            repository,
            base,
            chosen.own().iter().rev(),
            LastTurn::AsItRan,
        )? {
            Some(sum) => diff::changes(repository, sum.before, sum.after)?,
            None => Vec::new(),
        },
    };
    let (added, removed) = count_lines(repository, &changes)?.unzip();
    let own = chosen.own();
    let (tokens_in, tokens_out) = summary::tokens(own).unzip();
    let asked = own.iter().filter(|turn| turn.meta.model.is_some());
    let costs: Option<Vec<f64>> = asked.map(summary::turn_cost).collect();
    let times: Vec<f64> = own.iter().filter_map(seconds).collect();
    Ok(Side {
        name: chosen.name.clone(),
        commit: turn.commit,
        status: turn.meta.status,
        models: summary::models(own),
        turns: own.iter().filter(|turn| turn.number() > 0).count(),
        files: changes.len(),
        added,
        removed,
        tokens_in,
        tokens_out,
        cost: costs
            .filter(|costs| !costs.is_empty())
            .map(|costs| costs.iter().sum()),
        seconds: (!times.is_empty()).then(|| times.iter().sum()),
        tree: after,
        check: None,
    })
}

/// Added and removed lines. One unknown file makes the sum unknown.
fn count_lines(
    repository: &Repository,
    changes: &[TreeChange],
) -> anyhow::Result<Option<(usize, usize)>> {
    let mut lines = Some((0, 0));
    for change in changes {
        let counted = summary::lines(repository, change)?;
        lines = lines
            .zip(counted)
            .map(|(sum, one)| (sum.0 + one.0, sum.1 + one.1));
    }
    Ok(lines)
}

fn last(chosen: &ComparedSide) -> anyhow::Result<(&Turn, &Workspace)> {
    let mut turns = chosen.turns.iter();
    let newest = turns.find_map(|turn| Some((turn, turn.meta.workspace.as_ref()?)));
    if newest.is_none() && chosen.turns.iter().any(|turn| turn.without_code) {
        return Err(error_with_hint(
            format!("the files of `{}` were not pushed", chosen.name),
            "`teddy push --code` on the other side sends them",
        ));
    }
    newest.with_context(|| format!("`{}` has no files: no plan has run in it", chosen.name))
}

fn seconds(turn: &Turn) -> Option<f64> {
    let time = |text: &Option<String>| text.as_ref()?.parse::<jiff::Timestamp>().ok();
    let (started, ended) = (time(&turn.meta.started)?, time(&turn.meta.ended)?);
    Some(ended.duration_since(started).as_secs_f64())
}

fn rounded(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e3).round() / 1e3
}
