//! Fetches refs of a remote into a temporary namespace.

use super::error::{RemoteError, RemoteTrouble};
use super::{FetchProgress, RemoteName, run, transport};
use crate::git::object::CommitId;
use crate::git::refs::{self, INCOMING_PREFIX, Reference};
use crate::git::repository::Repository;
use crate::git::user_git::{silent_git, user_git};
use crate::host::lock::{Lock, patience};

/// Name of the lock. No session can have it.
const FETCH_LOCK: &str = "_fetch";

const MAX_FETCH_MEMORY: u64 = 4 << 30;

/// In one command.
const MAX_REFSPECS: usize = 1_000;

/// Each costs a few fetches.
const MAX_UNSOUND: usize = 32;

const FETCH: &[&str] = &[
    "-c",
    "fetch.fsckObjects=true",
    "-c",
    "fetch.pruneTags=false",
    // With `always`, git writes a reflog for each of the temporary refs.
    "-c",
    "core.logAllRefUpdates=false",
    "fetch",
    "--quiet",
    "--no-tags",
    "--no-prune",
    "--no-write-fetch-head",
    // An empty refmap: git must not update remote-tracking refs.
    "--refmap=",
    "--no-recurse-submodules",
    "--no-auto-maintenance",
];

/// All characters that can continue the name of a session.
const NAME_CHARS: &str = "-abcdefghijklmnopqrstuvwxyz0123456789";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedRef<'a> {
    /// All refs below a prefix.
    Prefix(&'a str),
    /// One ref, if it exists.
    One(&'a str),
}

/// Fetched refs in the temporary namespace. Dropping this deletes them; the objects stay only if
/// another ref reaches them.
pub struct IncomingRefs<'r> {
    /// The refs, by their names on the remote.
    pub refs: Vec<Reference>,
    /// Refs of the remote that git refused because of an object, each with git's reason.
    pub unsound: Vec<(Reference, String)>,
    repository: &'r Repository,
    /// Held because concurrent fetches would delete each other's refs as leftovers.
    _lock: Lock,
}

impl Drop for IncomingRefs<'_> {
    fn drop(&mut self) {
        // Ignore errors: the next fetch deletes leftovers first.
        let _ = delete_incoming(self.repository);
    }
}

/// Fetches refs with everything they reach, and returns those that exist. git checks each object. If
/// it refuses one, the other refs are fetched without those that reach it.
pub fn receive_refs<'r>(
    repository: &'r Repository,
    remote: &RemoteName,
    requested: &[WantedRef<'_>],
    progress: FetchProgress,
) -> anyhow::Result<IncomingRefs<'r>> {
    let lock_path = repository.teddy_dir().join("locks").join(FETCH_LOCK);
    let lock = Lock::take(&lock_path, "fetch", patience())?;
    let mut incoming = IncomingRefs {
        refs: Vec::new(),
        unsound: Vec::new(),
        repository,
        _lock: lock,
    };
    // Left by a killed fetch.
    delete_incoming(repository)?;

    // The git of a killed fetch can still be running, for another remote. So each process has its
    // own namespace.
    let namespace = format!("{INCOMING_PREFIX}{}/", std::process::id());
    let fetch = |refspecs: Vec<String>| -> anyhow::Result<()> {
        let mut command = transport(silent_git(repository.workdir())?, repository);
        command.args(FETCH);
        // Recorded data must be readable offline, even in a partial clone. A filter that leaves
        // nothing out tells git that the server has objects that are missing here: without one, its
        // check fails.
        command.arg(match is_promised_by(repository, remote) {
            true => "--filter=blob:limit=8192g",
            false => "--no-filter",
        });
        command.arg(progress.flag());
        command.args(["--", remote.as_str()]).args(refspecs);
        run(command, remote, progress, Some(MAX_FETCH_MEMORY)).map(drop)
    };

    let all = requested.iter();
    let all = all.flat_map(|request| fetch_refspecs(request, &namespace));
    if let Err(error) = fetch(all.collect()) {
        let listed = match is_unsound(&error) {
            true => list_requested(repository, remote, requested)?,
            false => Vec::new(),
        };
        if listed.len() < 2 {
            return Err(error);
        }
        incoming.unsound = fetch_sound(listed, &|part| {
            let to = |name: &str| name.replacen("refs/teddy/", &namespace, 1);
            let names = part.iter().map(|reference| reference.name.as_str());
            fetch(names.map(|name| format!("+{name}:{}", to(name))).collect())
        })?;
    }

    let received = refs::list(repository, &namespace)?.into_iter();
    let renamed = received.map(|reference| Reference {
        name: reference.name.replacen(&namespace, "refs/teddy/", 1),
        target: reference.target,
    });
    incoming.refs = renamed.collect();
    Ok(incoming)
}

fn is_unsound(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<RemoteError>();
    error.is_some_and(|error| error.trouble == RemoteTrouble::Unsound)
}

