//! `verify`: checks that sessions are well-formed and complete, and checks their signatures.

use serde::Serialize;

use crate::git::check_objects::find_damaged;
use crate::git::keep::store_access::{self, ReadExtent};
use crate::git::object::CommitId;
use crate::session::name::SessionName;
use crate::session::signature::{self, SessionSignature};
use crate::session::verify::{Checked, CheckedTurn, Fault, check};
use crate::workflow::project::Project;

/// Result for a session.
#[derive(Debug, Clone, Serialize)]
pub struct Verified {
    /// Session name.
    pub session: SessionName,
    /// Number of turns that were read.
    pub turns: usize,
    /// Its signature.
    pub signature: Option<SessionSignature>,
    /// Its faults.
    pub faults: Vec<Fault>,
}

/// Verifies sessions, or all if none is given.
pub fn verify_sessions(
    project: &Project,
    sessions: &[SessionName],
) -> anyhow::Result<Vec<Verified>> {
    let store = project.store();
    let sessions = if sessions.is_empty() {
        store.sessions()?
    } else {
        let tips = sessions
            .iter()
            .map(|name| Ok((name.clone(), store.tip_id(name)?)));
        tips.collect::<anyhow::Result<_>>()?
    };

    let verified = sessions
        .into_iter()
        .map(|(session, tip)| verify_session(project, session, tip));
    verified.collect()
}

fn verify_session(
    project: &Project,
    session: SessionName,
    tip: CommitId,
) -> anyhow::Result<Verified> {
    let Checked { turns, mut faults } = check(&project.repository, &session, tip);
    let commits: Vec<CommitId> = turns.iter().flat_map(commits_of).collect();
    for object in find_damaged(&project.repository, &commits)? {
        faults.push(Fault {
            turn: None,
            commit: tip,
            rule: "objects",
            what: format!("object {}: {}", object.id, object.why),
        });
    }

    let session_tip = (&session, tip);
    if !faults.is_empty() {
        // A file that cannot be read is no fault of the session.
        store_access::ensure_readable(&project.repository, ReadExtent::Start)?;
    }
    let signature = signature::verify(&project.repository, session_tip, &turns, &mut faults)?;
    Ok(Verified {
        session,
        turns: turns.len(),
        signature,
        faults,
    })
}

fn commits_of(turn: &CheckedTurn) -> Vec<CommitId> {
    let mut commits = vec![turn.commit];
    commits.extend(turn.code.into_iter().flatten());
    commits.extend(turn.publication);
    commits
}
