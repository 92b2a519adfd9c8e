//! The signature of a session, which goes with its code.

use crate::git::object::CommitId;
use crate::git::object::id::TagId;
use crate::git::object::tag::signed_tag;
use crate::git::refs::signed;
use crate::git::remote::send::{RefUpdate, SentRef};
use crate::git::repository::Repository;
use crate::session::name::SessionName;

/// What becomes of the signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SignatureAtHand {
    /// There is none, or the remote has it.
    Nothing,
    /// It goes with the session.
    Goes(RefUpdate),
    /// It stays, and why.
    Stays(&'static str),
}

/// Returns what becomes of the signature of a session, which has these turns and another name on
/// the remote.
///
/// # Errors
/// The refs cannot be read.
pub(super) fn signature(
    repository: &Repository,
    (session, target): (&SessionName, &SessionName),
    own: &[CommitId],
    there: Option<CommitId>,
) -> anyhow::Result<SignatureAtHand> {
    let Some(tag) = signed::read(repository, &session.signed_reference())? else {
        return Ok(SignatureAtHand::Nothing);
    };
    if target != session {
        let why = "the signature is for another name and stays here";
        return Ok(SignatureAtHand::Stays(why));
    }

    let turn_of = |tag: TagId| {
        let commit = signed_tag(repository, tag).ok()?.commit;
        own.iter().position(|id| *id == commit)
    };
    let Some(turn) = turn_of(tag) else {
        let why = "the signature is not of a turn of this session and stays here";
        return Ok(SignatureAtHand::Stays(why));
    };

    let hex = tag.to_string();
    match there.map(|id| id.to_string()) {
        Some(theirs) if theirs == hex => Ok(SignatureAtHand::Nothing),
        Some(theirs) if turn_of(theirs.parse()?).is_none_or(|theirs| theirs > turn) => {
            let why = "the remote has another signature, which stays there";
            Ok(SignatureAtHand::Stays(why))
        }
        _ => Ok(SignatureAtHand::Goes(RefUpdate {
            name: target.signed_reference(),
            to: SentRef::Object(hex),
        })),
    }
}