/// Only names that can be in a refspec.
fn list_requested(
    repository: &Repository,
    remote: &RemoteName,
    requested: &[WantedRef<'_>],
) -> anyhow::Result<Vec<Reference>> {
    let prefixes: Vec<&str> = requested
        .iter()
        .map(|request| match request {
            WantedRef::Prefix(name) | WantedRef::One(name) => *name,
        })
        .collect();
    let mut listed = super::list(repository, remote, &prefixes)?;
    listed.retain(|reference| {
        let name = reference.name.as_str();
        let is_requested = requested.iter().any(|request| match request {
            WantedRef::Prefix(prefix) => name.starts_with(prefix),
            WantedRef::One(one) => name == *one,
        });
        is_requested && gix::validate::reference::name(name.into()).is_ok()
    });
    Ok(listed)
}

/// Calls `fetch` for parts of the refs, and halves a part that is refused. Returns the refs that are
/// refused on their own, with the reason.
fn fetch_sound(
    refs: Vec<Reference>,
    fetch: &dyn Fn(&[Reference]) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<(Reference, String)>> {
    let mut parts: Vec<&[Reference]> = refs.chunks(MAX_REFSPECS).collect();
    let mut unsound = Vec::new();
    while let Some(part) = parts.pop() {
        match (fetch(part), part) {
            (Ok(()), _) => {}
            (Err(error), [one]) if is_unsound(&error) && unsound.len() < MAX_UNSOUND => {
                unsound.push((one.clone(), error.to_string()));
            }
            (Err(error), [_, _, ..]) if is_unsound(&error) => {
                let (first, second) = part.split_at(part.len() / 2);
                parts.extend([first, second]);
            }
            (Err(error), _) => return Err(error),
        }
    }
    Ok(unsound)
}

/// Returns whether a partial clone takes what it lacks from a remote. git then remembers no filter.
fn is_promised_by(repository: &Repository, remote: &RemoteName) -> bool {
    let value = |key| repository.config(&format!("remote.{remote}.{key}"));
    value("promisor").is_some_and(|value| value != "false") && value("partialclonefilter").is_some()
}

fn delete_incoming(repository: &Repository) -> anyhow::Result<()> {
    let incoming = refs::list(repository, INCOMING_PREFIX)?;
    let names: Vec<&str> = incoming
        .iter()
        .map(|reference| reference.name.as_str())
        .collect();
    // In one transaction: a remote can have thousands of refs.
    refs::delete_all(repository, &names)
}

/// Returns the refspecs that fetch exactly these refs into the temporary namespace.
///
/// A single ref is requested as a pattern, because `git fetch` fails entirely if a ref that was
/// requested by name is missing. Longer names with the same prefix are excluded.
fn fetch_refspecs(request: &WantedRef<'_>, namespace: &str) -> Vec<String> {
    let to = |name: &str| name.replacen("refs/teddy/", namespace, 1);
    match request {
        WantedRef::Prefix(prefix) => vec![format!("+{prefix}*:{}*", to(prefix))],
        WantedRef::One(name) => {
            let longer = NAME_CHARS.chars().map(|next| format!("^{name}{next}*"));
            let one = std::iter::once(format!("+{name}*:{}*", to(name)));
            one.chain(longer).collect()
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefUpdate {
    pub name: String,
    pub to: SentRef,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SentRef {
    /// Fast-forward to this commit or tag.
    Object(CommitId),
    /// Delete the ref, if it still points at this commit.
    Deleted(CommitId),
}

/// Pushes new refs, and then deletes others. Each of the two is atomic if the server supports that.
/// Runs the user's `pre-push` hook. Fails with [`RemoteError`] if a ref has moved, or the server or a
/// hook declines.
pub fn send_refs(
    repository: &Repository,
    remote: &RemoteName,
    updates: &[RefUpdate],
    progress: FetchProgress,
) -> anyhow::Result<()> {
    let (sent, deleted): (Vec<_>, Vec<_>) = updates
        .iter()
        .cloned()
        .partition(|update| matches!(update.to, SentRef::Object(_)));
    // Not in one push: git deletes refs of an atomic push although it refuses a hidden one.
    if !sent.is_empty() {
        push_together(repository, remote, &sent, progress)?;
    }
    if deleted.is_empty() {
        return Ok(());
    }

    let result = push_together(repository, remote, &deleted, progress);
    result.map_err(|error| match error.downcast::<RemoteError>() {
        Ok(error) if !sent.is_empty() => error
            .helped("the new turns have arrived; only the refs that they replace are still there")
            .into(),
        Ok(error) => error.into(),
        Err(error) => error,
    })
}

fn push_together(
    repository: &Repository,
    remote: &RemoteName,
    updates: &[RefUpdate],
    progress: FetchProgress,
) -> anyhow::Result<()> {
    let is_several = updates.len() > 1;
    match push(repository, remote, updates, is_several, progress) {
        // The server cannot update refs atomically.
        Err(error) if is_several && error.to_string().contains("--atomic") => {
            push(repository, remote, updates, false, progress)
        }
        other => other,
    }
}

fn push(
    repository: &Repository,
    remote: &RemoteName,
    updates: &[RefUpdate],
    is_atomic: bool,
    progress: FetchProgress,
) -> anyhow::Result<()> {
    let mut command = transport(user_git(repository.workdir())?, repository);
    // git rejects refspecs for a mirror remote.
    command.args(["-c", &format!("remote.{remote}.mirror=false")]);
    command.args(["push", "--no-follow-tags", "--recurse-submodules=no"]);
    command.arg(progress.flag());
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
    run(command, remote, progress, None).map(drop)
}

fn push_refspec(update: &RefUpdate) -> String {
    match &update.to {
        SentRef::Object(id) => format!("{id}:{}", update.name),
        SentRef::Deleted(_) => format!(":{}", update.name),
    }
}
