//! `.keep` files: they protect packs from git, and a lock shows which process needs them.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;

use super::{LIST, TEMPORARY, own};
use crate::git::repository::Repository;
use crate::host::file::{append_regular, make_dirs, open_regular, read_regular_text};

const MAX_LIST: u64 = 16 << 20;
/// Upper bound for our `.keep` files. The user's can be longer, and stay.
const MAX_KEEP: u64 = 4 << 10;

/// Prefix of our `.keep` files; the process id follows.
const KEEP: &str = "teddy ";

/// Number of attempts to remove a `.keep` file whose lock is still held, and the delay between
/// them.
const MAX_RETRIES: u32 = 20;
const RETRY_DELAY: Duration = Duration::from_millis(2);

/// Creates a `.keep` file that is locked before it has its name, and records it for this process. No
/// file of this name exists, because packs have unique names.
pub(super) fn claim(repository: &Repository, keep: &Path) -> anyhow::Result<()> {
    let claim = || -> std::io::Result<File> {
        let mut new = super::temporary(keep.parent().unwrap_or(keep))?;
        new.write_all(format!("{KEEP}{}\n", std::process::id()).as_bytes())?;
        Ok(new.persist_noclobber(keep)?)
    };
    let lock = claim().context("keeping a pack")?;
    own::add(&repository.common, keep, lock);
    Ok(())
}

/// Takes a shared lock, which says that this process needs the file. Removing the file takes an
/// exclusive lock.
pub(super) fn lock(file: &File) -> std::io::Result<()> {
    match file.lock_shared() {
        Err(error) if error.kind() != ErrorKind::Unsupported => Err(error),
        _ => Ok(()),
    }
}

/// Removes the `.keep` file, now that a ref reaches the objects, so `git gc` can repack them.
pub fn release(keep: &Path) -> anyhow::Result<()> {
    if let Some(private) = own::remove(keep) {
        release(&private)?;
    }
    for _ in 0..MAX_RETRIES {
        if remove_unneeded(keep).context("releasing a pack")? || !keep.exists() {
            break;
        }
        // Either another process asks the same, or a child between fork and exec has our descriptors
        // for a moment.
        std::thread::sleep(RETRY_DELAY);
    }

    Ok(())
}

/// Removes the `.keep` files and unfinished packs of processes that have ended; returns the number
/// of packs. The caller holds the repository lock and has made its own objects reachable.
pub fn release_all(repository: &Repository) -> anyhow::Result<usize> {
    let mut removed = 0;
    for keep in keep_files(repository) {
        removed += usize::from(remove_unneeded(&keep).context("releasing a pack")?);
    }
    remove_unfinished(repository)?;
    Ok(removed)
}

fn remove_unfinished(repository: &Repository) -> anyhow::Result<()> {
    for file in std::fs::read_dir(pack_dir(repository))
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = file.file_name().to_string_lossy().into_owned();
        let owner = name
            .strip_prefix(TEMPORARY)
            .and_then(|tail| tail.split_once('-')?.0.parse().ok());
        if owner.is_some_and(|owner| {
            !crate::host::process::is_alive(owner) && unneeded(&file.path(), owner).is_some()
        }) {
            std::fs::remove_file(file.path())
                .with_context(|| format!("removing the unfinished pack `{name}`"))?;
        }
    }
    Ok(())
}

/// Returns our packs according to the list, without extension. Some are deleted by now.
pub(in crate::git) fn listed_packs(repository: &Repository) -> Vec<PathBuf> {
    packs_in_list(repository, LIST)
}

