//! `push --delete`: deletes sessions on a remote. Local sessions stay.

use serde::Serialize;

use crate::git::object::CommitId;
use crate::git::remote::send::{RefUpdate, SentRef, send_refs};
use crate::git::remote::{FetchProgress, RemoteName};
use crate::session::name::SessionName;
use crate::workflow::hint::error_with_hint;
use crate::workflow::project::Project;

use super::remote_state::{RemoteState, number, read_remote_states, references};

/// A session to delete on a remote.
#[derive(Debug, Clone, Serialize)]
pub struct DeletedSession {
    /// Session name.
    pub session: SessionName,
    /// Its refs on the remote.
    pub refs: Vec<String>,
    /// Number of its newest turn, if that exists here.
    pub turns: Option<u64>,
    /// A local session of that name exists. It stays.
    pub is_here: bool,
    #[serde(skip)]
    updates: Vec<RefUpdate>,
}

/// Returns the refs of sessions on a remote. Fails if one does not exist there.
pub fn sessions_to_delete(
    project: &Project,
    remote: &RemoteName,
    sessions: &[SessionName],
) -> anyhow::Result<Vec<DeletedSession>> {
    let names: Vec<&SessionName> = sessions.iter().collect();
    let listed = read_remote_states(&project.repository, remote, &names)?;
    let pairs = sessions.iter().zip(listed);
    pairs
        .map(|(session, remote_state)| session_to_delete(project, remote, session, &remote_state))
        .collect()
}

fn session_to_delete(
    project: &Project,
    remote: &RemoteName,
    session: &SessionName,
    remote_state: &RemoteState,
) -> anyhow::Result<DeletedSession> {
    let ids = [
        remote_state.code,
        remote_state.record,
        remote_state.signature,
    ];
    let remote_refs = references(session).into_iter().zip(ids);
    let updates: Vec<RefUpdate> = remote_refs
        .filter_map(|(name, id)| {
            let to = SentRef::Deleted(id?.to_string());
            Some(RefUpdate { name, to })
        })
        .collect();
    if updates.is_empty() {
        return Err(error_with_hint(
            format!("remote `{remote}` has no session `{session}`"),
            format!("`git ls-remote {remote} 'refs/teddy/*'` lists what the remote has"),
        ));
    }

    let tip: Option<CommitId> = remote_state.code.or(remote_state.record);
    let repository = &project.repository;
    Ok(DeletedSession {
        session: session.clone(),
        refs: updates.iter().map(|update| update.name.clone()).collect(),
        turns: tip.and_then(|tip| number(repository, tip)),
        is_here: project.store().tip_id(session).is_ok(),
        updates,
    })
}

/// Deletes the sessions. Each ref is deleted only if it still has the value that was shown.
pub fn delete_sessions(
    project: &Project,
    remote: &RemoteName,
    sessions: &[DeletedSession],
    progress: FetchProgress,
) -> anyhow::Result<()> {
    let updates = sessions.iter().flat_map(|one| one.updates.clone());
    let updates: Vec<RefUpdate> = updates.collect();
    send_refs(&project.repository, remote, &updates, progress)
}
