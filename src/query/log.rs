//! Rows of `log` and `show`. A row is computed once and cached.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::git::diff::TooDifferent;
use crate::git::history;
use crate::git::object::CommitId;
use crate::host::clock;
use crate::host::file::{read_regular, write_cache};
use crate::project::Project;
use crate::query::chains::chains;
use crate::query::paths;
use crate::session::meta::{Landed, ModelUse, Status};
use crate::session::name::SessionName;
use crate::session::publication::Delta;
use crate::session::turn::Turn;
use crate::text::path::lossy;
use crate::workspace::file_move::changes_of;
use crate::workspace::landing::LandingClaims;
use crate::workspace::stack::Stacks;
use crate::workspace::{drift, snapshot};

/// Faster to compute than to cache.
const FEW: usize = 32;

/// In bytes, for the file lists of all rows together. Fetched turns are untrusted: thousands of
/// them could each claim a million files.
const MAX_FILES_BYTES: usize = 128 << 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogRow {
    pub number: u64,
    pub turn_id: uuid::Uuid,
    pub commit: CommitId,
    pub status: Status,
    pub title: String,
    pub agent: String,
    /// Number of agents in the call chain above this one.
    pub depth: usize,
    pub model: Option<String>,
    pub tokens_in: Option<u64>,
    pub tokens_out: Option<u64>,
    /// In dollars.
    pub cost: Option<f64>,
    /// In dollars, with unused answers.
    pub spent: Option<f64>,
    pub before: Option<CommitId>,
    pub after: Option<CommitId>,
    pub files: Vec<String>,
    /// Then `files` is empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub too_many_files: bool,
    /// Fetched without its files, so `files` is empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_code: bool,
    /// Changed files to which the result was not applied because of conflicts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_brought: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<Landed>,
    /// As in the turn's metadata.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub showed_files: bool,
    /// In RFC 3339; `None` if the commit time is out of range.
    pub time: Option<String>,
}

impl LogRow {
    pub fn shown_status(&self) -> Status {
        self.status.shown(self.showed_files)
    }
}

/// Of the current session, newest first.
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

    withhold_landings(project, &session, rows.iter_mut());
    mark_unapplied(project, &tip, &mut rows)?;
    Ok(rows)
}

/// Leaves the landings that are believed. Rows come newest first. The cache keeps what the turns say,
/// because the commits can arrive later.
fn withhold_landings<'a>(
    project: &Project,
    session: &SessionName,
    rows: impl Iterator<Item = &'a mut LogRow>,
) {
    let mut claims = None;
    for row in rows {
        if let Some(claim) = row.landed.take() {
            let claims =
                claims.get_or_insert_with(|| LandingClaims::new(&project.repository, session));
            row.landed = claims.believed(row.number, row.commit, &claim);
        }
    }
}

/// Newest first. `not_brought` is not filled in.
pub fn rows(project: &Project, session: &SessionName) -> anyhow::Result<Vec<LogRow>> {
    let mut rows = whole_log(project, session, project.store().tip(session)?)?;
    rows.reverse();
    Ok(rows)
}

/// Oldest first, from the cache as far as possible.
fn whole_log(project: &Project, session: &SessionName, tip: Turn) -> anyhow::Result<Vec<LogRow>> {
    let cache = session.cache_file(&project.repository.teddy_dir(), CACHE_DIR);
    let bytes = read_regular(&cache, MAX_CACHE).unwrap_or_default();
    let mut rows = parse_rows(&bytes).unwrap_or_default();
    let mut new = NewRows::default();
    for turn in project.store().history(tip) {
        let turn = turn?;
        // Rows up to a turn are the same in every session that contains it.
        let is_other = |row: &mut LogRow| row.number >= turn.number() && row.commit != turn.commit;
        while rows.pop_if(is_other).is_some() {}
        if rows.last().is_some_and(|row| row.commit == turn.commit) {
            break;
        }
        // `NewRows::after` fills in the depth.
        let row = row_at(project, &turn, 0, &mut new.budget)?;
        new.add(&turn, row);
    }

    let is_worth_it = new.rows.len() > FEW;
    let mut rows = new.after(rows);
    if is_worth_it {
        keep_rows(&cache, &rows);
    }

    withhold_landings(project, session, rows.iter_mut().rev());
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

    /// Appends the new rows to older ones and fills in their depths.
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

    let stacks = Stacks::new(&project.repository);
    let now = || Ok(snapshot::snapshot(&project.checkout(), &[])?.tree);
    if let Some(unapplied) = drift::find_unapplied(&project.checkout(), &stacks, tip, &now)?
        && let Some(row) = rows.iter_mut().find(|row| row.number == unapplied.turn)
    {
        row.not_brought = unapplied.files;
    }

    Ok(())
}

