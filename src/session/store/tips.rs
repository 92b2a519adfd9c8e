//! The newest turns of many sessions, as far as their commits alone say: to read what else a turn
//! is made of takes five times as long.

use std::cmp::Reverse;

use super::Store;
use crate::git::object::{Commit, CommitId};
use crate::git::repository::Repository;
use crate::git::spread::spread;
use crate::session::name::SessionName;
use crate::session::turn::Turn;

/// What the commit of a session's newest turn says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTip {
    /// The session.
    pub session: SessionName,
    /// The commit.
    pub commit: CommitId,
    /// The number of the turn.
    pub number: u64,
    /// The subject.
    pub title: String,
    /// When it was recorded, seconds since 1970.
    pub seconds: i64,
    /// Of a session of a remote: whether it came with its files.
    pub code: Option<bool>,
}

impl Store<'_> {
    /// Returns what the commits of these sessions say, the one that changed last first. A ref that
    /// holds no turn comes from elsewhere; it does not hide the others.
    ///
    /// # Errors
    /// Where the repository cannot be opened once more.
    pub fn newest(
        &self,
        sessions: Vec<(SessionName, CommitId)>,
    ) -> anyhow::Result<Vec<SessionTip>> {
        let parts = spread(self.repository, sessions, |repository, _, part| {
            let tips = part
                .into_iter()
                .filter_map(|(session, id)| tip(repository, session, id));
            Ok(tips.collect::<Vec<_>>())
        })?;
        let mut tips: Vec<SessionTip> = parts.into_iter().flatten().collect();
        tips.sort_by_key(|tip| Reverse(tip.seconds));
        Ok(tips)
    }
}

/// Reads the commit of a session's newest turn.
fn tip(repository: &Repository, session: SessionName, id: CommitId) -> Option<SessionTip> {
    let commit = repository.commit(id).ok()?;
    let number = match number(&commit) {
        Some(number) => number,
        // Without trailers it may be a turn all the same, or none at all.
        None => Turn::read(repository, &session, id).ok()?.number(),
    };
    let code = match session.remote() {
        None => None,
        // The second parent of a turn is the files after it.
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

/// Returns the number of a turn, if its commit says it. Commits of code and landed ones say it too,
/// but have no status.
fn number(commit: &Commit) -> Option<u64> {
    let lines = commit.message.trim_end().lines().rev();
    let trailers: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let value = |key: &str| {
        let mut found = trailers.iter().filter_map(|line| line.strip_prefix(key));
        found.next()
    };
    value("Teddy-Status: ")?;
    value("Teddy-Turn: ")?.parse().ok()
}
