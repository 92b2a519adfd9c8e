//! Updates one ref as git does: its own lock file, its own file, a line in its log. `packed-refs`
//! and its lock are never touched.
//!
//! gix locks `packed-refs` for every update if that file exists, as it does in every clone. A
//! process killed at that moment leaves git's own lock behind: the user's git can then neither
//! delete nor pack a ref, and nothing tells whose lock it is. A lock of one of TeDDy's refs is ours
//! to remove.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::FileRefs;
use crate::git::object::id::CommitId;
use crate::git::refs::store::RefsLocked;
use crate::host::file::{make_shared_dirs, read_regular_text};

const MAX_LOCKED_REF: u64 = 8 << 10;

const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const LOCK_POLL: Duration = Duration::from_millis(10);

/// A locked ref. Dropping it removes the lock file.
pub(super) struct LockedRef<'a> {
    files: &'a FileRefs,
    name: gix::refs::FullName,
    path: PathBuf,
    /// The lock file. `None` once it was renamed to the ref's file.
    lock: Option<PathBuf>,
    /// `None` once the id was written: thousands of refs can be locked at once.
    file: Option<File>,
}

impl<'a> LockedRef<'a> {
    /// Locks a ref with the lock file that git and gix use too. Fails with [`RefsLocked`] after
    /// `PATIENCE`.
    pub(super) fn take(files: &'a FileRefs, name: &str) -> anyhow::Result<LockedRef<'a>> {
        let full =
            gix::refs::FullName::try_from(name).map_err(|error| anyhow::anyhow!("{error}"))?;
        let path = files.common.join(name);
        let lock = files.common.join(format!("{name}.lock"));
        let file = match create_lock(&lock) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(RefsLocked { lock }.into());
            }
            created => {
                created.with_context(|| format!("cannot make the lock `{}`", lock.display()))?
            }
        };

        Ok(LockedRef {
            files,
            name: full,
            path,
            lock: Some(lock),
            file: Some(file),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the ref's current id; `None` if it does not exist.
    pub(super) fn now(&self) -> anyhow::Result<Option<CommitId>> {
        match read_regular_text(&self.path, MAX_LOCKED_REF) {
            Ok(text) => text.trim_end().parse().map(Some),
            // git leaves empty directories behind after it deletes refs.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => {
                self.packed()
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn packed(&self) -> anyhow::Result<Option<CommitId>> {
        self.files.packed_directly(&self.name)
    }

    /// Writes the new id to the lock file. It takes effect with [`LockedRef::set`]. It must be durable
    /// by then: otherwise a power cut after the rename leaves an empty ref.
    pub(super) fn write(&mut self, new: CommitId, durable: bool) -> anyhow::Result<()> {
        let Some(mut file) = self.file.take() else {
            anyhow::bail!("the lock has its id already");
        };
        file.write_all(format!("{new}\n").as_bytes())?;
        if durable {
            file.sync_data()?;
        }
        Ok(())
    }

    pub(super) fn sync(&self) -> std::io::Result<()> {
        match &self.lock {
            Some(lock) => File::open(lock)?.sync_data(),
            None => Ok(()),
        }
    }

    /// Renames the lock file to the ref's file, so readers see the old id or the new one.
    pub(super) fn set(mut self) -> anyhow::Result<()> {
        let Some(lock) = &self.lock else {
            return Ok(());
        };
        match std::fs::rename(lock, &self.path) {
            Err(error) if error.kind() == ErrorKind::IsADirectory => {
                remove_empty_dirs(&self.path)?;
                std::fs::rename(lock, &self.path)?;
            }
            renamed => renamed?,
        }

        // Another process can lock the ref from now on, and `drop` must not remove its lock file.
        self.lock = None;
        Ok(())
    }
}

impl Drop for LockedRef<'_> {
    fn drop(&mut self) {
        self.lock.as_ref().map(std::fs::remove_file);
    }
}

/// Removes a directory tree that contains no files, as git leaves behind after it deletes refs.
fn remove_empty_dirs(dir: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_empty_dirs(&entry.path())?;
        }
    }
    std::fs::remove_dir(dir)
}

/// Creates a lock file, waiting up to `PATIENCE` for another process to remove its own.
fn create_lock(lock: &Path) -> std::io::Result<File> {
    let started = Instant::now();
    loop {
        let parent_created = lock.parent().map_or(Ok(()), make_shared_dirs);
        match parent_created.and_then(|()| File::options().write(true).create_new(true).open(lock))
        {
            // `git pack-refs` can remove the directory, which is empty, between both calls.
            Err(error)
                if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound)
                    && started.elapsed() < LOCK_TIMEOUT =>
            {
                std::thread::sleep(LOCK_POLL);
            }
            opened => return opened,
        }
    }
}
