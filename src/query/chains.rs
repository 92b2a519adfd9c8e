//! Reads the turns of all sessions from commits alone, without parsing `meta.yaml`.
//!
//! Turns that several sessions share are read once. An unreadable chain does not hide the others.

use std::collections::{HashMap, HashSet};

use crate::git::object::{Commit, CommitId, TreeId};
use crate::project::Project;
use crate::session::name::SessionName;

/// As far as the commit tells.
#[derive(Debug, Clone)]
pub struct ChainTurn {
    /// In which it was recorded, or if that is gone, through which it was found.
    pub session: SessionName,
    /// Distance from the start of the session.
    pub number: u64,
    pub commit: CommitId,
    /// The artifacts.
    pub tree: TreeId,
    /// `None` before the first plan.
    pub workspace: Option<CommitId>,
    /// Since 1970.
    pub seconds: i64,
}

/// Newest first, each once.
#[derive(Debug, Default)]
pub struct Chains {
    pub turns: Vec<ChainTurn>,
    /// Unreadable sessions, with the error.
    pub broken: Vec<(SessionName, String)>,
}

pub fn chains(project: &Project, only: Option<&SessionName>) -> anyhow::Result<Chains> {
    let store = project.store();
    let sessions = match only {
        Some(name) => vec![(name.clone(), store.tip_id(name)?)],
        None => store.sessions()?,
    };
    let mut cache = ChainCache {
        names: sessions.iter().map(|(name, _)| name.clone()).collect(),
        numbers: HashMap::new(),
    };

    let mut chains = Chains::default();
    for (name, tip) in &sessions {
        match cache.chain(project, name, *tip) {
            Ok(turns) => chains.turns.extend(turns),
            Err(error) => chains.broken.push((name.clone(), format!("{error:#}"))),
        }
    }

    // Commit times have a resolution of a second; the number orders turns within one.
    let newest = |turn: &ChainTurn| std::cmp::Reverse((turn.seconds, turn.number));
    chains.turns.sort_by_key(newest);
    Ok(chains)
}

struct ChainCache {
    names: HashSet<SessionName>,
    numbers: HashMap<CommitId, u64>,
}

impl ChainCache {
    /// Ends at the start, or at a turn that an earlier chain contained.
    fn chain(
        &mut self,
        project: &Project,
        session: &SessionName,
        tip: CommitId,
    ) -> anyhow::Result<Vec<ChainTurn>> {
        let mut commits = Vec::new();
        let mut next = Some(tip);
        let mut first = 0;
        while let Some(id) = next {
            if let Some(number) = self.numbers.get(&id) {
                // The rest of the chain is known from a session that shares it.
                first = number + 1;
                break;
            }
            let commit = project.repository.commit(id)?;
            next = commit.parents.first().copied();
            commits.push(commit);
        }

        let turns = commits.into_iter().rev().zip(first..);
        let turns = turns.map(|(commit, number)| {
            self.numbers.insert(commit.id, number);
            ChainTurn {
                session: self.recorded_in(&commit).unwrap_or_else(|| session.clone()),
                number,
                commit: commit.id,
                tree: commit.tree,
                workspace: commit.parents.get(1).copied(),
                seconds: commit.seconds,
            }
        });
        Ok(turns.collect())
    }

    /// `None` if the commit names no session, or a deleted one.
    fn recorded_in(&self, commit: &Commit) -> Option<SessionName> {
        let mut lines = commit.message.lines().rev();
        let value = lines.find_map(|line| line.strip_prefix("Teddy-Session: "))?;
        let name = SessionName::from_ref(value.trim()).ok()?;
        self.names.contains(&name).then_some(name)
    }
}
