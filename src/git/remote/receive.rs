//! Fetches refs of a remote into a temporary namespace.

use super::{FetchProgress, RemoteName, RunHooks, run, transport};
use crate::git::refs::signed::INCOMING;
use crate::git::refs::{self, Reference};
use crate::git::repository::Repository;
use crate::host::lock::{Lock, patience};

/// Name of the lock. No session can have it.
const LOCK: &str = "_fetch";

/// All characters that can continue the name of a session.
const GOES_ON: &str = "-abcdefghijklmnopqrstuvwxyz0123456789";

/// Refs to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedRef<'a> {
    /// All refs below a prefix.
    Below(&'a str),
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
        let _ = forget(self.repository);
    }
}

/// Fetches refs with everything they reach, and returns those that exist. git checks each object.
pub fn receive<'r>(
    repository: &'r Repository,
    remote: &RemoteName,
    wanted: &[WantedRef<'_>],
    progress: FetchProgress,
) -> anyhow::Result<IncomingRefs<'r>> {
    let place = repository.teddy_dir().join("locks").join(LOCK);
    let lock = Lock::take(&place, "fetch", patience())?;
    let mut incoming = IncomingRefs {
        refs: Vec::new(),
        repository,
        _lock: lock,
    };
    // Left by a killed fetch.
    forget(repository)?;

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
        FetchProgress::Shown => "--progress",
        FetchProgress::Hidden => "--no-progress",
    });
    command.args(["--", remote.as_str()]);
    // The git of a killed fetch can still be running, for another remote. So each process has its
    // own namespace.
    let place = format!("{INCOMING}{}/", std::process::id());
    let wanted = wanted.iter();
    command.args(wanted.flat_map(|wanted| refspecs(wanted, &place)));
    run(command, remote, progress)?;

    let came = refs::list(repository, &place)?.into_iter();
    let named = came.map(|reference| Reference {
        name: reference.name.replacen(&place, "refs/teddy/", 1),
        target: reference.target,
    });
    incoming.refs = named.collect();
    Ok(incoming)
}

fn forget(repository: &Repository) -> anyhow::Result<()> {
    let left = refs::list(repository, INCOMING)?;
    let names: Vec<&str> = left.iter().map(|found| found.name.as_str()).collect();
    refs::delete_all(repository, &names)
}

/// Returns the refspecs that fetch exactly these refs into the temporary namespace.
///
/// A single ref is requested as a pattern, because `git fetch` fails entirely if a ref that was
/// requested by name is missing. Longer names with the same prefix are excluded.
fn refspecs(wanted: &WantedRef<'_>, place: &str) -> Vec<String> {
    let to = |name: &str| name.replacen("refs/teddy/", place, 1);
    match wanted {
        WantedRef::Below(prefix) => vec![format!("+{prefix}*:{}*", to(prefix))],
        WantedRef::One(name) => {
            let longer = GOES_ON.chars().map(|next| format!("^{name}{next}*"));
            let one = std::iter::once(format!("+{name}*:{}*", to(name)));
            one.chain(longer).collect()
        }
    }
}
