//! `push --delete`: deletes sessions on a remote. Local sessions stay.

use serde::Serialize;

use crate::git::object::CommitId;
use crate::git::remote::send::{RefUpdate, SentRef, send};
use crate::git::remote::{FetchProgress, RemoteName};
use crate::session::name::SessionName;
use crate::workflow::hinted::hinted;
use crate::workflow::project::Project;

use super::there::{There, number, references, there};

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
pub fn to_delete(
    project: &Project,
    remote: &RemoteName,
    sessions: &[SessionName],
) -> anyhow::Result<Vec<DeletedSession>> {
    let names: Vec<&SessionName> = sessions.iter().collect();
    let listed = there(&project.repository, remote, &names)?;
    let found = sessions.iter().zip(listed);
    found
        .map(|(session, there)| one(project, remote, session, &there))
        .collect()
}

fn one(
    project: &Project,
    remote: &RemoteName,
    session: &SessionName,
    there: &There,
) -> anyhow::Result<DeletedSession> {
    let ids = [there.code, there.record, there.signature];
    let named = references(session).into_iter().zip(ids);
    let updates: Vec<RefUpdate> = named
        .filter_map(|(name, id)| {
            let to = SentRef::Gone(id?.to_string());
            Some(RefUpdate { name, to })
        })
        .collect();
    if updates.is_empty() {
        return Err(hinted(
            format!("remote `{remote}` has no session `{session}`"),
            format!("`git ls-remote {remote} 'refs/teddy/*'` lists what the remote has"),
        ));
    }

    let tip: Option<CommitId> = there.code.or(there.record);
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
pub fn delete(
    project: &Project,
    remote: &RemoteName,
    sessions: &[DeletedSession],
    progress: FetchProgress,
) -> anyhow::Result<()> {
    let updates = sessions.iter().flat_map(|one| one.updates.clone());
    let updates: Vec<RefUpdate> = updates.collect();
    send(&project.repository, remote, &updates, progress)
}
