//! Selects the turns that `log` lists: by session, time and path.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{LogRow, mark_unapplied, whole_log};
use crate::git::history;
use crate::git::object::CommitId;
use crate::session::name::SessionName;
use crate::workflow::chains::chains;
use crate::workflow::paths;
use crate::workflow::project::Project;

/// Selection of turns.
#[derive(Debug, Clone, Default)]
pub struct LogFilter {
    /// From all sessions.
    pub all: bool,
    /// At most this many.
    pub most: Option<usize>,
    /// Only turns since this time, in git's syntax.
    pub since: Option<String>,
    /// Only turns with changes at or below one of these paths.
    pub paths: Vec<String>,
}

/// A turn with its session.
#[derive(Debug, Clone)]
pub struct ListedTurn {
    /// The session in which it was recorded. If only one session is listed, that one.
    pub session: SessionName,
    /// The turn.
    pub row: LogRow,
}

/// A line of the graph.
#[derive(Debug, Clone)]
pub struct TurnRow {
    /// The graph characters that git printed.
    pub drawing: String,
    /// The turn on this line.
    pub turn: Option<ListedTurn>,
    /// Sessions with this turn as their tip.
    pub tips: Vec<SessionName>,
}

/// Lists turns, newest first.
pub fn choose_turns(project: &Project, choice: &LogFilter) -> anyhow::Result<Vec<ListedTurn>> {
    let since = choice.since.as_ref();
    let since = since
        .map(|text| history::parse_since(&project.repository, text))
        .transpose()?;
    let is_below = |file: &String| paths::is_below(file, &choice.paths);

    let is_recent = |row: &LogRow| {
        let time = row.time.as_ref();
        let seconds = time.and_then(|time| Some(time.parse::<jiff::Timestamp>().ok()?.as_second()));
        since.is_none_or(|since| seconds.is_some_and(|seconds| seconds >= since))
    };
    let mut listed = list_turns(project, choice.all)?;
    listed.retain(|listed| {
        let row = &listed.row;
        let is_wanted = choice.paths.is_empty() || row.files.iter().any(is_below);
        is_wanted && is_recent(row)
    });

    listed.truncate(choice.most.unwrap_or(usize::MAX));
    Ok(listed)
}

/// Draws the current session, or all sessions with their branches.
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
