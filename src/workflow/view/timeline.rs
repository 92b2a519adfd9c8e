//! The sessions of a repository with their turns, and where they branch off from each other.
//!
//! A session that cannot be read hides no other: its lane says why, and has what could be read.

use serde::Serialize;

use crate::git::object::CommitId;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::workflow::log::walk::{WalkedRows, walk};
use crate::workflow::log::{self, LogRow};
use crate::workflow::project::Project;

/// Sessions with their turns.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Timeline {
    /// The sessions: the one in use first, then the one that changed last first.
    pub sessions: Vec<SessionLane>,
}

/// A session with the turns that were made in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionLane {
    /// Its name.
    pub name: SessionName,
    /// Whether it is the one in use here.
    pub in_use: bool,
    /// The session that it branched off from, and the last turn that both share.
    pub parent: Option<(SessionName, u64)>,
    /// Its own turns, newest first: those that it shares are in the lane of its parent.
    pub rows: Vec<LogRow>,
    /// Why not all of it can be read.
    pub ailing: Option<String>,
}

impl SessionLane {
    /// Returns how many turns it has, without the start of the session.
    pub fn turns(&self) -> usize {
        self.rows.iter().filter(|row| row.number > 0).count()
    }
}

/// What the sessions were at a moment: while it stays the same, so does the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineMark {
    /// The session in use.
    in_use: Option<SessionName>,
    /// The newest turns.
    tips: Vec<(SessionName, CommitId)>,
}

/// Returns what the sessions are now; this reads their refs, and nothing else.
///
/// # Errors
/// The refs cannot be listed, or the repository is gone.
pub fn mark(project: &Project, only: Option<&SessionName>) -> anyhow::Result<TimelineMark> {
    // A folder that is gone has no refs, which would look like a repository without sessions.
    let folder = project.repository.common_dir();
    anyhow::ensure!(folder.is_dir(), "`{}` is gone", folder.display());
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

/// Returns all sessions with their turns, or one of them.
///
/// # Errors
/// The one that is asked for is not there, or the refs cannot be listed.
pub fn timeline(project: &Project, only: Option<&SessionName>) -> anyhow::Result<Timeline> {
    let whole = |name: &SessionName| match log::rows(project, name) {
        Ok(rows) => WalkedRows { rows, ailing: None },
        // What is damaged is passed over, turn by turn.
        Err(error) => {
            let walked = walk(project, name, usize::MAX);
            let ailing = walked.ailing.or_else(|| Some(format!("{error:#}")));
            WalkedRows { ailing, ..walked }
        }
    };
    lanes(project, only, &whole)
}

/// As [`timeline`], with at most so many of the newest turns of each session: for what is to be
/// seen at once, however long the sessions are.
///
/// # Errors
/// As for [`timeline`].
pub fn newest(
    project: &Project,
    only: Option<&SessionName>,
    most: usize,
) -> anyhow::Result<Timeline> {
    lanes(project, only, &|name| walk(project, name, most))
}

/// Makes the lanes, each of the rows that `rows` reads.
fn lanes(
    project: &Project,
    only: Option<&SessionName>,
    rows: &dyn Fn(&SessionName) -> WalkedRows,
) -> anyhow::Result<Timeline> {
    let all = project.store().sessions()?;
    let names: Vec<SessionName> = match only {
        Some(only) => {
            project.store().tip_id(only)?;
            vec![only.clone()]
        }
        None => all.iter().map(|(name, _)| name.clone()).collect(),
    };

    let in_use = project.session().ok();
    let exists = |name: &SessionName| all.iter().any(|(other, _)| other == name);
    let lane = |name: SessionName| {
        let WalkedRows { mut rows, ailing } = rows(&name);
        let changed = rows.first().and_then(|row| row.time.clone());
        let parent = parent(project, &name, &rows).filter(|(parent, _)| exists(parent));
        if let Some((_, number)) = &parent {
            rows.retain(|row| row.number > *number);
        }
        let lane = SessionLane {
            in_use: in_use.as_ref() == Some(&name),
            parent,
            rows,
            ailing,
            name,
        };
        (changed, lane)
    };

    let mut lanes: Vec<(Option<String>, SessionLane)> = names.into_iter().map(lane).collect();
    lanes.sort_by(|(one, a), (other, b)| (b.in_use, other).cmp(&(a.in_use, one)));
    let sessions = lanes.into_iter().map(|(_, lane)| lane).collect();
    Ok(Timeline { sessions })
}

/// Returns where a session branched off: the newest of its turns that was recorded in another one.
fn parent(project: &Project, session: &SessionName, rows: &[LogRow]) -> Option<(SessionName, u64)> {
    let recorded_in = |row: &LogRow| {
        let turn = Turn::read(&project.repository, session, row.commit).ok()?;
        turn.recorded_session(&project.repository).ok()
    };
    let is_own = |row: &LogRow| recorded_in(row).is_none_or(|name| name == session.own());
    // Most sessions began on their own: then one turn is read.
    if rows.last().is_none_or(is_own) {
        return None;
    }

    let shared = rows.get(rows.partition_point(is_own))?;
    Some((recorded_in(shared)?, shared.number))
}
