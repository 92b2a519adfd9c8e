//! Reads the turns of all sessions from commits alone, without parsing `meta.yaml`.
//!
//! Turns that several sessions share are read once. An unreadable chain does not hide the others.

use std::collections::HashMap;

use crate::git::object::{Commit, CommitId, TreeId};
use crate::project::Project;
use crate::session::name::SessionName;
use crate::session::turn::session_in;

/// As far as the commit tells.
#[derive(Debug, Clone)]
pub struct ChainTurn {
    /// In which it was recorded, or if that does not have it any more, through which it was found.
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
    let (mut chains, mut known) = (Chains::default(), HashMap::new());
    let mut bases: HashMap<&SessionName, Option<FoundAt>> = HashMap::new();
    let mut recorded_in = Vec::new();
    for (name, tip) in &sessions {
        let (base, commits) = match chain(project, *tip, &known) {
            Ok(chain) => chain,
            Err(error) => {
                chains.broken.push((name.clone(), format!("{error:#}")));
                continue;
            }
        };
        let first = base.map_or(0, |base| base.number + 1);
        for (number, commit) in (first..).zip(&commits) {
            known.insert(commit.id, FoundAt { name, number });
            recorded_in.push(session_in(&commit.message));
            chains.turns.push(ChainTurn {
                session: name.clone(),
                number,
                commit: commit.id,
                tree: commit.tree,
                workspace: commit.parents.get(1).copied(),
                seconds: commit.seconds,
            });
        }
        bases.insert(name, base);
    }

    // The session can be deleted or renamed, and another one have its name.
    for (turn, recorded_in) in chains.turns.iter_mut().zip(recorded_in) {
        if let Some(recorded_in) = recorded_in.filter(|name| has_turn(&bases, name, turn)) {
            turn.session = recorded_in;
        }
    }

    // Commit times have a resolution of a second; the number orders turns within one.
    let newest = |turn: &ChainTurn| std::cmp::Reverse((turn.seconds, turn.number));
    chains.turns.sort_by_key(newest);
    Ok(chains)
}

/// The session through which a turn was found, and the number of the turn.
#[derive(Clone, Copy)]
struct FoundAt<'a> {
    name: &'a SessionName,
    number: u64,
}

/// Whether a turn that was found through any session is also one of this session. `bases` are the
/// turns before those that were found through a session.
fn has_turn(
    bases: &HashMap<&SessionName, Option<FoundAt<'_>>>,
    session: &SessionName,
    turn: &ChainTurn,
) -> bool {
    let mut next = Some((session, u64::MAX));
    while let Some((name, newest)) = next {
        if *name == turn.session {
            return turn.number <= newest;
        }
        let base = bases.get(name).copied().flatten();
        next = base.map(|base| (base.name, base.number));
    }
    false
}

/// Oldest first. Begins at the start, or after a turn of an earlier chain, which is returned, too.
fn chain<'a>(
    project: &Project,
    tip: CommitId,
    known: &HashMap<CommitId, FoundAt<'a>>,
) -> anyhow::Result<(Option<FoundAt<'a>>, Vec<Commit>)> {
    let (mut commits, mut next, mut base) = (Vec::new(), Some(tip), None);
    while let Some(id) = next {
        base = known.get(&id).copied();
        if base.is_some() {
            break;
        }
        let commit = project.repository.commit(id)?;
        next = commit.parents.first().copied();
        commits.push(commit);
    }

    commits.reverse();
    Ok((base, commits))
}
