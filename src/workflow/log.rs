//! What `log` and `show` tell of a turn: a row for each, worked out once and remembered.

pub mod choose;
mod remembered;
pub mod walk;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::remembered::Remembered;
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

/// So few rows are worked out faster than they are remembered.
const FEW: usize = 32;
/// The files of rows that are listed together have no more bytes: each of thousands of turns from
/// elsewhere may say that it changed a million files.
const MAX_FILES_BYTES: usize = 128 << 20;

/// A turn, as `log` lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogRow {
    /// Its number.
    pub number: u64,
    /// Its id.
    pub turn_id: uuid::Uuid,
    /// Its commit.
    pub commit: CommitId,
    /// How it ended.
    pub status: Status,
    /// The subject.
    pub title: String,
    /// The agent.
    pub agent: String,
    /// How many agents have handed over to this one.
    pub depth: usize,
    /// The model that was asked.
    pub model: Option<String>,
    /// Tokens read.
    pub tokens_in: Option<u64>,
    /// Tokens written.
    pub tokens_out: Option<u64>,
    /// Dollars.
    pub cost: Option<f64>,
    /// Dollars that every call of the turn counts, answers that never ran included.
    pub spent: Option<f64>,
    /// The workspace commit before.
    pub before: Option<CommitId>,
    /// The workspace commit after.
    pub after: Option<CommitId>,
    /// The files that it changed.
    pub files: Vec<String>,
    /// Whether it changed more files than are listed, so that none are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub too_many_files: bool,
    /// Those among them in which its result is not, as it could not be brought.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_brought: Vec<String>,
    /// Of a landing: what landed where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<Landed>,
    /// When it was recorded, RFC 3339; nothing if its commit has a time that no calendar has.
    pub time: Option<String>,
}

/// Lists the turns of the session in use, newest first.
///
/// # Errors
/// Where there is no session, or the repository cannot be read.
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

    mark_not_brought(project, &tip, &mut rows)?;
    Ok(rows)
}

/// Returns every turn of a session, newest first, without what is missing in the files.
///
/// # Errors
/// There is no such session, or the repository cannot be read.
pub fn rows(project: &Project, session: &SessionName) -> anyhow::Result<Vec<LogRow>> {
    let mut rows = whole_log(project, session, project.store().tip(session)?)?;
    rows.reverse();
    Ok(rows)
}

/// Forgets what was worked out of a session's turns.
pub fn forget_log(repository: &Repository, session: &SessionName) {
    let _ = std::fs::remove_file(remembered::path(repository, session));
}

/// Returns a row for every turn up to one, the oldest first.
fn whole_log(project: &Project, session: &SessionName, tip: Turn) -> anyhow::Result<Vec<LogRow>> {
    let mut remembered = Remembered::read(&project.repository, session);
    let (mut new, mut met) = (NewRows::default(), None);
    for turn in project.store().history(tip) {
        let turn = turn?;
        if remembered.has(turn.commit) {
            met = Some(turn.commit);
            break;
        }
        let row = row_at(project, &turn, 0, &mut new.budget)?;
        new.add(&turn, row);
    }

    let rows = remembered.take_up_to(met);
    let is_worth_it = new.rows.len() > FEW;
    let rows = new.after(rows);
    if is_worth_it {
        remembered.keep(&rows);
    }

    Ok(rows)
}

/// Rows that are made from the newest turn on; nothing else of a turn is kept meanwhile.
#[derive(Default)]
struct NewRows {
    /// The rows, newest first, and who called each.
    rows: Vec<(LogRow, Option<Uuid>)>,
    /// What their files can take.
    budget: FilesBudget,
}

impl NewRows {
    /// Adds the row of a turn.
    fn add(&mut self, turn: &Turn, row: LogRow) {
        self.rows.push((row, turn.meta.caller_turn_id));
    }

    /// Returns rows, the oldest first, with these behind them.
    fn after(self, mut rows: Vec<LogRow>) -> Vec<LogRow> {
        // A turn names its caller by an id, and the newest turn before it that has the id is meant.
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

/// How many bytes the files of rows can still take.
struct FilesBudget(usize);

impl Default for FilesBudget {
    fn default() -> FilesBudget {
        FilesBudget(MAX_FILES_BYTES)
    }
}

impl FilesBudget {
    /// Returns the files, if there is room for them.
    fn take(&mut self, files: Vec<String>) -> Option<Vec<String>> {
        let bytes = files.iter().map(|path| path.len() + size_of::<String>());
        self.0 = self.0.checked_sub(bytes.sum())?;
        Some(files)
    }
}

/// Returns a single turn as a row.
///
/// # Errors
/// Where the repository cannot be read.
pub fn one_row(project: &Project, turn: &Turn) -> anyhow::Result<LogRow> {
    let mut row = [row(project, turn)?];
    mark_not_brought(project, &project.store().tip(&turn.session)?, &mut row)?;
    let [row] = row;
    Ok(row)
}

/// Says of the turn whose result could not be brought in which files it is not.
fn mark_not_brought(project: &Project, tip: &Turn, rows: &mut [LogRow]) -> anyhow::Result<()> {
    if tip.session.remote().is_some() {
        return Ok(());
    }

    let stacks = complete::stacks(&project.repository);
    let now = || Ok(snapshot::snapshot(&project.checkout(), &[])?.tree);
    if let Some(found) = drift::not_brought(&project.checkout(), &stacks, tip, &now)?
        && let Some(row) = rows.iter_mut().find(|row| row.number == found.turn)
    {
        row.not_brought = found.files;
    }

    Ok(())
}

/// Returns a turn as a row, without what is missing in the files.
///
/// # Errors
/// Where the repository cannot be read.
pub fn row(project: &Project, turn: &Turn) -> anyhow::Result<LogRow> {
    let depth = nesting(project, turn)?;
    row_at(project, turn, depth, &mut FilesBudget::default())
}

/// Returns a turn as a row, whose agent so many others have handed over to.
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

/// Returns what `meta.yaml` and the commit alone tell of a turn.
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

/// Returns the paths that differ between two workspace commits; nothing if they are too many.
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

/// Returns how many agents have handed over to a turn's agent.
fn nesting(project: &Project, turn: &Turn) -> anyhow::Result<usize> {
    let (mut depth, mut caller) = (0, turn.meta.caller_turn_id);
    // A turn from elsewhere may say that it called itself.
    let mut seen = std::collections::BTreeSet::new();
    while let Some(id) = caller.filter(|id| seen.insert(*id)) {
        depth += 1;
        caller = agents::caller(project, turn, Some(id))?.and_then(|found| found.caller_turn_id);
    }

    Ok(depth)
}
