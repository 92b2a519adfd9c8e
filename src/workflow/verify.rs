//! `verify`: checks that sessions are well-formed and complete, and checks their signatures.
//!
//! Read-only, except for [`sign_session`], which adds a tag.

use std::path::PathBuf;

use serde::Serialize;

use crate::git::check_objects::find_damaged;
use crate::git::keep::protect;
use crate::git::keep::store_access::{self, ReadExtent};
use crate::git::object::CommitId;
use crate::git::object::id::TagId;
use crate::git::refs;
use crate::git::repository::Repository;
use crate::git::sign::{self, Passphrase, TagRequest};
use crate::host::fault;
use crate::project::Project;
use crate::session::name::SessionName;
use crate::session::signature::{self, SessionSignature, tag_name};
use crate::session::turn::Turn;
use crate::session::verify::{Checked, CheckedTurn, Fault, check};
use crate::workflow::open_session::EnteredSession;
use crate::workflow::user::User;

#[derive(Debug, Clone, Serialize)]
pub struct Verified {
    pub session: SessionName,
    pub turns: usize,
    pub signature: Option<SessionSignature>,
    pub faults: Vec<Fault>,
}

/// All if none is given.
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

    if !faults.is_empty() {
        // A file that cannot be read is no fault of the session.
        store_access::ensure_readable(&project.repository, ReadExtent::Start)?;
    }
    let signature = signature::verify(&project.repository, &session, tip, &turns, &mut faults)?;
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

#[derive(Debug, Clone, Serialize)]
pub struct SignedSession {
    pub session: SessionName,
    /// The signature covers it and all turns before.
    pub turn: u64,
    pub commit: CommitId,
    pub tag: TagId,
    #[serde(rename = "ref")]
    pub reference: String,
}

/// While no process is signing, its contents are leftovers of killed ones.
pub fn signing_dir(repository: &Repository) -> PathBuf {
    repository.teddy_dir().join("signing")
}

/// The session is locked, so that no turn is added meanwhile.
pub fn sign_session(
    project: &Project,
    session: &SessionName,
    passphrase: Passphrase,
    user: &mut dyn User,
) -> anyhow::Result<SignedSession> {
    let repository = &project.repository;
    let EnteredSession {
        tip,
        transaction,
        lock: _session_lock,
        ..
    } = EnteredSession::enter(project, session, "verify", user)?;
    // The repository is not locked while the user enters a passphrase.
    drop(transaction);
    let reference = session.signed_reference();
    let before = refs::read_tag(repository, &reference)?;

    let tag_request = TagRequest {
        name: &tag_name(session),
        commit: tip.commit,
        message: &signature_message(&tip),
    };
    let bytes = sign::sign_tag(
        repository,
        &signing_dir(repository),
        &tag_request,
        passphrase,
    )?;
    // The signature is complete. The lock is needed only for the tag and its ref.
    let transaction = project.enter("verify", user)?;
    let (tag, protected) = protect::protect_tag(repository, &bytes)?;

    fault::point("before-snapshot-ref")?;
    refs::move_tag_to(repository, &reference, before, tag, "teddy: sign")?;
    protect::release_protected(repository, &protected)?;
    drop(transaction);

    Ok(SignedSession {
        session: session.clone(),
        turn: tip.number(),
        commit: tip.commit,
        tag,
        reference,
    })
}

fn signature_message(tip: &Turn) -> String {
    let (session, number) = (&tip.session, tip.number());
    let extent = match number {
        0 => "before its first turn".to_owned(),
        1 => "turn 1".to_owned(),
        _ => format!("turns 1-{number}"),
    };
    let id = tip.meta.turn_id;

    format!("Session {session}, {extent}\n\nTeddy-Session: {session}\nTeddy-Turn: {number} {id}\n")
}
