//! Sending objects to refs of a remote: never by force.

use super::error::{RemoteError, RemoteTrouble};
use super::{FetchProgress, RemoteName, RunHooks, run, transport};
use crate::git::repository::Repository;

/// What becomes of a ref of a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefUpdate {
    /// Its full name there.
    pub name: String,
    /// What becomes of it.
    pub to: SentRef,
}

/// What a ref of a remote gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SentRef {
    /// It points at this object, if that is ahead of what it points at.
    Object(String),
    /// It goes, if it still points at this object.
    Gone(String),
}

/// Sends objects, so that all of these refs are changed, or none of them where the server can do
/// that. The user's own `pre-push` hook is asked.
///
/// # Errors
/// [`RemoteError`]: a ref has moved, or the server or a hook refuses.
pub fn send(
    repository: &Repository,
    remote: &RemoteName,
    updates: &[RefUpdate],
    progress: FetchProgress,
) -> anyhow::Result<()> {
    let is_several = updates.len() > 1;
    match push(repository, remote, (updates, is_several), progress) {
        Err(error) if is_several && error.to_string().contains("--atomic") => {}
        other => return other,
    }

    // What takes the place of something is there before that goes.
    let (sent, gone): (Vec<_>, Vec<_>) = updates
        .iter()
        .cloned()
        .partition(|update| matches!(update.to, SentRef::Object(_)));
    for part in [sent, gone] {
        if !part.is_empty() {
            push(repository, remote, (&part, false), progress)?;
        }
    }
    Ok(())
}

/// Has git push.
fn push(
    repository: &Repository,
    remote: &RemoteName,
    (updates, is_atomic): (&[RefUpdate], bool),
    progress: FetchProgress,
) -> anyhow::Result<()> {
    let mut command = transport(repository, RunHooks::Yes)?;
    // With this setting git would take no list of refs.
    command.args(["-c", &format!("remote.{remote}.mirror=false")]);
    command.args(["push", "--no-follow-tags", "--recurse-submodules=no"]);
    command.arg(match progress {
        FetchProgress::Shown => "--progress",
        FetchProgress::Hidden => "--no-progress",
    });
    if is_atomic {
        command.arg("--atomic");
    }

    for update in updates {
        if let SentRef::Gone(seen) = &update.to {
            command.arg(format!("--force-with-lease={}:{seen}", update.name));
        }
    }

    command.args(["--", remote.as_str()]);
    command.args(updates.iter().map(refspec));
    run(command, remote, progress)
        .map(drop)
        .map_err(|error| of_hook(error, remote))
}

/// Returns what git is told of a ref.
fn refspec(update: &RefUpdate) -> String {
    match &update.to {
        SentRef::Object(id) => format!("{id}:{}", update.name),
        SentRef::Gone(_) => format!(":{}", update.name),
    }
}

/// Says that it was the user's own hook that declined, which git does not say.
fn of_hook(error: anyhow::Error, remote: &RemoteName) -> anyhow::Error {
    let words = error.to_string();
    let is_other = error
        .downcast_ref::<RemoteError>()
        .is_some_and(|error| error.trouble == RemoteTrouble::Other);
    if !is_other || !words.contains("failed to push some refs") {
        return error;
    }

    let words = "error: the `pre-push` hook declined, nothing was sent";
    RemoteError::of(remote.clone(), RemoteTrouble::HookDeclined, words)
        .helped(format!("`git push --dry-run {remote}` shows what it says"))
        .into()
}
