//! `sign`: signs a session with the user's key.

use std::path::PathBuf;

use serde::Serialize;

use crate::git::keep::protect;
use crate::git::object::CommitId;
use crate::git::object::id::TagId;
use crate::git::refs::signed;
use crate::git::repository::Repository;
use crate::git::sign::make::{self, Passphrase, TagRequest};
use crate::host::fault;
use crate::session::name::SessionName;
use crate::session::signature::tag_name;
use crate::session::turn::Turn;
use crate::workflow::project::Project;
use crate::workflow::user::User;

/// A signed session.
#[derive(Debug, Clone, Serialize)]
pub struct SignedSession {
    /// Session name.
    pub session: SessionName,
    /// The newest turn. The signature covers it and all turns before.
    pub turn: u64,
    /// Its commit.
    pub commit: CommitId,
    /// The signed tag.
    pub tag: TagId,
    /// The ref that points at the tag.
    #[serde(rename = "ref")]
    pub reference: String,
}

/// Directory for scratch repositories in which git signs. While no process is signing, its contents
/// are leftovers of killed ones.
pub fn signing_dir(repository: &Repository) -> PathBuf {
    repository.teddy_dir().join("signing")
}

/// Signs the newest turn of a session. No turn can be added meanwhile, because the session is
/// locked.
pub fn sign_session(
    project: &Project,
    session: &SessionName,
    passphrase: Passphrase,
    user: &mut dyn User,
) -> anyhow::Result<SignedSession> {
    let repository = &project.repository;
    let _session_lock = project.lock_session(session, "sign")?;
    // Recover first: it can complete a turn. The repository is not locked while the user enters a
    // passphrase.
    drop(project.enter("sign", user)?);
    let tip = project.store().tip(session)?;
    let reference = session.signed_reference();
    let before = signed::read_tag(repository, &reference)?;

    let tag_request = TagRequest {
        name: &tag_name(session),
        commit: tip.commit,
        message: &signature_message(&tip),
    };
    let bytes = make::sign_tag(
        repository,
        &signing_dir(repository),
        &tag_request,
        passphrase,
    )?;
    let transaction = project.enter("sign", user)?;
    let (tag, protected) = protect::protect_tag(repository, &bytes)?;

    fault::point("before-snapshot-ref")?;
    signed::move_tag_to(repository, (&reference, before), tag, "teddy: sign")?;
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