/// Returns the packs in a list below `teddy/`, without extension.
pub(super) fn packs_in_list(repository: &Repository, list: &str) -> Vec<PathBuf> {
    let dir = pack_dir(repository);
    let list = read_regular_text(&repository.teddy_dir().join(list), MAX_LIST).unwrap_or_default();
    let plain = |name: &&str| {
        name.strip_prefix("pack-")
            .is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    list.lines()
        .filter(plain)
        .map(|name| dir.join(name))
        .collect()
}

/// Adds a pack to a list below `teddy/`.
pub(super) fn list_pack(repository: &Repository, list: &str, keep: &Path) -> std::io::Result<()> {
    let name = keep.file_stem().unwrap_or_default().to_string_lossy();
    make_dirs(&repository.teddy_dir())?;
    let list = repository.teddy_dir().join(list);
    append_regular(&list, format!("{name}\n").as_bytes())
}

pub(in crate::git) fn pack_dir(repository: &Repository) -> PathBuf {
    repository.gix.objects.store_ref().path().join("pack")
}

/// Returns the files in the directory of packs, sorted.
pub(in crate::git) fn pack_files(repository: &Repository) -> anyhow::Result<BTreeSet<PathBuf>> {
    let dir = pack_dir(repository);
    let list = || -> std::io::Result<BTreeSet<PathBuf>> {
        match std::fs::read_dir(&dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
            files => files?.map(|file| Ok(file?.path())).collect(),
        }
    };
    list().with_context(|| format!("cannot list `{}`", dir.display()))
}

/// Returns all `.keep` files, ours or not.
pub(in crate::git) fn keep_files(repository: &Repository) -> Vec<PathBuf> {
    let files = pack_files(repository).unwrap_or_default().into_iter();
    files
        .filter(|path| path.extension().is_some_and(|ending| ending == "keep"))
        .collect()
}

/// Removes a `.keep` file of ours that no process needs; returns whether it did. The user's stay.
fn remove_unneeded(keep: &Path) -> std::io::Result<bool> {
    let Some(_locked) = owner_of(keep).and_then(|owner| unneeded(keep, owner)) else {
        return Ok(false);
    };
    match std::fs::remove_file(keep) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        removed => Ok(removed.is_ok()),
    }
}

/// Locks a file exclusively; `None` if a process needs it. On a file system without locks, the
/// process id decides.
fn unneeded(path: &Path, owner: u32) -> Option<File> {
    let file = open_regular(path).ok()?;
    match file.try_lock() {
        Ok(()) => Some(file),
        Err(TryLockError::WouldBlock) => None,
        Err(TryLockError::Error(_)) => {
            (owner == std::process::id() || !crate::host::process::is_alive(owner)).then_some(file)
        }
    }
}

fn owner_of(keep: &Path) -> Option<u32> {
    let text = read_regular_text(keep, MAX_KEEP).ok()?;
    // No process has the id 0, so a damaged file counts as abandoned.
    Some(text.strip_prefix(KEEP)?.trim().parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::object::batch;

    /// A process of many turns must not keep the pack of each merge, with one descriptor each,
    /// until it ends.
    #[test]
    fn what_is_kept_is_let_go_with_the_last_handle_of_its_repository() {
        let dirs = [0; 2].map(|_| tempfile::tempdir().unwrap());
        let open = |at: usize| Repository::open(dirs[at].path()).unwrap();
        let keep = |repository: &Repository| {
            let batch = batch::begin_batch(repository);
            batch.blob(b"unneeded").unwrap();
            batch.finish().unwrap();
            keep_files(repository)
        };
        for dir in &dirs {
            gix::init(dir).unwrap();
        }

        let (first, second, other) = (open(0), open(0), open(1));
        let (first_keeps, other_keeps) = (keep(&first), keep(&other));
        assert_eq!((first_keeps.len(), other_keeps.len()), (1, 1));
        drop(first);
        assert_eq!(release_all(&second).unwrap(), 0);
        assert!(own::is_own(&first_keeps[0]));

        drop(second);
        assert!(!own::is_own(&first_keeps[0]) && own::is_own(&other_keeps[0]));
        assert_eq!(release_all(&open(0)).unwrap(), 1);
        assert_eq!(release_all(&open(1)).unwrap(), 0);
    }
}
