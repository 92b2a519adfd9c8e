//! Reads the turns of all sessions from commits alone, without parsing `meta.yaml`.
//!
//! Turns that several sessions share are read once. An unreadable chain does not hide the others.

use std::collections::{HashMap, HashSet};

use crate::git::object::{Commit, CommitId, TreeId};
use crate::project::Project;
use crate::session::name::SessionName;
use crate::session::turn::session_in;

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
    let names: HashSet<&SessionName> = sessions.iter().map(|(name, _)| name).collect();
    let (mut chains, mut known) = (Chains::default(), HashMap::new());
    for (name, tip) in &sessions {
        match chain(project, *tip, &known) {
            Ok(commits) => chains
                .turns
                .extend(commits.into_iter().map(|(number, commit)| {
                    known.insert(commit.id, number);
                    // The session can be deleted.
                    let recorded_in = session_in(&commit.message).filter(|it| names.contains(it));
                    ChainTurn {
                        session: recorded_in.unwrap_or_else(|| name.clone()),
                        number,
                        commit: commit.id,
                        tree: commit.tree,
                        workspace: commit.parents.get(1).copied(),
                        seconds: commit.seconds,
                    }
                })),
            Err(error) => chains.broken.push((name.clone(), format!("{error:#}"))),
        }
    }

    // Commit times have a resolution of a second; the number orders turns within one.
    let newest = |turn: &ChainTurn| std::cmp::Reverse((turn.seconds, turn.number));
    chains.turns.sort_by_key(newest);
    Ok(chains)
}

/// Oldest first, with their numbers. Begins at the start, or after a turn of an earlier chain.
fn chain(
    project: &Project,
    tip: CommitId,
    known: &HashMap<CommitId, u64>,
) -> anyhow::Result<Vec<(u64, Commit)>> {
    let (mut commits, mut next, mut first) = (Vec::new(), Some(tip), 0);
    while let Some(id) = next {
        if let Some(number) = known.get(&id) {
            first = number + 1;
            break;
        }
        let commit = project.repository.commit(id)?;
        next = commit.parents.first().copied();
        commits.push(commit);
    }

    Ok((first..).zip(commits.into_iter().rev()).collect())
}
