//! Rows of `log` and `show`. A row is computed once and cached.

pub mod choose;
mod log_cache;
pub mod walk;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::log_cache::LogCache;
use crate::git::diff::{self, TooDifferent};
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::host::clock;
use crate::session::meta::{Landed, ModelUse, Status};
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::path::lossy;
use crate::workflow::model::agents;
use crate::workflow::project::Project;
use crate::workspace::complete;
use crate::workspace::drift;
use crate::workspace::snapshot;

/// Up to this many rows are faster to compute than to cache.
const FEW: usize = 32;
/// Limit for the file lists of all rows together. Fetched turns are untrusted: thousands of them
/// could each claim a million files.
const MAX_FILES_BYTES: usize = 128 << 20;

/// A turn in `log`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogRow {
    /// Turn number.
    pub number: u64,
    /// Turn id.
    pub turn_id: uuid::Uuid,
    /// Its commit.
    pub commit: CommitId,
    /// How it ended.
    pub status: Status,
    /// Its title.
    pub title: String,
    /// Its agent.
    pub agent: String,
    /// Number of agents in the call chain above this one.
    pub depth: usize,
    /// The requested model.
    pub model: Option<String>,
    /// Input tokens.
    pub tokens_in: Option<u64>,
    /// Output tokens.
    pub tokens_out: Option<u64>,
    /// Cost in dollars.
    pub cost: Option<f64>,
    /// Cost of all requests of the turn in dollars, including unused answers.
    pub spent: Option<f64>,
    /// Workspace commit before.
    pub before: Option<CommitId>,
    /// Workspace commit after.
    pub after: Option<CommitId>,
    /// Changed files.
    pub files: Vec<String>,
    /// There are too many changed files to list, so `files` is empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub too_many_files: bool,
    /// Changed files to which the result was not applied because of conflicts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_brought: Vec<String>,
    /// For a landing: its commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<Landed>,
    /// Commit time, RFC 3339; `None` if it is out of range.
    pub time: Option<String>,
}

/// Lists turns of the current session, newest first.
pub fn log(project: &Project, most: usize) -> anyhow::Result<Vec<LogRow>> {
    let session = project.session()?;
    let tip = project.store().tip(&session)?;
    let mut rows = if most <= FEW {
        let turns = project.store().history(tip.clone()).take(most);
        let mut budget = FilesBudget::default();
        turns
            .map(|turn| {
                let turn = turn?;
                row_at(project, &turn, nesting(project, &turn)?, &mut budget)
            })
            .collect::<anyhow::Result<Vec<LogRow>>>()?
    } else {
        let mut rows = whole_log(project, &session, tip.clone())?;
        rows.reverse();
        rows.truncate(most);
        rows
    };

    mark_unapplied(project, &tip, &mut rows)?;
    Ok(rows)
}

/// All turns of a session, newest first. `not_brought` is not filled in.
pub fn rows(project: &Project, session: &SessionName) -> anyhow::Result<Vec<LogRow>> {
    let mut rows = whole_log(project, session, project.store().tip(session)?)?;
    rows.reverse();
    Ok(rows)
}

/// Deletes the cached rows of a session.
pub fn forget_log(repository: &Repository, session: &SessionName) {
    let _ = std::fs::remove_file(log_cache::cache_path(repository, session));
}

/// Rows for all turns up to `tip`, oldest first, from the cache as far as possible.
fn whole_log(project: &Project, session: &SessionName, tip: Turn) -> anyhow::Result<Vec<LogRow>> {
    let mut cache = LogCache::read(&project.repository, session);
    let (mut new, mut met) = (NewRows::default(), None);
    for turn in project.store().history(tip) {
        let turn = turn?;
        if cache.has(turn.commit) {
            met = Some(turn.commit);
            break;
        }
        // `NewRows::after` fills in the depth.
        let row = row_at(project, &turn, 0, &mut new.budget)?;
        new.add(&turn, row);
    }

    let rows = cache.take_up_to(met);
    let is_worth_it = new.rows.len() > FEW;
    let rows = new.after(rows);
    if is_worth_it {
        cache.keep(&rows);
    }

    Ok(rows)
}

#[derive(Default)]
struct NewRows {
    /// Newest first, each with its caller.
    rows: Vec<(LogRow, Option<Uuid>)>,
    budget: FilesBudget,
}

impl NewRows {
    fn add(&mut self, turn: &Turn, row: LogRow) {
        self.rows.push((row, turn.meta.caller_turn_id));
    }

