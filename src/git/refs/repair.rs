//! Finds and repairs refs that a crash damaged, and lock files that one left.
//!
//! Power loss before a ref is flushed leaves an empty file, which breaks the user's `git gc` and
//! `git fetch` too. Only lock files of TeDDy's refs are removed, and the one lock of a reftable
//! (docs/decisions/0005-ref-stores.md).

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::store::{Reference, TEDDY_PREFIX};
use crate::git::keep::damaged;
use crate::git::keep::store_access::{self, ReadExtent};
use crate::git::object::id::{CommitId, TagId};
use crate::git::object::{absent, read_signed_tag};
use crate::git::parallel::map_parallel;
use crate::git::refs::is_signature_ref;
use crate::git::repository::Repository;
use crate::host::file::{read_regular_text, write_cache};
use crate::host::machine;

/// Refs of checkouts, which every turn depends on.
const OF_CHECKOUTS: [&str; 2] = ["refs/teddy/snapshots/", "refs/teddy/published/"];

/// Number of attempts before a ref counts as broken: while git repacks, an object can be invisible
/// for a moment.
const MAX_SCANS: u32 = 4;

const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ForeignLock {
    pub path: PathBuf,
    /// Its age in seconds.
    pub seconds: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefScan {
    /// Only the refs of checkouts, if there are many refs and all were readable since the system
    /// started; otherwise all.
    Quick,
    Full,
}

/// Returns the refs below `refs/teddy/` whose object is missing, sorted. Fails if an object store
/// cannot be read, because it might contain the object.
pub fn broken(repository: &Repository, scan: RefScan) -> anyhow::Result<Vec<String>> {
    let scan = match scan {
        RefScan::Quick if is_noted_readable(repository) => RefScan::Quick,
        _ => RefScan::Full,
    };
    let mut broken = seemingly_broken(repository, scan)?;
    for attempt in 1..MAX_SCANS {
        if broken.is_empty() {
            break;
        }
        // Gives a concurrent repack time to finish.
        std::thread::sleep(PAUSE * attempt);
        // A new handle sees packs that replaced others in the meantime.
        let again = seemingly_broken(&repository.reopened()?, scan)?;
        broken.retain(|name| again.contains(name));
    }

    if !broken.is_empty() {
        // An unreadable object is not a missing one.
        store_access::ensure_readable(repository, ReadExtent::Start)?;
    }
    Ok(broken)
}

fn seemingly_broken(repository: &Repository, scan: RefScan) -> anyhow::Result<Vec<String>> {
    let (mut broken, prefixes) = match scan {
        RefScan::Quick => (Vec::new(), &OF_CHECKOUTS[..]),
        RefScan::Full => (repository.refs.damaged()?, &[TEDDY_PREFIX][..]),
    };
    let mut listed = Vec::new();
    for prefix in prefixes {
        listed.extend(repository.refs.list(prefix)?);
    }

    let count = listed.len();
    let unreadable = map_parallel(repository, listed, |repository, part| {
        let is_sound = |one: &Reference| is_intact(repository, &one.name, one.target);
        let unreadable = part.into_iter().filter(|one| !is_sound(one));
        Ok(unreadable.map(|one| one.name).collect::<Vec<_>>())
    })?;
    broken.extend(unreadable.concat());
    broken.sort();
    broken.dedup();

    if scan == RefScan::Full && broken.is_empty() {
        note_readable(repository, count);
    }
    Ok(broken)
}

/// Returns whether the object of a ref is readable: a commit with its tree, or any object below the
/// signature prefixes. Whether the signature is good is checked elsewhere.
fn is_intact(repository: &Repository, name: &str, id: CommitId) -> bool {
    if !is_signature_ref(name) {
        return damaged::is_readable(repository, id);
    }
    match read_signed_tag(repository, TagId(id.0)) {
        Ok(tag) => damaged::is_readable(repository, tag.commit),
        Err(_) => absent::find(|| repository.gix.find_object(id.0)).is_ok(),
    }
}

/// Returns the existing commits from a ref's log, newest first.
pub fn logged(repository: &Repository, name: &str) -> anyhow::Result<Vec<CommitId>> {
    let mut logged = repository.refs.logged(name)?;
    if is_signature_ref(name) {
        logged.retain(|&id| is_intact(repository, name, id));
    } else {
        logged.retain(|&id| repository.commit(id).is_ok());
    }
    Ok(logged)
}

/// Repairs a broken ref: sets it to `commit`, or deletes it if `None`. The old ref and its log are
/// kept in `backup_dir`.
pub fn repair_ref(
    repository: &Repository,
    name: &str,
    commit: Option<CommitId>,
    backup_dir: &Path,
) -> anyhow::Result<()> {
    let is_there = |id| is_intact(repository, name, id);
    repository.refs.repair(name, commit, backup_dir, &is_there)
}

/// Removes ref locks that a killed TeDDy process left, and returns the names of their refs. The
/// caller holds the repository lock. `is_in_use` returns true for refs that move without that lock.
pub fn remove_stale_locks(
    repository: &Repository,
    is_in_use: &dyn Fn(&str) -> bool,
) -> anyhow::Result<Vec<String>> {
    repository.refs.remove_stale_locks(is_in_use)
}

/// Returns git's own lock files, which block the user's git.
pub fn foreign_locks(repository: &Repository) -> Vec<ForeignLock> {
    let common = repository.common_dir();
    let names = ["index.lock", "config.lock", "shallow.lock"];
    let others = names
        .iter()
        .flat_map(|name| [common.join(name), repository.git_dir().join(name)]);
    let mut paths: Vec<PathBuf> = others.chain(repository.refs.locks()).collect();

    paths.sort();
    paths.dedup();
    let age = |path: &PathBuf| {
        let metadata = std::fs::symlink_metadata(path).ok()?;
        let age = metadata.modified().ok()?.elapsed().unwrap_or_default();
        Some(age.as_secs())
    };

    paths
        .into_iter()
        .filter_map(|path| age(&path).map(|seconds| ForeignLock { path, seconds }))
        .collect()
}

// Remembers that all of TeDDy's refs were readable, so that thousands of them are not listed and
// read before every command.
//
// The note is valid until the system restarts, because only power loss is expected to damage refs.
// A full check (`RefScan::Full`) ignores it.

const READABLE_NOTE: &str = "readable";
const MAX_NOTE: u64 = 4096;

/// Up to this number, refs are simply read each time.
const MAX_UNNOTED_REFS: usize = 64;

pub(super) fn is_noted_readable(repository: &Repository) -> bool {
    let Some(id) = machine::boot_id() else {
        return false;
    };
    let text = read_regular_text(&repository.teddy_dir().join(READABLE_NOTE), MAX_NOTE);
    text.is_ok_and(|text| text.trim() == id)
}

/// Writes the note if there are enough refs to make it worthwhile. Ignores errors: the refs are
/// checked again then.
pub(super) fn note_readable(repository: &Repository, refs: usize) {
    let id = machine::boot_id().filter(|_| refs > MAX_UNNOTED_REFS && !repository.read_only);
    if let Some(id) = id {
        let _ = write_cache(
            &repository.teddy_dir().join(READABLE_NOTE),
            format!("{id}\n").as_bytes(),
        );
    }
}
