//! Caches decoded indexes in memory, the user's and private ones: a turn takes several snapshots,
//! and an index of many files is large.
//!
//! A large private index is written by a background thread.

use std::cell::{OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use gix::index::State;
use gix::index::entry::Stat;

use super::cache::Cache;
use super::tracked::Index;
use crate::git::stat::{NameStat, Stamp};

/// Below this number of names, a private index is encoded and written synchronously.
const MANY: usize = 2048;

#[derive(Default)]
pub(in crate::git) struct Loaded {
    /// The user's index with the stat of its file.
    user: RefCell<Option<(Stat, Arc<Index>)>>,
    private: RefCell<Option<PrivateIndex>>,
}

/// A private index, possibly still being written by a thread.
struct PrivateIndex {
    path: PathBuf,
    /// Received from `coming` on first use.
    cache: OnceCell<Arc<Cache>>,
    coming: Receiver<Arc<Cache>>,
    file: IndexFile,
}

enum IndexFile {
    /// Stat of the file; `None` if reading or writing failed.
    Idle(Option<Stat>),
    /// A thread is writing it.
    Busy(JoinHandle<Option<Stat>>),
}

impl Loaded {
    /// Returns the user's index if its stat is still `now`.
    pub(in crate::git) fn user_index(&self, now: &Stat) -> Option<Arc<Index>> {
        let user = self.user.borrow();
        let matching = user.as_ref().filter(|(then, _)| then == now);
        matching.map(|(_, index)| Arc::clone(index))
    }

    /// Keeps the user's index, unless it can have changed again within the same clock tick.
    pub(super) fn keep_user_index(&self, then: &Stat, stamp: Stamp, index: &Arc<Index>) {
        if !stamp.is_racy(then) {
            *self.user.borrow_mut() = Some((*then, Arc::clone(index)));
        }
    }

    /// Sets an index to use if the user's index file does not exist.
    pub(in crate::git) fn take_for_users(&self, state: State) {
        *self.user.borrow_mut() = Some((Stat::default(), Arc::new(Index { state })));
    }

    /// Returns a private index. It is read again only if its file was replaced.
    pub(super) fn private_index(&self, path: &Path, hash: gix::hash::Kind) -> Option<Arc<Cache>> {
        let mut private = self.private.borrow_mut();
        if let Some(loaded) = private.as_mut()
            && loaded.path == path
            && loaded.is_newest()
            && let Some(cache) = loaded.cache()
        {
            return Some(cache);
        }

        // Dropping it waits for its thread, so a new file has its name before we read it.
        *private = None;
        let then = stat_of(path)?;
        let cache = Arc::new(Cache::load(path, hash)?);
        let (_, coming) = channel();
        *private = Some(PrivateIndex {
            path: path.to_owned(),
            cache: OnceCell::from(Arc::clone(&cache)),
            coming,
            file: IndexFile::Idle(Some(then)),
        });
        Some(cache)
    }

    /// Replaces a private index by the result of `make`, in the background if there are `MANY`
    /// names. Ignores errors, for example a full disk: the index only saves time.
    pub(super) fn save(
        &self,
        names: usize,
        make: impl FnOnce() -> Option<Cache> + Send + 'static,
        file: tempfile::NamedTempFile,
        path: &Path,
    ) {
        let mut private = self.private.borrow_mut();
        *private = None;
        let (send, coming) = channel();
        let target = path.to_owned();
        let work = move || {
            let cache = Arc::new(make()?);
            let _ = send.send(Arc::clone(&cache));
            cache.save(file, &target).ok()?;
            stat_of(&target)
        };
        let file = match names >= MANY {
            false => IndexFile::Idle(work()),
            true => match std::thread::Builder::new().spawn(work) {
                Ok(busy) => IndexFile::Busy(busy),
                Err(_) => IndexFile::Idle(None),
            },
        };
        *private = Some(PrivateIndex {
            path: path.to_owned(),
            cache: OnceCell::new(),
            coming,
            file,
        });
    }

    pub(super) fn forget_private_index(&self) {
        *self.private.borrow_mut() = None;
    }
}

impl PrivateIndex {
    /// Returns the index, waiting for its thread; `None` if it failed.
    fn cache(&self) -> Option<Arc<Cache>> {
        if self.cache.get().is_none()
            && let Ok(cache) = self.coming.recv()
        {
            let _ = self.cache.set(cache);
        }
        self.cache.get().map(Arc::clone)
    }

    /// Returns whether no other process replaced the file.
    fn is_newest(&mut self) -> bool {
        // Our own thread is still writing it.
        if let IndexFile::Busy(busy) = &self.file
            && !busy.is_finished()
        {
            return true;
        }
        self.wait();
        matches!(&self.file, IndexFile::Idle(then) if then.is_some() && *then == stat_of(&self.path))
    }

    fn wait(&mut self) {
        let file = std::mem::replace(&mut self.file, IndexFile::Idle(None));
        self.file = match file {
            IndexFile::Busy(busy) => IndexFile::Idle(busy.join().unwrap_or_default()),
            idle @ IndexFile::Idle(_) => idle,
        };
    }
}

impl Drop for PrivateIndex {
    fn drop(&mut self) {
        self.wait();
    }
}

pub(in crate::git) fn stat_of(path: &Path) -> Option<Stat> {
    let raw = rustix::fs::lstat(path).ok()?;
    Some(NameStat::from(raw).stat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repository::Repository;
    use crate::git::snapshot::limits::SnapshotLimits;
    use crate::git::snapshot::{forget_snapshot, take_snapshot};

    fn repository(files: usize) -> (tempfile::TempDir, Repository) {
        let dir = tempfile::tempdir().unwrap();
        gix::init(dir.path()).unwrap();
        for number in 0..files {
            let path = dir.path().join(format!("{}/{number}", number % 7));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, number.to_string()).unwrap();
        }
        let repository = Repository::open(dir.path()).unwrap();
        (dir, repository)
    }

    #[test]
    fn a_large_private_index_is_read_while_it_is_written_and_whole_afterwards() {
        for files in [10, 8_000] {
            let (dir, repository) = repository(files);
            let index = dir.path().join(".git/teddy/index/main");
            let take = |repository: &Repository| {
                let limits = SnapshotLimits::none();
                take_snapshot(repository, &index, &limits, &[])
                    .unwrap()
                    .tree
            };

            let first = take(&repository);
            assert_eq!(take(&repository), first);
            std::fs::write(dir.path().join("0/0"), "changed").unwrap();
            let second = take(&repository);
            assert_ne!(second, first);

            // Dropping the repository waits for the thread.
            drop(repository);
            let cache = Cache::load(&index, gix::hash::Kind::Sha1).unwrap();
            assert_eq!(cache.basis.root, second.0);
            assert_eq!(take(&Repository::open(dir.path()).unwrap()), second);
        }
    }

    #[test]
    fn a_private_index_that_is_forgotten_or_of_another_process_is_not_believed() {
        let (dir, own) = repository(20);
        let index = dir.path().join(".git/teddy/index/main");
        let root_of = |repository: &Repository| {
            let hash = gix::hash::Kind::Sha1;
            let cache = repository.loaded.private_index(&index, hash);
            cache.map(|cache| cache.basis.root)
        };
        let take = |repository: &Repository| {
            let limits = SnapshotLimits::none();
            take_snapshot(repository, &index, &limits, &[])
                .unwrap()
                .tree
                .0
        };

        let first = take(&own);
        assert_eq!(root_of(&own), Some(first));
        std::fs::write(dir.path().join("0/0"), "changed").unwrap();
        let second = take(&Repository::open(dir.path()).unwrap());
        assert_eq!(root_of(&own), Some(second));
        forget_snapshot(&own, &index);
        assert_eq!(root_of(&own), None);
    }
}
