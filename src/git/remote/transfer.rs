//! Fetches refs of a remote into a temporary namespace.

use super::{FetchProgress, RemoteName, RunHooks, run, transport};
use crate::git::refs::signed::INCOMING_PREFIX;
use crate::git::refs::{self, Reference};
use crate::git::repository::Repository;
use crate::host::lock::{Lock, patience};

/// Name of the lock. No session can have it.
const FETCH_LOCK: &str = "_fetch";

/// All characters that can continue the name of a session.
const NAME_CHARS: &str = "-abcdefghijklmnopqrstuvwxyz0123456789";

/// Refs to fetch.
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

/// Fetches refs with everything they reach, and returns those that exist. git checks each object.
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
        repository,
        _lock: lock,
    };
    // Left by a killed fetch.
    delete_incoming(repository)?;

    let mut command = transport(repository, RunHooks::No)?;
    command.args([
        "-c",
        "fetch.fsckObjects=true",
        "-c",
        "fetch.pruneTags=false",
    ]);
    command.args(["-c", "core.logAllRefUpdates=false"]);
    command.args([
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-prune",
        "--no-write-fetch-head",
    ]);
    command.args([
        "--refmap=",
        "--no-recurse-submodules",
        "--no-auto-maintenance",
    ]);
    // Recorded data must be readable offline, even in a partial clone.
    command.arg("--no-filter");
    command.arg(match progress {
        FetchProgress::Visible => "--progress",
        FetchProgress::Hidden => "--no-progress",
    });
    command.args(["--", remote.as_str()]);
    // The git of a killed fetch can still be running, for another remote. So each process has its
    // own namespace.
    let namespace = format!("{INCOMING_PREFIX}{}/", std::process::id());
    let requested = requested.iter();
    command.args(requested.flat_map(|request| fetch_refspecs(request, &namespace)));
    run(command, remote, progress)?;

    let received = refs::list(repository, &namespace)?.into_iter();
    let renamed = received.map(|reference| Reference {
        name: reference.name.replacen(&namespace, "refs/teddy/", 1),
        target: reference.target,
    });
    incoming.refs = renamed.collect();
    Ok(incoming)
}

fn delete_incoming(repository: &Repository) -> anyhow::Result<()> {
    let incoming = refs::list(repository, INCOMING_PREFIX)?;
    let names: Vec<&str> = incoming
        .iter()
        .map(|reference| reference.name.as_str())
        .collect();
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
