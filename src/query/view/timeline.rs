//! The sessions of a repository with their turns and branch points.
//!
//! An unreadable session does not hide the others: its lane contains the error and the readable
//! turns.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::git::history;
use crate::git::object::CommitId;
use crate::project::Project;
use crate::query::log::{self, LogRow, WalkedRows, walk_rows};
use crate::session::artifact;
use crate::session::meta::{MessageOrigin, Status};
use crate::session::name::SessionName;
use crate::session::turn::Turn;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// The current session first, then the most recently changed.
    pub sessions: Vec<SessionLane>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionLane {
    pub name: SessionName,
    /// Of this checkout.
    pub in_use: bool,
    /// First line of the user's first request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// With the last shared turn.
    pub parent: Option<(SessionName, u64)>,
    /// Newest first. Shared turns are in the lane of the parent.
    pub rows: Vec<LogRow>,
    /// Set if a part is unreadable.
    pub ailing: Option<String>,
}

impl Timeline {
    /// Returns a lane and those that it branched off from, nearest first, each with the last of its
    /// turns that the first one shares. Bounded, because parents of damaged sessions can form a cycle.
    pub fn ancestry(&self, lane: usize) -> impl Iterator<Item = (usize, u64)> {
        let parent = |(lane, last): &(usize, u64)| {
            let (name, turn) = self.sessions[*lane].parent.as_ref()?;
            let parent = self.sessions.iter().position(|lane| lane.name == *name)?;
            Some((parent, *turn.min(last)))
        };
        std::iter::successors(Some((lane, u64::MAX)), parent).take(self.sessions.len())
    }
}

impl SessionLane {
    /// Without the start of the session.
    pub fn turns(&self) -> usize {
        self.rows.iter().filter(|row| row.number > 0).count()
    }
}

/// While this is equal, so is the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineMark {
    in_use: Option<SessionName>,
    tips: Vec<(SessionName, CommitId)>,
}

/// Only reads refs.
pub fn mark(project: &Project, only: Option<&SessionName>) -> anyhow::Result<TimelineMark> {
    // A deleted directory would look like a repository without sessions.
    let dir = project.repository.common_dir();
    anyhow::ensure!(dir.is_dir(), "`{}` is gone", dir.display());
    let mut tips = project.store().sessions()?;
    if let Some(only) = only {
        tips.retain(|(name, _)| name == only);
        if only.remote().is_some() {
            tips.push((only.clone(), project.store().tip_id(only)?));
        }
    }

    Ok(TimelineMark {
        in_use: project.session().ok(),
        tips,
    })
}

pub fn timeline(project: &Project, only: Option<&SessionName>) -> anyhow::Result<Timeline> {
    let read_rows = |name: &SessionName| match log::rows(project, name) {
        Ok(rows) => WalkedRows { rows, error: None },
        // Read turn by turn, and skip damaged ones.
        Err(error) => {
            let walked = walk_rows(project, name, usize::MAX);
            let first_error = walked.error.or_else(|| Some(format!("{error:#}")));
            WalkedRows {
                error: first_error,
                ..walked
            }
        }
    };
    lanes(project, only, &read_rows)
}

/// At most `most` turns of each session, so that it is fast for long sessions.
pub fn newest(
    project: &Project,
    only: Option<&SessionName>,
    most: usize,
) -> anyhow::Result<Timeline> {
    lanes(project, only, &|name| walk_rows(project, name, most))
}

