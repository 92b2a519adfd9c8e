//! Decides whether the signature of a session is pushed with its code.

use crate::git::object::CommitId;
use crate::git::object::id::TagId;
use crate::git::object::tag::read_signed_tag;
use crate::git::refs::signed;
use crate::git::remote::send::{RefUpdate, SentRef};
use crate::git::repository::Repository;
use crate::session::name::SessionName;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SignatureAtHand {
    /// No signature, or the remote has it.
    Nothing,
    /// Push it.
    Goes(RefUpdate),
    /// Don't push it, for this reason.
    Stays(&'static str),
}

/// Decides about the signature. It covers the session's name, so it is not pushed under another
/// one. The remote's signature is replaced only by one of a later turn.
pub(super) fn choose_signature(
    repository: &Repository,
    (session, target): (&SessionName, &SessionName),
    own: &[CommitId],
    remote_tag: Option<CommitId>,
) -> anyhow::Result<SignatureAtHand> {
    let Some(tag) = signed::read_tag(repository, &session.signed_reference())? else {
        return Ok(SignatureAtHand::Nothing);
    };
    if target != session {
        let why = "the signature is for another name and stays here";
        return Ok(SignatureAtHand::Stays(why));
    }

    let turn_of = |tag: TagId| {
        let commit = read_signed_tag(repository, tag).ok()?.commit;
        own.iter().position(|id| *id == commit)
    };
    let Some(turn) = turn_of(tag) else {
        let why = "the signature is not of a turn of this session and stays here";
        return Ok(SignatureAtHand::Stays(why));
    };

    let hex = tag.to_string();
    match remote_tag.map(|id| id.to_string()) {
        Some(remote_hex) if remote_hex == hex => Ok(SignatureAtHand::Nothing),
        Some(remote_hex) if turn_of(remote_hex.parse()?).is_none_or(|position| position > turn) => {
            let why = "the remote has another signature, which stays there";
            Ok(SignatureAtHand::Stays(why))
        }
        _ => Ok(SignatureAtHand::Goes(RefUpdate {
            name: target.signed_reference(),
            to: SentRef::Object(hex),
        })),
    }
}
