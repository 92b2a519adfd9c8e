//! Pushes objects to refs of a remote, never with force.

use super::error::{RemoteError, RemoteTrouble};
use super::{FetchProgress, RemoteName, RunHooks, run, transport};
use crate::git::repository::Repository;

/// An update of a remote ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefUpdate {
    /// Full name on the remote.
    pub name: String,
    /// New state.
    pub to: SentRef,
}

/// New state of a remote ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SentRef {
    /// Fast-forward to this object.
    Object(String),
    /// Delete the ref, if it still points at this object.
    Deleted(String),
}

/// Pushes all updates, atomically if the server supports that. Runs the user's `pre-push` hook.
/// Fails with [`RemoteError`] if a ref has moved, or the server or a hook declines.
pub fn send_refs(
    repository: &Repository,
    remote: &RemoteName,
    updates: &[RefUpdate],
    progress: FetchProgress,
) -> anyhow::Result<()> {
    let is_several = updates.len() > 1;
    match push(repository, remote, (updates, is_several), progress) {
        // The server cannot update refs atomically.
        Err(error) if is_several && error.to_string().contains("--atomic") => {}
        other => return other,
    }

    // New refs first: an object that moves to another ref is then never unreachable.
    let (sent, deleted): (Vec<_>, Vec<_>) = updates
        .iter()
        .cloned()
        .partition(|update| matches!(update.to, SentRef::Object(_)));
    for part in [sent, deleted] {
        if !part.is_empty() {
            push(repository, remote, (&part, false), progress)?;
        }
    }
    Ok(())
}

fn push(
    repository: &Repository,
    remote: &RemoteName,
    (updates, is_atomic): (&[RefUpdate], bool),
    progress: FetchProgress,
) -> anyhow::Result<()> {
    let mut command = transport(repository, RunHooks::Yes)?;
    // git rejects refspecs for a mirror remote.
    command.args(["-c", &format!("remote.{remote}.mirror=false")]);
    command.args(["push", "--no-follow-tags", "--recurse-submodules=no"]);
    command.arg(match progress {
        FetchProgress::Visible => "--progress",
        FetchProgress::Hidden => "--no-progress",
    });
    if is_atomic {
        command.arg("--atomic");
    }

    for update in updates {
        if let SentRef::Deleted(expected) = &update.to {
            command.arg(format!("--force-with-lease={}:{expected}", update.name));
        }
    }

    command.args(["--", remote.as_str()]);
    command.args(updates.iter().map(push_refspec));
    run(command, remote, progress)
        .map(drop)
        .map_err(|error| detect_declined_hook(error, remote))
}

fn push_refspec(update: &RefUpdate) -> String {
    match &update.to {
        SentRef::Object(id) => format!("{id}:{}", update.name),
        SentRef::Deleted(_) => format!(":{}", update.name),
    }
}

/// Replaces the error if the user's own hook declined, which git does not report.
fn detect_declined_hook(error: anyhow::Error, remote: &RemoteName) -> anyhow::Error {
    let message = error.to_string();
    let is_other = error
        .downcast_ref::<RemoteError>()
        .is_some_and(|error| error.trouble == RemoteTrouble::Other);
    if !is_other || !message.contains("failed to push some refs") {
        return error;
    }

    let message = "error: the `pre-push` hook declined, nothing was sent";
    RemoteError::of(remote.clone(), RemoteTrouble::HookDeclined, message)
        .helped(format!("`git push --dry-run {remote}` shows what it says"))
        .into()
}
