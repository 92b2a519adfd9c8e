//! Fetching refs from a remote to a place where nobody takes them for anything yet.

use super::{FetchProgress, RemoteName, RunHooks, run, transport};
use crate::git::refs::{self, Expected, Reference};
use crate::git::repository::Repository;

/// Where refs are kept that came in and were not looked at.
const INCOMING: &str = "refs/teddy/incoming/";

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

/// Fetches refs and everything that they reach; git checks each object. Returns the refs that are
/// there, by their names on the remote: they stay in a place of their own until [`forget`].
///
/// # Errors
/// The remote cannot be reached, or what it sends is not sound.
pub fn receive(
    repository: &Repository,
    remote: &RemoteName,
    wanted: &[WantedRef<'_>],
    progress: FetchProgress,
) -> anyhow::Result<Vec<Reference>> {
    forget(repository)?;
    let mut command = transport(repository, RunHooks::No)?;
    command.args([
        "-c",
        "fetch.fsckObjects=true",
        "-c",
        "fetch.pruneTags=false",
    ]);
    command.args(["-c", "core.logAllRefUpdates=false"]);
    command.args(["fetch", "--no-tags", "--no-prune", "--no-write-fetch-head"]);
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
    command.args(wanted.iter().flat_map(refspecs));
    run(command, remote, progress)?;

    let came = refs::list(repository, INCOMING)?.into_iter();
    let named = came.map(|reference| Reference {
        name: reference.name.replacen(INCOMING, "refs/teddy/", 1),
        target: reference.target,
    });
    Ok(named.collect())
}

/// Forgets what was received: what it reaches stays only where another ref reaches it.
///
/// # Errors
/// The refs cannot be listed or deleted.
pub fn forget(repository: &Repository) -> anyhow::Result<()> {
    for reference in refs::list(repository, INCOMING)? {
        refs::delete(repository, &reference.name, Expected::Any)?;
    }
    Ok(())
}

/// Returns what git is told, so that it asks the server for no other refs than these.
///
/// One ref is asked for as a pattern, because git fails as a whole if a ref is missing that it was
/// told by its name. What else has the same beginning is taken out again.
fn refspecs(wanted: &WantedRef<'_>) -> Vec<String> {
    let to = |name: &str| name.replacen("refs/teddy/", INCOMING, 1);
    match wanted {
        WantedRef::Below(prefix) => vec![format!("+{prefix}*:{}*", to(prefix))],
        WantedRef::One(name) => {
            let longer = GOES_ON.chars().map(|next| format!("^{name}{next}*"));
            let one = std::iter::once(format!("+{name}*:{}*", to(name)));
            one.chain(longer).collect()
        }
    }
}
