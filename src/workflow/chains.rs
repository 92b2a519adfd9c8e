//! The turns of all sessions, as their commits alone tell: nothing of `meta.yaml` is read.

use std::collections::{HashMap, HashSet};

use crate::git::object::{Commit, CommitId, TreeId};
use crate::session::name::SessionName;
use crate::workflow::project::Project;

/// A turn, as its commit tells.
#[derive(Debug, Clone)]
pub struct ChainTurn {
    /// The session in which it was recorded; the one that leads to it if that is gone.
    pub session: SessionName,
    /// Its number: how far it is from the start of the session.
    pub number: u64,
    /// The commit.
    pub commit: CommitId,
    /// The tree with the artifacts.
    pub tree: TreeId,
    /// The workspace commit after it; nothing before the first plan.
    pub workspace: Option<CommitId>,
    /// When it was recorded, seconds since 1970.
    pub seconds: i64,
}

/// The turns of sessions, newest first, each once however many sessions share it.
#[derive(Debug, Default)]
pub struct Chains {
    /// The turns.
    pub turns: Vec<ChainTurn>,
    /// The sessions whose chain cannot be read, and why.
    pub broken: Vec<(SessionName, String)>,
}

/// Reads the turns of one session, or of all.
///
/// # Errors
/// There is no such session, or the refs cannot be listed.
pub fn chains(project: &Project, only: Option<&SessionName>) -> anyhow::Result<Chains> {
    let store = project.store();
    let sessions = match only {
        Some(name) => vec![(name.clone(), store.tip_id(name)?)],
        None => store.sessions()?,
    };
    let mut known = ChainCache {
        names: sessions.iter().map(|(name, _)| name.clone()).collect(),
        numbers: HashMap::new(),
    };

    let mut chains = Chains::default();
    for (name, tip) in &sessions {
        match known.chain(project, name, *tip) {
            Ok(turns) => chains.turns.extend(turns),
            Err(error) => chains.broken.push((name.clone(), format!("{error:#}"))),
        }
    }

    // The number breaks the tie of turns that were recorded within a second.
    let newest = |turn: &ChainTurn| std::cmp::Reverse((turn.seconds, turn.number));
    chains.turns.sort_by_key(newest);
    Ok(chains)
}

/// What is known while chains are read.
struct ChainCache {
    /// The sessions.
    names: HashSet<SessionName>,
    /// The numbers of the turns that were read.
    numbers: HashMap<CommitId, u64>,
}

impl ChainCache {
    /// Reads a chain of turns back to its start, or to a turn that was read.
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

    /// Returns the session that a commit names, if it is still there.
    fn recorded_in(&self, commit: &Commit) -> Option<SessionName> {
        let mut lines = commit.message.lines().rev();
        let named = lines.find_map(|line| line.strip_prefix("Teddy-Session: "))?;
        let name = SessionName::from_ref(named.trim()).ok()?;
        self.names.contains(&name).then_some(name)
    }
}