/// Without `not_brought`.
pub fn row(project: &Project, turn: &Turn) -> anyhow::Result<LogRow> {
    let depth = nesting(project, turn)?;
    let mut row = row_at(project, turn, depth, &mut FilesBudget::default())?;
    withhold_landings(project, &turn.session, std::iter::once(&mut row));
    Ok(row)
}

fn row_at(
    project: &Project,
    turn: &Turn,
    depth: usize,
    budget: &mut FilesBudget,
) -> anyhow::Result<LogRow> {
    let files = match &turn.meta.workspace {
        Some(w) if w.before != w.after => files_of(project, w.change())?,
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

/// Needs only the commit and `meta.yaml`.
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
        without_code: turn.without_code,
        not_brought: Vec::new(),
        landed: meta.landed.clone(),
        showed_files: meta.showed_files,
        time: clock::of_seconds(turn.seconds),
    }
}

/// `None` if there are too many.
fn files_of(project: &Project, turn: Delta) -> anyhow::Result<Option<Vec<String>>> {
    match changes_of(&project.repository, turn) {
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
        caller = project
            .store()
            .caller(turn, Some(id))?
            .and_then(|calling_turn| calling_turn.caller_turn_id);
    }

    Ok(depth)
}

// Caches rows of `log`. A turn never changes, and computing its row reads a dozen objects. An
// unreadable cache, or one of another version, counts as empty.

/// Must change whenever the content of a row does.
const CACHE_SCHEMA: u32 = 3;

pub const CACHE_DIR: &str = "log";

/// In bytes. Enough for over a hundred thousand turns.
const MAX_CACHE: u64 = 256 << 20;

/// The file is not flushed, so a power cut can truncate it.
fn header_of(rows: &[u8]) -> String {
    format!("{CACHE_SCHEMA} {:08x}\n", crc32fast::hash(rows))
}

/// Oldest first. Errors are ignored.
fn keep_rows(cache: &Path, rows: &[LogRow]) {
    let lines: Result<Vec<String>, _> = rows.iter().map(serde_json::to_string).collect();
    if let Ok(lines) = lines {
        let body = lines.join("\n");
        let header = header_of(body.as_bytes());
        let _ = write_cache(cache, format!("{header}{body}").as_bytes());
    }
}

fn parse_rows(bytes: &[u8]) -> Option<Vec<LogRow>> {
    let end = bytes.iter().position(|&byte| byte == b'\n')? + 1;
    let (header, body) = bytes.split_at(end);
    if header != header_of(body).as_bytes() {
        return None;
    }

    let rows = serde_json::Deserializer::from_slice(body).into_iter();
    rows.collect::<Result<_, _>>().ok()
}

/// In a row. Below the start of a session is the user's own history.
const MAX_UNREADABLE: u32 = 16;

#[derive(Debug, Default)]
pub struct WalkedRows {
    /// Newest first.
    pub rows: Vec<LogRow>,
    /// The first error, if a turn was unreadable.
    pub error: Option<String>,
}

/// Skips damaged turns.
pub fn walk_rows(project: &Project, session: &SessionName, most: usize) -> WalkedRows {
    let (mut new, mut first_error) = (NewRows::default(), None);
    let mut note = |error: String| {
        first_error.get_or_insert(error);
    };
    let tip = project.store().tip_id(session);
    let mut next = tip.map_err(|error| note(format!("{error:#}"))).ok();
    let mut unreadable = 0;
    while let Some(id) = next
        && new.rows.len() < most
        && unreadable < MAX_UNREADABLE
    {
        match Turn::read(&project.repository, session, id) {
            Ok(turn) => {
                next = turn.previous;
                unreadable = 0;
                let row = row_at(project, &turn, 0, &mut new.budget);
                let row = row.unwrap_or_else(|error| {
                    note(format!("the files of turn {}: {error:#}", turn.number()));
                    row_without_files(&turn)
                });
                new.add(&turn, row);
            }
            Err(error) => {
                note(format!("{error:#}"));
                unreadable += 1;
                // The last readable number bounds how many turns can still follow.
                let last = new.rows.last();
                let may_follow = last.is_none_or(|(row, _)| row.number > u64::from(unreadable));
                let commit = project.repository.commit(id).ok().filter(|_| may_follow);
                next = commit.and_then(|commit| commit.parents.first().copied());
            }
        }
    }

    let mut rows = new.after(Vec::new());
    rows.reverse();
    withhold_landings(project, session, rows.iter_mut());
    WalkedRows {
        rows,
        error: first_error,
    }
}

