//! Fetching refs from a remote to a place where nobody takes them for anything yet.

use super::{FetchProgress, RemoteName, RunHooks, run, transport};
use crate::git::refs::signed::INCOMING;
use crate::git::refs::{self, Expected, Reference};
use crate::git::repository::Repository;
use crate::host::lock::{Lock, patience};

/// The place of the lock, which no session can have.
const LOCK: &str = "_fetch";

/// Every character with which one session's name can go on where another one's ends.
const GOES_ON: &str = "-abcdefghijklmnopqrstuvwxyz0123456789";

/// Refs of a remote that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedRef<'a> {
    /// Every ref below a prefix.
    Below(&'a str),
    /// One ref, if it is there.
    One(&'a str),
}

/// What came in. It lies in a place of its own, which is nobody else's meanwhile, until this is
/// dropped; then it stays only where another ref reaches it.
pub struct IncomingRefs<'r> {
    /// The refs, by their names on the remote.
    pub refs: Vec<Reference>,
    /// The repository.
    repository: &'r Repository,
    /// Two at once would take each other's for what a killed one left.
    _lock: Lock,
}

impl Drop for IncomingRefs<'_> {
    fn drop(&mut self) {
        // What is left here is read by nobody, and the next one begins with removing it.
        let _ = forget(self.repository);
    }
}

/// Fetches refs and everything that they reach; git checks each object. Returns those of them that
/// are there.
///
/// # Errors
/// The remote cannot be reached, what it sends is not sound, or another fetch takes too long.
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
    // In a partial clone, too, what was recorded is to be read without a server.
    command.arg("--no-filter");
    command.arg(match progress {
        FetchProgress::Shown => "--progress",
        FetchProgress::Hidden => "--no-progress",
    });
    command.args(["--", remote.as_str()]);
    // A git whose fetch was killed may still be at work, for another remote.
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

/// Forgets what was received.
fn forget(repository: &Repository) -> anyhow::Result<()> {
    for reference in refs::list(repository, INCOMING)? {
        refs::delete(repository, &reference.name, Expected::Any)?;
    }
    Ok(())
}

/// Returns what git is told, so that it asks the server for no other refs than these and puts them
/// in a place.
///
/// One ref is asked for as a pattern, because git fails as a whole if a ref is missing that it was
/// told by its name. What else has the same beginning is taken out again.
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
