//! Lists the newest turns of many sessions from their commits alone. Reading the metadata as well
//! would take five times as long.

use std::cmp::Reverse;

use super::Store;
use crate::git::object::{Commit, CommitId};
use crate::git::parallel::map_parallel;
use crate::git::repository::Repository;
use crate::session::name::SessionName;
use crate::session::turn::Turn;

/// Summary of a session's newest turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTip {
    /// The session.
    pub session: SessionName,
    /// The commit.
    pub commit: CommitId,
    /// Number of the turn.
    pub number: u64,
    /// Subject of the commit.
    pub title: String,
    /// Commit time, in seconds since 1970.
    pub seconds: i64,
    /// For a session of a remote: `true` if its workspace commits were fetched too.
    pub code: Option<bool>,
}

impl Store<'_> {
    /// Returns the summaries of these sessions, most recent first. Skips refs that do not point at
    /// a turn, which can come from elsewhere.
    pub fn newest(
        &self,
        sessions: Vec<(SessionName, CommitId)>,
    ) -> anyhow::Result<Vec<SessionTip>> {
        let parts = map_parallel(self.repository, sessions, |repository, _, part| {
            let tips = part
                .into_iter()
                .filter_map(|(session, id)| read_session_tip(repository, session, id));
            Ok(tips.collect::<Vec<_>>())
        })?;
        let mut tips: Vec<SessionTip> = parts.into_iter().flatten().collect();
        tips.sort_by_key(|tip| Reverse(tip.seconds));
        Ok(tips)
    }
}

fn read_session_tip(
    repository: &Repository,
    session: SessionName,
    id: CommitId,
) -> Option<SessionTip> {
    let commit = repository.commit(id).ok()?;
    let number = match turn_number_of(&commit) {
        Some(number) => number,
        // Without trailers, the commit can still be a turn.
        None => Turn::read(repository, &session, id).ok()?.number(),
    };
    let code = match session.remote() {
        None => None,
        // The second parent is the workspace commit.
        Some(_) if commit.parents.len() > 1 => Some(true),
        Some(_) => Some(!Turn::read(repository, &session, id).ok()?.without_code),
    };

    Some(SessionTip {
        session,
        commit: id,
        number,
        title: commit.subject().to_owned(),
        seconds: commit.seconds,
        code,
    })
}

/// Returns the turn number from the trailers. Also requires a status, because workspace commits and
/// landed commits have a `Teddy-Turn` too.
fn turn_number_of(commit: &Commit) -> Option<u64> {
    let lines = commit.message.trim_end().lines().rev();
    let trailers: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let value = |key: &str| {
        let mut values = trailers.iter().filter_map(|line| line.strip_prefix(key));
        values.next()
    };
    value("Teddy-Status: ")?;
    value("Teddy-Turn: ")?.parse().ok()
}
