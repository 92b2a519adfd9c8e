//! Reads what a remote has of a session.

use std::collections::HashMap;

use crate::git::object::CommitId;
use crate::git::object::batch::read_author;
use crate::git::remote::transfer::{WantedRef, receive_refs};
use crate::git::remote::{self, FetchProgress, RemoteName};
use crate::git::repository::Repository;
use crate::project::Project;
use crate::session::bare::bare_reference;
use crate::session::name::SessionName;
use crate::session::turn::Turn;

use super::error::TheirTurn;

const MOST: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemoteState {
    /// With its code.
    pub code: Option<CommitId>,
    pub bare: Option<CommitId>,
    pub signature: Option<CommitId>,
}

/// In one request.
pub fn read_remote_states(
    repository: &Repository,
    remote: &RemoteName,
    names: &[&SessionName],
) -> anyhow::Result<Vec<RemoteState>> {
    let requested: Vec<String> = names.iter().flat_map(|name| references(name)).collect();
    let prefixes: Vec<&str> = requested.iter().map(String::as_str).collect();
    let listed = remote::list_to_push(repository, remote, &prefixes)?;
    let targets: HashMap<&str, CommitId> = listed
        .iter()
        .map(|listed| (listed.name.as_str(), listed.target))
        .collect();

    let of = |name: &&SessionName| {
        let [code, bare, signature] =
            references(name).map(|name| targets.get(name.as_str()).copied());
        RemoteState {
            code,
            bare,
            signature,
        }
    };
    Ok(names.iter().map(of).collect())
}

pub fn references(name: &SessionName) -> [String; 3] {
    [
        name.reference(),
        bare_reference(name),
        name.signed_reference(),
    ]
}

/// Returns the remote's turns that are not ours, newest first, empty if they cannot be read. `None` if
/// they continue ours. `own` lists our commits, oldest first. Fetches unknown turns temporarily.
pub fn find_diverged(
    project: &Project,
    remote: &RemoteName,
    reference: &str,
    tip: CommitId,
    own: &[CommitId],
) -> Option<Vec<TheirTurn>> {
    let repository = &project.repository;
    if repository.has(tip) {
        return walk(repository, tip, own);
    }

    // If they cannot be fetched, the caller still learns that the remote has other turns.
    let requested = [WantedRef::One(reference)];
    let received = receive_refs(repository, remote, &requested, FetchProgress::Hidden);
    let turns = walk(repository, tip, own);
    drop(received);
    turns
}

fn walk(repository: &Repository, tip: CommitId, own: &[CommitId]) -> Option<Vec<TheirTurn>> {
    let (mut turns, mut next) = (Vec::new(), Some(tip));
    while let Some(id) = next.filter(|id| !own.contains(id)) {
        let Ok(commit) = repository.commit(id) else {
            break;
        };
        if turns.len() == MOST {
            break;
        }

        turns.push(TheirTurn {
            number: number(repository, id),
            title: commit.subject().to_owned(),
            author: read_author(repository, id).unwrap_or_default(),
        });
        next = commit.parents.first().copied();
    }

    let is_ahead = next.is_some() && next == own.last().copied();
    (!is_ahead).then_some(turns)
}

/// `None` if the turn is unreadable.
pub fn number(repository: &Repository, id: CommitId) -> Option<u64> {
    let nobody = SessionName::from_title("turn");
    let turn = Turn::read(repository, &nobody, id).ok()?;
    Some(turn.number())
}
