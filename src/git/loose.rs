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

use super::During;
use super::object::CommitId;
use super::reference::{Expected, MoveError};
use super::repository::Repository;
use crate::host::file::{append_regular, make_folders, read_regular_text};

/// A ref is an id and a line end, or another ref's name.
const MAX_REF: u64 = 8 << 10;

/// How long another's lock of a ref is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked at.
const PAUSE: Duration = Duration::from_millis(10);

/// A ref that nobody else moves while this is held.
struct Locked<'a> {
    /// The repository.
    repository: &'a Repository,
    /// The ref's full name.
    name: gix::refs::FullName,
    /// Its file.
    path: PathBuf,
    /// The lock; nothing once it has become the file.
    lock: Option<PathBuf>,
    /// The lock, open.
    file: File,
}

impl Repository {
    /// Moves a ref, if it is still what the caller saw; its log gets a line.
    ///
    /// What it points at is durable before, whoever calls; the move itself is after
    /// [`Repository::sync_reference`].
    ///
    /// # Errors
    /// [`MoveError::Moved`] if it is not, and nothing is changed.
    pub fn move_reference(
        &self,
        name: &str,
        expected: Expected,
        new: CommitId,
        log: &str,
    ) -> Result<(), MoveError> {
        self.flush()?;

        let during = || format!("cannot write `{name}`");
        let locked = Locked::take(self, name).with_context(during)?;
        let old = locked.now().with_context(during)?;
        let is_as_seen = match expected {
            Expected::Absent => old.is_none(),
            Expected::At(commit) => old == Some(commit),
            Expected::Any => true,
        };
        if !is_as_seen {
            return Err(MoveError::Moved {
                name: name.to_owned(),
            });
        }
        // As git does, while the ref is locked. The log tells what was; without a line in it
        // nothing is lost but that.
        let _ = self.log(name, (old, new), log);
        Ok(locked.set(new).with_context(during)?)
    }

    /// Deletes a ref that is not packed; false where it is. An older commit would show again then,
    /// one whose objects may be gone.
    ///
    /// # Errors
    /// Where it cannot be locked or removed.
    pub fn drop_loose_reference(&self, name: &str) -> anyhow::Result<bool> {
        let locked = Locked::take(self, name)?;
        if locked.packed()?.is_some() {
            return Ok(false);
        }
        let _ = std::fs::remove_file(self.common_dir().join("logs").join(name));
        match std::fs::remove_file(&locked.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("removing `{name}`"))
            }
            _ => Ok(true),
        }
    }

    /// Adds a line to the log of a ref.
    fn log(
        &self,
        name: &str,
        (old, new): (Option<CommitId>, CommitId),
        message: &str,
    ) -> std::io::Result<()> {
        let path = self.common_dir().join("logs").join(name);
        make_folders(path.parent().unwrap_or(&path))?;
        let seconds = crate::host::clock::now().timestamp().as_second();
        let (_, who) = self.signatures(gix::date::Time { seconds, offset: 0 });
        let old = old.map_or_else(|| self.gix.object_hash().null(), Into::into);
        let line = format!(
            "{old} {new} {} <{}> {seconds} +0000\t{message}\n",
            who.name, who.email
        );
        append_regular(&path, line.as_bytes())
    }
}

impl<'a> Locked<'a> {
    /// Locks a ref; git and gix wait for the same file.
    fn take(repository: &'a Repository, name: &str) -> anyhow::Result<Locked<'a>> {
        let full =
            gix::refs::FullName::try_from(name).map_err(|error| anyhow::anyhow!("{error}"))?;
        let path = repository.common_dir().join(name);
        let lock = repository.common_dir().join(format!("{name}.lock"));
        let file =
            create(&lock).with_context(|| format!("cannot make the lock `{}`", lock.display()))?;
        Ok(Locked {
            repository,
            name: full,
            path,
            lock: Some(lock),
            file,
        })
    }

    /// Returns what the ref points at, or nothing where there is none.
    fn now(&self) -> anyhow::Result<Option<CommitId>> {
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
    fn packed(&self) -> anyhow::Result<Option<CommitId>> {
        let refs = &self.repository.gix.refs;
        // See `Repository::reference`; there may be none.
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

    /// Points the ref at a commit: whoever looks sees the old file or the new one.
    fn set(mut self, new: CommitId) -> anyhow::Result<()> {
        self.file.write_all(format!("{new}\n").as_bytes())?;
        // A power cut must not leave a name without a content.
        self.file.sync_data()?;
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
