//! What is told where a remote was no help.

use std::error::Error;

use super::Diagnosis;
use crate::cli::kind::FailureKind;
use crate::git::remote::error::{RemoteError, RemoteTrouble};

/// Judges what went wrong with a remote.
pub(super) fn judge(cause: &(dyn Error + 'static)) -> Option<Diagnosis> {
    let error: &RemoteError = cause.downcast_ref()?;
    let kind = match error.trouble {
        RemoteTrouble::NotConfigured | RemoteTrouble::NotThere => FailureKind::NoRemote,
        RemoteTrouble::Denied => FailureKind::RemoteDenied,
        RemoteTrouble::Unreachable | RemoteTrouble::Dropped => FailureKind::RemoteUnreachable,
        RemoteTrouble::RefRefused | RemoteTrouble::HookDeclined | RemoteTrouble::NotFastForward => {
            FailureKind::Failed
        }
        RemoteTrouble::Unsound => FailureKind::RemoteUnsound,
        RemoteTrouble::NoSuchRef => FailureKind::SessionNotFound,
        RemoteTrouble::Other => FailureKind::Failed,
    };
    Some(Diagnosis::of(kind, error.hint()))
}