#[derive(Debug, Clone)]
pub struct ListedTurn {
    /// The session in which it was recorded. If only one session is listed, that one.
    pub session: SessionName,
    pub row: LogRow,
}

#[derive(Debug, Clone)]
pub struct TurnRow {
    /// As git printed it.
    pub drawing: String,
    pub turn: Option<ListedTurn>,
    /// Sessions with this turn as their tip.
    pub tips: Vec<SessionName>,
}

#[derive(Debug)]
pub struct ChosenTurns {
    /// Newest first.
    pub turns: Vec<ListedTurn>,
    /// Number of turns that were fetched without their files, at any path.
    pub without_code: usize,
}

/// Returns the turns of the current session or of all. `since` is a time in git's syntax; with
/// `paths`, only turns with changes at or below one of them.
pub fn choose_turns(
    project: &Project,
    all: bool,
    since: Option<&str>,
    paths: &[String],
    most: Option<usize>,
) -> anyhow::Result<ChosenTurns> {
    let since = since
        .map(|text| history::parse_since(&project.repository, text))
        .transpose()?;
    let is_below = |file: &String| paths::is_below(file, paths);

    let is_recent = |row: &LogRow| {
        let time = row.time.as_ref();
        let seconds = time.and_then(|time| Some(time.parse::<jiff::Timestamp>().ok()?.as_second()));
        since.is_none_or(|since| seconds.is_some_and(|seconds| seconds >= since))
    };
    let mut turns = list_turns(project, all)?;
    turns.retain(|listed| is_recent(&listed.row));
    let without_code = turns.iter().filter(|turn| turn.row.without_code).count();
    if !paths.is_empty() {
        turns.retain(|listed| listed.row.files.iter().any(is_below));
    }

    turns.truncate(most.unwrap_or(usize::MAX));
    Ok(ChosenTurns {
        turns,
        without_code,
    })
}

/// The current session, or all sessions with their branches.
pub fn draw_graph(
    project: &Project,
    all: bool,
    most: Option<usize>,
) -> anyhow::Result<Vec<TurnRow>> {
    let store = project.store();
    let sessions = match all {
        true => store.sessions()?,
        false => {
            let session = project.session()?;
            let tip = store.tip_id(&session)?;
            vec![(session, tip)]
        }
    };

    if sessions.is_empty() {
        return Ok(Vec::new());
    }

    let rows: HashMap<CommitId, ListedTurn> = list_turns(project, all)?
        .into_iter()
        .map(|listed| (listed.row.commit, listed))
        .collect();
    let tips: Vec<CommitId> = sessions.iter().map(|(_, tip)| *tip).collect();
    let drawn = history::draw_graph(&project.repository, &tips, most)?;
    let node = |line: history::GraphLine| {
        let is_tip = |(_, tip): &&(SessionName, CommitId)| Some(*tip) == line.commit;
        let tips = sessions.iter().filter(is_tip);
        TurnRow {
            tips: tips.map(|(name, _)| name.clone()).collect(),
            turn: line.commit.and_then(|commit| rows.get(&commit).cloned()),
            drawing: line.drawing,
        }
    };

    Ok(drawn.into_iter().map(node).collect())
}

fn list_turns(project: &Project, all: bool) -> anyhow::Result<Vec<ListedTurn>> {
    let store = project.store();
    if !all {
        let session = project.session()?;
        let tip = store.tip(&session)?;
        let mut rows = whole_log(project, &session, tip.clone())?;
        rows.reverse();
        mark_unapplied(project, &tip, &mut rows)?;
        let listed = rows.into_iter().map(|row| ListedTurn {
            session: session.clone(),
            row,
        });

        return Ok(listed.collect());
    }

    let mut rows = HashMap::new();
    for (session, _) in store.sessions()? {
        // An unreadable session must not hide the others; `verify` reports it.
        let Ok(tip) = store.tip(&session) else {
            continue;
        };
        for row in whole_log(project, &session, tip)? {
            rows.insert(row.commit, row);
        }
    }

    let turns = chains(project, None)?.turns.into_iter();
    let listed = turns.filter_map(|turn| {
        let row = rows.remove(&turn.commit)?;
        let listed = ListedTurn {
            session: turn.session,
            row,
        };
        Some((turn.seconds, listed))
    });

    let mut listed: Vec<(i64, ListedTurn)> = listed.collect();
    // Commit times have a resolution of a second. A turn id starts with a time in milliseconds.
    listed.sort_by_key(|(seconds, listed)| Reverse((*seconds, listed.row.turn_id)));
    Ok(listed.into_iter().map(|(_, listed)| listed).collect())
}
