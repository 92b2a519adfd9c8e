//! Data of a session page: its turns, and where other sessions branch off.

use std::collections::BTreeMap;

use super::timeline::{SessionLane, timeline};
use crate::session::meta::Status;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::workflow::project::Project;

/// Each costs one commit.
const MAX_RESTORES: usize = 500;

/// Data of a session page.
#[derive(Debug, Clone)]
pub struct SessionPage {
    /// The session with its turns.
    pub lane: SessionLane,
    /// Sessions that branch off, by the last shared turn.
    pub forks: BTreeMap<u64, Vec<SessionName>>,
    /// Targets of restores, by turn.
    pub back: BTreeMap<u64, u64>,
}

/// Reads a session page.
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
        Some((row.number, turn.meta.restored?.turn))
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
