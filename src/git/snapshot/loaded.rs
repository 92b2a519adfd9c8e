//! Indexes that this process has read, the user's own and private ones, for whoever asks next: a
//! turn looks at the files more than once, and with many files each index is large.

use std::cell::{OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use gix::index::State;
use gix::index::entry::Stat;

use super::cache::Cache;
use super::tracked::Index;
use crate::git::stat::{NameStat, Stamp};

/// A private index of fewer bytes is read when it is needed.
const LARGE: u32 = 256 << 10;
/// One of fewer names is made and written before the work goes on.
const MANY: usize = 2048;

/// What was read.
#[derive(Default)]
pub(in crate::git) struct Loaded {
    /// The user's index, with the stat that its file had.
    user: RefCell<Option<(Stat, Arc<Index>)>>,
    /// The private index that was read or made last.
    private: RefCell<Option<PrivateIndex>>,
}

/// A private index, which may still be read or made by a thread.
struct PrivateIndex {
    /// Its file.
    path: PathBuf,
    /// What is in it, once that is there.
    cache: OnceCell<Arc<Cache>>,
    /// Where it comes from.
    coming: Receiver<Arc<Cache>>,
    /// What becomes of the file.
    file: IndexFile,
}

/// What becomes of the file of a private index.
enum IndexFile {
    /// It had this stat.
    Known(Option<Stat>),
    /// It is being read or written.
    Busy(JoinHandle<Option<Stat>>),
}

impl Loaded {
    /// Returns the user's index as it was read, if it still has this stat.
    pub(in crate::git) fn user_index(&self, now: &Stat) -> Option<Arc<Index>> {
        let user = self.user.borrow();
        let found = user.as_ref().filter(|(then, _)| then == now);
        found.map(|(_, index)| Arc::clone(index))
    }

    /// Keeps the user's index, unless it may have changed once more since it was read.
    pub(super) fn keep_user_index(&self, then: &Stat, stamp: Stamp, index: &Arc<Index>) {
        if !stamp.is_racy(then) {
            *self.user.borrow_mut() = Some((*then, Arc::clone(index)));
        }
    }

    /// Takes an index for the user's where there is no file of one.
    pub(in crate::git) fn take_for_users(&self, state: State) {
        *self.user.borrow_mut() = Some((Stat::default(), Arc::new(Index { state })));
    }

    /// Begins to read a large private index, for whoever asks for it in a moment.
    pub(super) fn read_ahead(&self, path: &Path, hash: gix::hash::Kind) {
        let mut private = self.private.borrow_mut();
        let is_large = || stat_of(path).is_some_and(|stat| stat.size >= LARGE);
        if private.is_none() && is_large() {
            *private = Some(PrivateIndex::read(path, hash, true));
        }
    }

    /// Returns a private index. It is read anew only if it is another file than the one that was
    /// read or written last.
    pub(super) fn private_index(&self, path: &Path, hash: gix::hash::Kind) -> Option<Arc<Cache>> {
        let mut private = self.private.borrow_mut();
        if let Some(known) = private.as_mut()
            && known.path == path
            && known.is_newest()
            && let Some(cache) = known.cache()
        {
            return Some(cache);
        }

        // A file that is still being written gets its name first.
        *private = None;
        *private = Some(PrivateIndex::read(path, hash, false));
        private.as_ref().and_then(PrivateIndex::cache)
    }

    /// Replaces a private index by what `make` makes of so many names, many of them while the work goes
    /// on. It only saves time: a full disk is no reason to fail.
    pub(super) fn save(
        &self,
        (names, make): (usize, impl FnOnce() -> Option<Cache> + Send + 'static),
        file: tempfile::NamedTempFile,
        path: &Path,
    ) {
        let mut private = self.private.borrow_mut();
        *private = None;
        let made = PrivateIndex::of(path, names >= MANY, |path, send| {
            let cache = Arc::new(make()?);
            let _ = send.send(Arc::clone(&cache));
            cache.save(file, path).ok()?;
            stat_of(path)
        });
        *private = Some(made);
    }

    /// Forgets the private index that was read or written last.
    pub(super) fn forget_private_index(&self) {
        *self.private.borrow_mut() = None;
    }
}

impl PrivateIndex {
    /// Returns the one at a path, of which `work` sends what is in it and says which stat its file has,
    /// on a thread if it is to.
    fn of(
        path: &Path,
        on_thread: bool,
        work: impl FnOnce(&Path, Sender<Arc<Cache>>) -> Option<Stat> + Send + 'static,
    ) -> PrivateIndex {
        let ((send, coming), file) = (channel(), path.to_owned());
        let work = move || work(&file, send);
        let file = match on_thread {
            false => IndexFile::Known(work()),
            true => match std::thread::Builder::new().spawn(work) {
                Ok(busy) => IndexFile::Busy(busy),
                Err(_) => IndexFile::Known(None),
            },
        };
        PrivateIndex {
            path: path.to_owned(),
            cache: OnceCell::new(),
            coming,
            file,
        }
    }

    /// Reads the one at a path.
    fn read(path: &Path, hash: gix::hash::Kind, on_thread: bool) -> PrivateIndex {
        PrivateIndex::of(path, on_thread, move |path, send| {
            let then = stat_of(path)?;
            let _ = send.send(Arc::new(Cache::load(path, hash)?));
            Some(then)
        })
    }

    /// Returns what is in it, if it could be read or made.
    fn cache(&self) -> Option<Arc<Cache>> {
        if self.cache.get().is_none()
            && let Ok(cache) = self.coming.recv()
        {
            let _ = self.cache.set(cache);
        }
        self.cache.get().map(Arc::clone)
    }

    /// Returns whether nobody has written a newer one.
    fn is_newest(&mut self) -> bool {
        if let IndexFile::Busy(busy) = &self.file
            && !busy.is_finished()
        {
            return true;
        }
        self.wait();
        matches!(&self.file, IndexFile::Known(then) if then.is_some() && *then == stat_of(&self.path))
    }

    /// Waits until the file is read or written.
    fn wait(&mut self) {
        let file = std::mem::replace(&mut self.file, IndexFile::Known(None));
        self.file = match file {
            IndexFile::Busy(busy) => IndexFile::Known(busy.join().unwrap_or_default()),
            known @ IndexFile::Known(_) => known,
        };
    }
}

impl Drop for PrivateIndex {
    fn drop(&mut self) {
        self.wait();
    }
}

/// Returns the stat of a file.
pub(in crate::git) fn stat_of(path: &Path) -> Option<Stat> {
    let seen = rustix::fs::lstat(path).ok()?;
    Some(NameStat::from(seen).stat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::object::TreeId;
    use crate::git::repository::Repository;
    use crate::git::snapshot::limits::SnapshotLimits;
    use crate::git::snapshot::{forget, snapshot};

    /// Makes a repository with so many files.
    fn repository(files: usize) -> (tempfile::TempDir, Repository) {
        let folder = tempfile::tempdir().unwrap();
        gix::init(folder.path()).unwrap();
        for number in 0..files {
            let path = folder.path().join(format!("{}/{number}", number % 7));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, number.to_string()).unwrap();
        }
        let repository = Repository::open(folder.path()).unwrap();
        (folder, repository)
    }

    #[test]
    fn a_large_private_index_is_read_while_it_is_written_and_whole_afterwards() {
        for files in [10, 20_000] {
            let (folder, repository) = repository(files);
            let index = folder.path().join(".git/teddy/index/main");
            let take = |repository: &Repository| {
                let limits = SnapshotLimits::none();
                snapshot(repository, &index, &limits, &[]).unwrap().tree
            };

            let first = take(&repository);
            assert_eq!(take(&repository), first);
            std::fs::write(folder.path().join("0/0"), "changed").unwrap();
            let second = take(&repository);
            assert_ne!(second, first);

            // The end of its repository waits for it, and another process reads the same.
            drop(repository);
            let cache = Cache::load(&index, gix::hash::Kind::Sha1).unwrap();
            assert_eq!(cache.basis.root, second.0);
            let anew = || Repository::open(folder.path()).unwrap();
            assert_eq!(take(&anew()), second);

            // One that was read ahead of its time is not believed once there is another.
            let known = |early: &Repository| {
                let cache = early.loaded.private_index(&index, gix::hash::Kind::Sha1);
                TreeId(cache.unwrap().basis.root)
            };
            let (early, late) = (anew(), anew());
            for repository in [&early, &late] {
                repository.loaded.read_ahead(&index, gix::hash::Kind::Sha1);
            }
            assert_eq!(known(&early), second);
            std::fs::write(folder.path().join("0/0"), "once more").unwrap();
            let third = take(&anew());
            assert_ne!(third, second);
            assert_eq!([known(&early), known(&late)], [third, third]);
        }
    }

    #[test]
    fn a_private_index_that_is_forgotten_or_of_another_process_is_not_believed() {
        let (folder, here) = repository(20);
        let index = folder.path().join(".git/teddy/index/main");
        let known = |repository: &Repository| {
            let hash = gix::hash::Kind::Sha1;
            let cache = repository.loaded.private_index(&index, hash);
            cache.map(|cache| cache.basis.root)
        };
        let take = |repository: &Repository| {
            let limits = SnapshotLimits::none();
            snapshot(repository, &index, &limits, &[]).unwrap().tree.0
        };

        let first = take(&here);
        assert_eq!(known(&here), Some(first));
        std::fs::write(folder.path().join("0/0"), "changed").unwrap();
        let second = take(&Repository::open(folder.path()).unwrap());
        assert_eq!(known(&here), Some(second));
        forget(&here, &index);
        assert_eq!(known(&here), None);
    }
}
