//! Verifies the signature of a session: a signed tag at `refs/teddy/signed/<session>`
//! (`docs/formats/turn.md`).
//!
//! git decides with the reader's keys and settings. The name in the tag is compared, so that a
//! signature cannot be reused for another session.

use serde::Serialize;

use super::name::SessionName;
use super::verify::{CheckedTurn, Fault};
use crate::git::object::id::TagId;
use crate::git::object::{CommitId, SignedTag, read_signed_tag};
use crate::git::refs;
use crate::git::repository::Repository;
use crate::git::sign::{AcceptedSignature, verify_tag};
use crate::host::clock;
use crate::text::sanitize::sanitize_line;

const RULE: &str = "T19";

#[derive(Debug, Clone, Serialize)]
pub struct SessionSignature {
    pub tag: TagId,
    /// `None` if the target is not in the chain.
    pub turn: Option<u64>,
    pub is_whole: bool,
    /// As stated in the tag, not verified.
    pub tagger: String,
    pub signed: Option<String>,
    /// According to the user's keys. `None` if git rejects the signature.
    pub signer: Option<String>,
    pub key: Option<String>,
}

/// git finds the ref by this name.
pub fn tag_name(session: &SessionName) -> String {
    format!("teddy/signed/{session}")
}

/// Returns why a ref is not the tag of a session of these turns; `None` if it is. Does not verify the
/// signature.
pub fn mismatch(
    repository: &Repository,
    session: &SessionName,
    tag: TagId,
    turns: &[CheckedTurn],
) -> Option<String> {
    let covers = |commit: CommitId| turns.iter().any(|turn| turn.commit == commit);
    match read_signed_tag(repository, tag) {
        Ok(tag) if tag.name == tag_name(session) && covers(tag.commit) => None,
        Ok(_) => Some(format!("its signature is of something else ({RULE})")),
        Err(error) => Some(format!("its signature: {error:#} ({RULE})")),
    }
}

/// Adds problems to `faults`. `turns` is newest first. `None` if there is no signature, or its tag
/// is unreadable.
pub fn verify(
    repository: &Repository,
    session: &SessionName,
    tip: CommitId,
    turns: &[CheckedTurn],
    faults: &mut Vec<Fault>,
) -> anyhow::Result<Option<SessionSignature>> {
    let Some(id) = refs::read_tag(repository, &session.signed_reference())? else {
        return Ok(None);
    };
    let mut fault = |turn: Option<u64>, commit: CommitId, problem: String| {
        faults.push(Fault {
            turn,
            commit,
            rule: RULE,
            what: format!("its signature: {problem}"),
        });
    };

    let tag = match read_signed_tag(repository, id) {
        Ok(tag) => tag,
        Err(error) => {
            fault(None, tip, format!("{error:#}"));
            return Ok(None);
        }
    };

    let covered = turns.iter().find(|turn| turn.commit == tag.commit);
    let turn = covered.map(|turn| turn.number);
    if turn.is_none() {
        let problem = format!(
            "it is of commit {}, which is no turn of the session",
            tag.commit
        );
        fault(None, tag.commit, problem);
    }

    // A fetched session was signed under its local name.
    if tag.name != tag_name(&session.own()) {
        let problem = format!("it was made for `{}`", sanitize_line(&tag.name));
        fault(turn, tag.commit, problem);
    }

    let accepted = verify_tag(repository, id)?;
    if let Err(why) = &accepted {
        fault(turn, tag.commit, why.clone());
    }

    let is_whole = tag.commit == tip;
    Ok(Some(of(id, tag, turn, is_whole, accepted.ok())))
}

fn of(
    id: TagId,
    tag: SignedTag,
    turn: Option<u64>,
    is_whole: bool,
    accepted: Option<AcceptedSignature>,
) -> SessionSignature {
    let (signer, key) = accepted.map(|it| (it.signer, it.key)).unzip();
    SessionSignature {
        tag: id,
        turn,
        is_whole,
        tagger: tag.tagger,
        signed: clock::of_seconds(tag.seconds),
        signer,
        key,
    }
}
