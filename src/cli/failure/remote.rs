//! Classifies errors of remotes.

use std::error::Error;

use super::Diagnosis;
use crate::cli::kind::FailureKind;
use crate::git::remote::error::{RemoteError, RemoteTrouble};
use crate::workflow::push::error::PushError;

pub(super) fn classify_remote(cause: &(dyn Error + 'static)) -> Option<Diagnosis> {
    if let Some(error) = cause.downcast_ref::<PushError>() {
        let kind = match error {
            PushError::Findings { .. } => FailureKind::Findings,
            _ => FailureKind::NotSent,
        };
        return Some(Diagnosis::of(kind, Some(error.hint())));
    }

    let error: &RemoteError = cause.downcast_ref()?;
    let kind = match error.trouble {
        RemoteTrouble::NotConfigured | RemoteTrouble::NotFound => FailureKind::NoRemote,
        RemoteTrouble::Denied => FailureKind::RemoteDenied,
        RemoteTrouble::Unreachable | RemoteTrouble::Dropped => FailureKind::RemoteUnreachable,
        RemoteTrouble::RefRefused
        | RemoteTrouble::Shallow
        | RemoteTrouble::OtherHash
        | RemoteTrouble::HookDeclined
        | RemoteTrouble::NotFastForward => FailureKind::NotSent,
        RemoteTrouble::Unsound => FailureKind::RemoteUnsound,
        RemoteTrouble::NoSuchRef => FailureKind::SessionNotFound,
        RemoteTrouble::Other => FailureKind::Failed,
    };
    Some(Diagnosis::of(kind, error.hint()))
}
