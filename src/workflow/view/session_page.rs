//! A session as somebody looks at it: its turns, and where others leave it.

use std::collections::BTreeMap;

use super::timeline::{SessionLane, timeline};
use crate::session::meta::Status;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::workflow::project::Project;

/// More restores are not looked up; each of them is a commit to read.
const MOST_RESTORES: usize = 500;

/// A session, and what leaves it.
#[derive(Debug, Clone)]
pub struct SessionPage {
    /// Its turns.
    pub lane: SessionLane,
    /// The sessions that branch off, by the turn that they share last.
    pub forks: BTreeMap<u64, Vec<SessionName>>,
    /// Where restores went, by their turn.
    pub back: BTreeMap<u64, u64>,
}

/// Gathers a session.
///
/// # Errors
/// There is no such session, or the refs cannot be listed.
pub fn session_page(project: &Project, session: &SessionName) -> anyhow::Result<SessionPage> {
    let mut found = timeline(project, Some(session))?;
    let lane = found.sessions.pop();
    let lane = lane.ok_or_else(|| anyhow::anyhow!("there is no session `{session}`"))?;
    let restores = lane
        .rows
        .iter()
        .filter(|row| row.status == Status::Restored);
    let back = restores.take(MOST_RESTORES).filter_map(|row| {
        let turn = Turn::read(&project.repository, session, row.commit).ok()?;
        Some((row.number, turn.meta.restored?.turn))
    });

    Ok(SessionPage {
        back: back.collect(),
        forks: forks(project, session)?,
        lane,
    })
}

/// Returns the sessions that branch off from one.
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