fn lanes(
    project: &Project,
    only: Option<&SessionName>,
    rows: &dyn Fn(&SessionName) -> WalkedRows,
) -> anyhow::Result<Timeline> {
    let names: Vec<SessionName> = match only {
        Some(only) => {
            project.store().tip_id(only)?;
            vec![only.clone()]
        }
        None => {
            let all = project.store().sessions()?.into_iter();
            all.map(|(name, _)| name).collect()
        }
    };

    let in_use = project.session().ok();
    let lane = |name: SessionName| {
        let WalkedRows { mut rows, error } = rows(&name);
        let changed = rows.first().and_then(|row| row.time.clone());
        let parent = parent(project, &name, &rows);
        if let Some((_, number)) = &parent {
            rows.retain(|row| row.number > *number);
        }
        let lane = SessionLane {
            request: first_request(project, &name, &rows),
            in_use: in_use.as_ref() == Some(&name),
            parent,
            rows,
            ailing: error,
            name,
        };
        (changed, lane)
    };

    let mut lanes: Vec<(Option<String>, SessionLane)> = names.into_iter().map(lane).collect();
    lanes.sort_by(|(one, a), (other, b)| (b.in_use, other).cmp(&(a.in_use, one)));
    let sessions = lanes.into_iter().map(|(_, lane)| lane).collect();
    Ok(Timeline { sessions })
}

/// The newest turn that was recorded in another session is where this one branched off.
fn parent(project: &Project, session: &SessionName, rows: &[LogRow]) -> Option<(SessionName, u64)> {
    let recorded_in = |row: &LogRow| {
        let turn = Turn::read(&project.repository, session, row.commit).ok()?;
        turn.recorded_session(&project.repository).ok()
    };
    let is_own = |row: &LogRow| recorded_in(row).is_none_or(|name| name == session.own());
    // Most sessions are not branches: one turn is enough to tell.
    if rows.last().is_none_or(is_own) {
        return None;
    }

    let shared = rows.get(rows.partition_point(is_own))?;
    let parent = recorded_in(shared)?;
    // That session can be deleted or renamed, and another one have its name.
    let tip = project.store().tip_id(&parent).ok()?;
    let is_shared = history::is_ancestor(&project.repository, shared.commit, tip);
    is_shared.ok()?.then_some((parent, shared.number))
}

/// Turns in which the first request is searched. Each costs one commit.
const MAX_UNASKED: usize = 4;

/// Of the turns that the session does not share.
fn first_request(project: &Project, session: &SessionName, rows: &[LogRow]) -> Option<String> {
    let own = rows.iter().rev().filter(|row| row.number > 0);
    own.take(MAX_UNASKED).find_map(|row| {
        let turn = Turn::read(&project.repository, session, row.commit).ok()?;
        if turn.meta.origin != MessageOrigin::User {
            return None;
        }
        let text = turn
            .text(&project.repository, artifact::USER_PROMPT)
            .ok()??;
        let mut lines = text.lines().map(str::trim);
        lines.find(|line| !line.is_empty()).map(str::to_owned)
    })
}

/// Each costs one commit.
const MAX_RESTORES: usize = 500;

#[derive(Debug, Clone)]
pub struct SessionPage {
    pub lane: SessionLane,
    /// By the last shared turn.
    pub forks: BTreeMap<u64, Vec<SessionName>>,
    /// Targets of restores, by turn.
    pub back: BTreeMap<u64, u64>,
}

pub fn session_page(project: &Project, session: &SessionName) -> anyhow::Result<SessionPage> {
    let mut timeline = timeline(project, Some(session))?;
    let lane = timeline.sessions.pop();
    let lane = lane.ok_or_else(|| anyhow::anyhow!("there is no session `{session}`"))?;
    let restores = lane
        .rows
        .iter()
        .filter(|row| row.status == Status::Restored);
    let back = restores.take(MAX_RESTORES).filter_map(|row| {
        let turn = Turn::read(&project.repository, session, row.commit).ok()?;
        let whole = turn
            .meta
            .restored
            .filter(|restored| restored.paths.is_empty());
        Some((row.number, whole?.turn))
    });

    Ok(SessionPage {
        back: back.collect(),
        forks: forks(project, session)?,
        lane,
    })
}

fn forks(
    project: &Project,
    session: &SessionName,
) -> anyhow::Result<BTreeMap<u64, Vec<SessionName>>> {
    let mut forks: BTreeMap<u64, Vec<SessionName>> = BTreeMap::new();
    for lane in timeline(project, None)?.sessions {
        if let Some((parent, number)) = lane.parent
            && parent == *session
        {
            forks.entry(number).or_default().push(lane.name);
        }
    }
    Ok(forks)
}
