//! Moving a ref as git does: its own lock, its own file, a line in its log. `packed-refs` and the
//! lock of it are never taken.
//!
//! gix locks `packed-refs` for every move where that file is there, as it is in every clone. Who is
//! killed in that moment leaves a lock of git's own for ever: the user's git could neither delete
//! nor pack a ref, and nobody could tell whose it is. A lock of one of our refs is ours to remove.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::FileRefs;
use crate::git::During as _;
use crate::git::object::id::CommitId;
use crate::git::refs::store::RefsLocked;
use crate::host::file::{make_folders, read_regular_text};

/// A ref is an id and a line end, or another ref's name.
const MAX_REF: u64 = 8 << 10;

/// How long another's lock of a ref is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked at.
const PAUSE: Duration = Duration::from_millis(10);

/// A ref that nobody else moves while this is held.
pub(super) struct Locked<'a> {
    /// The store.
    files: &'a FileRefs,
    /// The ref's full name.
    name: gix::refs::FullName,
    /// Its file.
    path: PathBuf,
    /// The lock; nothing once it has become the file.
    lock: Option<PathBuf>,
    /// The lock, open.
    file: File,
}

impl<'a> Locked<'a> {
    /// Locks a ref; git and gix wait for the same file.
    pub(super) fn take(files: &'a FileRefs, name: &str) -> anyhow::Result<Locked<'a>> {
        let full =
            gix::refs::FullName::try_from(name).map_err(|error| anyhow::anyhow!("{error}"))?;
        let path = files.common.join(name);
        let lock = files.common.join(format!("{name}.lock"));
        let file = match create(&lock) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(RefsLocked { lock }.into());
            }
            made => made.with_context(|| format!("cannot make the lock `{}`", lock.display()))?,
        };

        Ok(Locked {
            files,
            name: full,
            path,
            lock: Some(lock),
            file,
        })
    }

    /// Returns the file of the ref.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what the ref points at, or nothing where there is none.
    pub(super) fn now(&self) -> anyhow::Result<Option<CommitId>> {
        match read_regular_text(&self.path, MAX_REF) {
            Ok(text) => text.trim_end().parse().map(Some),
            // git leaves empty folders where refs were.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => {
                self.packed()
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns what `packed-refs` says.
    pub(super) fn packed(&self) -> anyhow::Result<Option<CommitId>> {
        let refs = &self.files.gix.refs;
        // See `FileRefs::find`; there may be none.
        let _ = refs.force_refresh_packed_buffer();
        let Some(packed) = refs
            .cached_packed_buffer()
            .during("reading `packed-refs`")?
        else {
            return Ok(None);
        };

        let found = packed
            .try_find(self.name.as_ref())
            .during("reading `packed-refs`")?;
        found
            .map(|found| found.target().to_string().parse())
            .transpose()
    }

    /// Writes what the ref is to point at; nobody sees it before [`Locked::set`].
    pub(super) fn write(&mut self, new: CommitId) -> anyhow::Result<()> {
        self.file.write_all(format!("{new}\n").as_bytes())?;
        // A power cut must not leave a name without a content.
        Ok(self.file.sync_data()?)
    }

    /// Points the ref at what was written: whoever looks sees the old file or the new one.
    pub(super) fn set(mut self) -> anyhow::Result<()> {
        let Some(lock) = &self.lock else {
            return Ok(());
        };
        match std::fs::rename(lock, &self.path) {
            Err(error) if error.kind() == ErrorKind::IsADirectory => {
                remove_empty(&self.path)?;
                std::fs::rename(lock, &self.path)?;
            }
            renamed => renamed?,
        }

        // The next lock of this name is somebody else's.
        self.lock = None;
        Ok(())
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.lock.as_ref().map(std::fs::remove_file);
    }
}

/// Removes a folder in which there are only folders, as git leaves them where refs were.
fn remove_empty(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_empty(&entry.path())?;
        }
    }
    std::fs::remove_dir(folder)
}

/// Makes a lock file, once nobody else has it.
fn create(lock: &Path) -> std::io::Result<File> {
    let started = Instant::now();
    loop {
        let made = lock.parent().map_or(Ok(()), make_folders);
        match made.and_then(|()| File::options().write(true).create_new(true).open(lock)) {
            // `git pack-refs` removes folders that have become empty.
            Err(error)
                if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound)
                    && started.elapsed() < PATIENCE =>
            {
                std::thread::sleep(PAUSE);
            }
            opened => return opened,
        }
    }
}
