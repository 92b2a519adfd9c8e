//! `sign`: the user puts their name to a session as it is.

use std::path::PathBuf;

use serde::Serialize;

use crate::git::keep::hold;
use crate::git::object::CommitId;
use crate::git::object::id::TagId;
use crate::git::refs::signed;
use crate::git::repository::Repository;
use crate::git::sign::make::{self, Passphrase, TagWanted};
use crate::host::fault;
use crate::session::name::SessionName;
use crate::session::signature::tag_name;
use crate::session::turn::Turn;
use crate::workflow::project::Project;
use crate::workflow::user::User;

/// A session that was signed.
#[derive(Debug, Clone, Serialize)]
pub struct SignedSession {
    /// The session.
    pub session: SessionName,
    /// The newest turn, which the signature covers with all before it.
    pub turn: u64,
    /// Its commit.
    pub commit: CommitId,
    /// The signed tag.
    pub tag: TagId,
    /// The ref that points at it.
    #[serde(rename = "ref")]
    pub reference: String,
}

/// Returns where the scratch repositories are in which git signs. What lies there while no process
/// of ours works is what a killed one left.
pub fn scratch_dir(repository: &Repository) -> PathBuf {
    repository.teddy_dir().join("signing")
}

/// Signs the newest turn of a session. No turn of it can begin meanwhile.
///
/// # Errors
/// There is no such session, it is in use, git makes no signature, or somebody else has signed it
/// meanwhile; nothing has changed then.
pub fn sign(
    project: &Project,
    session: &SessionName,
    passphrase: Passphrase,
    user: &mut dyn User,
) -> anyhow::Result<SignedSession> {
    let repository = &project.repository;
    let _session_lock = project.lock_session(session, "sign")?;
    // What a crash left may be a turn. Others go on while the user looks for their key.
    drop(project.enter("sign", user)?);
    let tip = project.store().tip(session)?;
    let reference = session.signed_reference();
    let before = signed::read(repository, &reference)?;

    let wanted = TagWanted {
        name: &tag_name(session),
        commit: tip.commit,
        message: &message(&tip),
    };
    let bytes = make::signed(repository, &scratch_dir(repository), &wanted, passphrase)?;
    let transaction = project.enter("sign", user)?;
    let (tag, held) = hold::hold_tag(repository, &bytes)?;

    fault::point("before-snapshot-ref")?;
    signed::move_to(repository, (&reference, before), tag, "teddy: sign")?;
    hold::settle(repository, &held)?;
    drop(transaction);

    Ok(SignedSession {
        session: session.clone(),
        turn: tip.number(),
        commit: tip.commit,
        tag,
        reference,
    })
}

/// Returns the message of the tag.
fn message(tip: &Turn) -> String {
    let (session, number) = (&tip.session, tip.number());
    let what = match number {
        0 => "before its first turn".to_owned(),
        1 => "turn 1".to_owned(),
        _ => format!("turns 1-{number}"),
    };
    let id = tip.meta.turn_id;

    format!("Session {session}, {what}\n\nTeddy-Session: {session}\nTeddy-Turn: {number} {id}\n")
}