    /// Appends the new rows, in order, to older ones and fills in their depths.
    fn after(self, mut rows: Vec<LogRow>) -> Vec<LogRow> {
        // Callers are identified by turn id. If an id occurs twice, the nearest earlier turn
        // counts.
        let depths = rows.iter().map(|row| (row.turn_id, row.depth));
        let mut depths: HashMap<Uuid, usize> = depths.collect();
        for (row, caller) in self.rows.into_iter().rev() {
            let depth = caller.map_or(0, |id| 1 + depths.get(&id).copied().unwrap_or(0));
            depths.insert(row.turn_id, depth);
            rows.push(LogRow { depth, ..row });
        }
        rows
    }
}

struct FilesBudget(usize);

impl Default for FilesBudget {
    fn default() -> FilesBudget {
        FilesBudget(MAX_FILES_BYTES)
    }
}

impl FilesBudget {
    /// `None` if the budget is exhausted.
    fn take(&mut self, files: Vec<String>) -> Option<Vec<String>> {
        let bytes = files.iter().map(|path| path.len() + size_of::<String>());
        self.0 = self.0.checked_sub(bytes.sum())?;
        Some(files)
    }
}

/// The row of a single turn.
pub fn one_row(project: &Project, turn: &Turn) -> anyhow::Result<LogRow> {
    let mut row = [row(project, turn)?];
    mark_unapplied(project, &project.store().tip(&turn.session)?, &mut row)?;
    let [row] = row;
    Ok(row)
}

fn mark_unapplied(project: &Project, tip: &Turn, rows: &mut [LogRow]) -> anyhow::Result<()> {
    if tip.session.remote().is_some() {
        return Ok(());
    }

    let stacks = complete::stacks(&project.repository);
    let now = || Ok(snapshot::snapshot(&project.checkout(), &[])?.tree);
    if let Some(unapplied) = drift::find_unapplied(&project.checkout(), &stacks, tip, &now)?
        && let Some(row) = rows.iter_mut().find(|row| row.number == unapplied.turn)
    {
        row.not_brought = unapplied.files;
    }

    Ok(())
}

/// The row of a turn, without `not_brought`.
pub fn row(project: &Project, turn: &Turn) -> anyhow::Result<LogRow> {
    let depth = nesting(project, turn)?;
    row_at(project, turn, depth, &mut FilesBudget::default())
}

fn row_at(
    project: &Project,
    turn: &Turn,
    depth: usize,
    budget: &mut FilesBudget,
) -> anyhow::Result<LogRow> {
    let files = match &turn.meta.workspace {
        Some(w) if w.before != w.after => files_between(project, w.before, w.after)?,
        _ => Some(Vec::new()),
    };
    let files = files.and_then(|files| budget.take(files));

    Ok(LogRow {
        depth,
        too_many_files: files.is_none(),
        files: files.unwrap_or_default(),
        ..row_without_files(turn)
    })
}

/// The part of a row that needs only the commit and `meta.yaml`.
pub fn row_without_files(turn: &Turn) -> LogRow {
    let (meta, model) = (&turn.meta, turn.meta.model.as_ref());
    let tokens = model.and_then(ModelUse::tokens);
    let workspace = meta.workspace.as_ref();
    LogRow {
        number: meta.number,
        turn_id: meta.turn_id,
        commit: turn.commit,
        status: meta.status,
        title: turn.title.clone(),
        agent: meta.agent.clone(),
        depth: 0,
        model: model.map(|m| m.asked.clone()),
        tokens_in: tokens.map(|(read, _)| read),
        tokens_out: tokens.map(|(_, written)| written),
        cost: model.and_then(|m| m.cost),
        spent: meta.spent,
        before: workspace.map(|w| w.before),
        after: workspace.map(|w| w.after),
        files: Vec::new(),
        too_many_files: false,
        not_brought: Vec::new(),
        landed: meta.landed.clone(),
        time: clock::of_seconds(turn.seconds),
    }
}

/// `None` if there are too many.
fn files_between(
    project: &Project,
    before: CommitId,
    after: CommitId,
) -> anyhow::Result<Option<Vec<String>>> {
    let changes = diff::changes(
        &project.repository,
        project.repository.commit(before)?.tree,
        project.repository.commit(after)?.tree,
    );
    match changes {
        Ok(changes) => Ok(Some(changes.iter().map(|it| lossy(&it.path)).collect())),
        Err(error) if error.is::<TooDifferent>() => Ok(None),
        Err(error) => Err(error),
    }
}

fn nesting(project: &Project, turn: &Turn) -> anyhow::Result<usize> {
    let (mut depth, mut caller) = (0, turn.meta.caller_turn_id);
    // A fetched turn can claim to be its own caller.
    let mut visited = std::collections::BTreeSet::new();
    while let Some(id) = caller.filter(|id| visited.insert(*id)) {
        depth += 1;
        caller = agents::caller(project, turn, Some(id))?
            .and_then(|calling_turn| calling_turn.caller_turn_id);
    }

    Ok(depth)
}
