//! Finds secrets anywhere in the worktree: by their names in all directories, including ignored
//! ones, and by keys in their content. Also finds read-only directories.
//!
//! The names require a walk over all directories. The result is cached in the format of a private
//! index, with the times of each directory and its secrets, so an unchanged directory is not listed
//! again.

mod keys;

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::ObjectId;
use gix::index::entry::Stat;
use gix::objs::tree::EntryKind;
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;

use super::cache::{Basis, Cache, CacheOrigin, CacheWriter, CachedDir, CachedName, Times, mark};
use super::create_temporary;
use super::limits::{SECRET_DIRS, SECRETS, SECRETS_IN, SnapshotLimits, display_path};
use crate::git::paths;
use crate::git::repository::Repository;
use crate::git::snapshot::dir_scan::{DIRS_PER_THREAD, map_parts};
use crate::git::stat::{NameKind, Stamp, is_absent, names, open_below, stat_fd, stat_name};
use keys::{KeySearch, has_mark};

const GIT: &[u8] = b".git";

/// Mark in the cache of a directory of dependencies or build output, next to those of [`mark`].
const OUTPUT: u32 = 1 << 8;
/// The bits above are the number of files in the directory.
const FILES_SHIFT: u32 = 9;

const DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

struct SecretFinder<'a> {
    workdir: PathBuf,
    limits: &'a SnapshotLimits,
}

/// A search for secrets among the user's files. It can run in its own thread.
pub struct SecretSearch<'a> {
    finder: SecretFinder<'a>,
    cache_path: PathBuf,
    basis: Basis,
    /// The private index of the last snapshot.
    last: Option<Arc<Cache>>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct FoundSecrets {
    /// Paths of files with the name of a secret.
    pub by_name: Vec<Vec<u8>>,
    /// Paths of other files that contain a key.
    pub keyed: Vec<Vec<u8>>,
    /// Directories in which their owner cannot add or remove entries.
    pub read_only_dirs: Vec<Vec<u8>>,
}

struct SavedDirs {
    cache: Cache,
    /// By directory number, whether it is unchanged.
    same: Vec<Sameness>,
}

#[derive(Clone, Copy)]
struct Sameness {
    is_same: bool,
    writable: bool,
}

struct SearchedDir {
    path: Vec<u8>,
    /// `None` if the directory could not be listed.
    times: Option<Times>,
    writable: bool,
    dirs: Vec<Vec<u8>>,
    secrets: Vec<Vec<u8>>,
    /// [`OUTPUT`] and the number of files.
    marks: u32,
}

#[derive(Default)]
struct DirSearch {
    /// Numbers of unchanged directories in the cache.
    same: Vec<usize>,
    listed: Vec<SearchedDir>,
    unknown: Vec<Vec<u8>>,
}

/// Returns the paths of secrets in the given directories of the worktree, whose paths contain no
/// symlink. Uses no cache.
///
/// Fails if a directory cannot be listed that a plan's command could list.
pub fn secrets_in(
    workdir: &Path,
    limits: &SnapshotLimits,
    dirs: Vec<Vec<u8>>,
) -> io::Result<Vec<Vec<u8>>> {
    if !limits.leave_secrets || dirs.is_empty() {
        return Ok(Vec::new());
    }

    let finder = SecretFinder {
        workdir: workdir.to_owned(),
        limits,
    };
    let top = finder.open()?;
    let mut search = DirSearch {
        unknown: dirs,
        ..DirSearch::default()
    };
    while !search.unknown.is_empty() {
        let unknown = std::mem::take(&mut search.unknown);
        for mut dir in finder.list_all(&top, &unknown)? {
            search.unknown.append(&mut dir.dirs);
            search.listed.push(dir);
        }
    }
    Ok(search.secrets(None))
}

impl<'a> SecretSearch<'a> {
    /// Prepares a search. `index` is the private index of the last snapshot: directories that
    /// changed after that snapshot are listed again next time.
    pub fn new(
        repository: &Repository,
        limits: &'a SnapshotLimits,
        cache_path: &Path,
        index: &Path,
    ) -> SecretSearch<'a> {
        let hash = repository.gix.object_hash();
        let last = repository.loaded.private_index(index, hash);
        let mut choice = DefaultHasher::new();
        (limits.leave_secrets, &limits.exclude, &limits.include).hash(&mut choice);
        repository.workdir().hash(&mut choice);
        // Another version can know other patterns.
        (SECRETS, SECRET_DIRS, SECRETS_IN).hash(&mut choice);
        (env!("CARGO_PKG_VERSION"), FILES_SHIFT).hash(&mut choice);

        SecretSearch {
            finder: SecretFinder {
                workdir: repository.workdir().to_owned(),
                limits,
            },
            cache_path: cache_path.to_owned(),
            basis: Basis {
                settings: 0,
                choice: choice.finish(),
                force: 0,
                index: Stat::default(),
                tracking: 0,
                stamp: match &last {
                    Some(last) if !repository.read_only => last.basis.stamp,
                    _ => Stamp::default(),
                },
                root: hash.null(),
            },
            last,
        }
    }

    /// Searches the whole worktree. Secrets by content are searched within bounds. Fails if a directory
    /// cannot be listed that a plan's command could list.
    pub fn run(&self) -> anyhow::Result<FoundSecrets> {
        match self.search() {
            // Nothing is hidden from commands then.
            Err(_) if !self.finder.limits.leave_secrets => Ok(FoundSecrets::default()),
            found => found,
        }
    }

    fn search(&self) -> anyhow::Result<FoundSecrets> {
        let top = self.finder.open()?;
        let cache = Cache::load(&self.cache_path, self.basis.root.kind());
        let cache = cache.filter(|cache| cache.basis.choice == self.basis.choice);
        let saved = cache.map(|cache| SavedDirs::compare(cache, &top));

        let mut search = DirSearch::default();
        search.enter(saved.as_ref(), b"");
        while !search.unknown.is_empty() {
            let unknown = std::mem::take(&mut search.unknown);
            for dir in self.finder.list_all(&top, &unknown)? {
                let dirs = dir.dirs.iter();
                dirs.for_each(|path| search.enter(saved.as_ref(), path));
                search.listed.push(dir);
            }
        }

        let read_only_dirs = search.read_only_dirs(saved.as_ref());
        let by_name = search.secrets(saved.as_ref());
        self.save(saved.as_ref(), search);
        let keys = KeySearch {
            limits: self.finder.limits,
            last: self.last.as_deref(),
            saved: saved.as_ref(),
        };
        let keyed = match self.finder.limits.leave_secrets {
            true => keys.run(&top),
            false => Vec::new(),
        };
        Ok(FoundSecrets {
            by_name,
            keyed,
            read_only_dirs,
        })
    }

    /// Writes the cache. Ignores errors: it only saves time.
    fn save(&self, saved: Option<&SavedDirs>, search: DirSearch) {
        let is_known = search.listed.is_empty()
            && saved.is_some_and(|saved| saved.same.len() == search.same.len());
        // Without the time of a snapshot, no directory could be trusted later.
        if is_known || self.basis.stamp == Stamp::default() {
            return;
        }

        let mut dirs = search.listed;
        if let Some(saved) = saved {
            dirs.extend(search.same.iter().map(|&number| saved.dir(number)));
        }
        dirs.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let written = self.written(&dirs);
        let file = self
            .cache_path
            .parent()
            .map(create_temporary)
            .and_then(Result::ok);
        if let Some((written, file)) = written.zip(file) {
            let _ = written.save(file, &self.cache_path);
        }
    }

    fn written(&self, searched: &[SearchedDir]) -> Option<Cache> {
        let none = self.basis.root;
        let mut writer = CacheWriter::new(none.as_slice().len());
        for dir in searched {
            let (parent, _) = paths::split(&dir.path);
            let parent = searched.binary_search_by(|other| other.path.as_slice().cmp(parent));
            let record = CachedDir {
                path: &dir.path,
                parent: parent.ok()? as u32,
                entries: 0..0,
                marks: dir.times.map_or(mark::RELIST, |_| dir.marks),
                times: dir.times.unwrap_or_default(),
                tree: none,
            };
            writer.dir(&record, |writer| {
                let secrets = dir.secrets.iter();
                secrets.for_each(|name| writer.entry(&secret(name, none)));
            });
        }

        writer.finish(&self.basis)
    }
}

impl SecretFinder<'_> {
    fn open(&self) -> io::Result<OwnedFd> {
        let top = crate::host::file::openat(
            rustix::fs::CWD,
            &*self.workdir,
            DIR,
            rustix::fs::Mode::empty(),
        )?;
        Ok(top)
    }

    fn list_all(&self, top: &OwnedFd, dirs: &[Vec<u8>]) -> io::Result<Vec<SearchedDir>> {
        let parts = map_parts(0..dirs.len(), DIRS_PER_THREAD, |part| {
            let listed = dirs[part].iter().map(|path| self.list(top, path));
            listed
                .filter_map(Result::transpose)
                .collect::<io::Result<Vec<_>>>()
        });
        let parts = parts.into_iter().collect::<io::Result<Vec<_>>>()?;
        Ok(parts.into_iter().flatten().collect())
    }

    /// Lists a directory; `None` if it is missing. Fails if commands could list it and we cannot,
    /// because its secrets would not be hidden from them.
    fn list(&self, top: &OwnedFd, path: &[u8]) -> io::Result<Option<SearchedDir>> {
        let mut listed = SearchedDir {
            path: path.to_vec(),
            times: None,
            writable: true,
            dirs: Vec::new(),
            secrets: Vec::new(),
            marks: 0,
        };
        let dir = match path.is_empty() {
            true => top.try_clone(),
            false => open_below(top, path, DIR),
        };
        let dir = match dir {
            Ok(dir) => dir,
            Err(error) if is_absent(&error) => return Ok(None),
            // Commands cannot list it either, unless the user owns it and they change its mode.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !self.is_own(path) => {
                return Ok(Some(listed));
            }
            Err(error) => {
                let message = format!("`{}` cannot be listed: {error}", display_path(path));
                return Err(io::Error::new(error.kind(), message));
            }
        };

        let dir_stat = stat_fd(&dir)?;
        (listed.times, listed.writable) = (Some(Times::from(&dir_stat.stat)), dir_stat.writable);
        let names = names(&dir)?;
        let files = names.iter().filter(|(_, kind)| *kind == NameKind::File);
        // Wraps above 2^23 files; the directory is then listed again.
        listed.marks = (files.count() as u32) << FILES_SHIFT;
        if has_mark(&names) {
            listed.marks |= OUTPUT;
        }
        for (name, kind) in names.into_iter().filter(|(name, _)| name != GIT) {
            let at = paths::join(path, &name);
            match kind {
                NameKind::Dir => listed.dirs.push(at),
                _ if self.limits.is_secret(&at) => listed.secrets.push(name),
                _ => {}
            }
        }
        Ok(Some(listed))
    }

    fn is_own(&self, path: &[u8]) -> bool {
        let own = rustix::process::geteuid().as_raw();
        let metadata = self
            .workdir
            .join(OsStr::from_bytes(path))
            .symlink_metadata();
        metadata.is_ok_and(|metadata| metadata.uid() == own)
    }
}

impl SavedDirs {
    fn compare(cache: Cache, top: &OwnedFd) -> SavedDirs {
        let same = map_parts(0..cache.dir_count(), DIRS_PER_THREAD, |part| {
            let same = part.map(|number| compare(&cache, number, top));
            same.collect::<Vec<Sameness>>()
        });
        let same = same.concat();
        SavedDirs { cache, same }
    }

    fn secrets(&self, number: usize) -> impl Iterator<Item = &[u8]> {
        let entries = self.cache.dir(number).entries;
        entries.map(|at| self.cache.entry(at).name)
    }

    /// Returns a directory without its subdirectories, which have records of their own.
    fn dir(&self, number: usize) -> SearchedDir {
        let dir = self.cache.dir(number);
        SearchedDir {
            path: dir.path.to_vec(),
            times: Some(dir.times),
            writable: self.same[number].writable,
            dirs: Vec::new(),
            secrets: self.secrets(number).map(<[u8]>::to_vec).collect(),
            marks: dir.marks,
        }
    }
}

impl DirSearch {
    /// Adds a directory: unchanged ones from the cache, with their subdirectories, the others to
    /// the list of directories to list.
    fn enter(&mut self, saved: Option<&SavedDirs>, path: &[u8]) {
        let located = saved.and_then(|saved| Some((saved, saved.cache.find_dir(path)?)));
        let Some((saved, first)) = located else {
            self.unknown.push(path.to_vec());
            return;
        };

        let mut numbers = vec![first];
        while let Some(number) = numbers.pop() {
            if saved.same[number].is_same {
                self.same.push(number);
                let children = saved.cache.children(number).iter();
                numbers.extend(children.map(|&child| child as usize));
            } else {
                self.unknown.push(saved.cache.dir(number).path.to_vec());
            }
        }
    }

    fn secrets(&self, saved: Option<&SavedDirs>) -> Vec<Vec<u8>> {
        let listed = self.listed.iter().flat_map(|dir| {
            let names = dir.secrets.iter();
            names.map(|name| paths::join(&dir.path, name))
        });
        let same = saved.into_iter().flat_map(|saved| {
            self.same.iter().flat_map(move |&number| {
                let dir = saved.cache.dir(number).path;
                saved
                    .secrets(number)
                    .map(move |name| paths::join(dir, name))
            })
        });
        listed.chain(same).collect()
    }

    fn read_only_dirs(&self, saved: Option<&SavedDirs>) -> Vec<Vec<u8>> {
        let listed = self.listed.iter().filter(|folder| !folder.writable);
        let listed = listed.map(|folder| folder.path.clone());
        let same = saved.into_iter().flat_map(|kept| {
            let read_only = self
                .same
                .iter()
                .filter(|&&number| !kept.same[number].writable);
            read_only.map(|&number| kept.cache.dir(number).path.to_vec())
        });
        listed.chain(same).collect()
    }
}

/// Compares a directory with the cache. Times within the clock tick of the snapshot prove nothing.
fn compare(cache: &Cache, number: usize, top: &OwnedFd) -> Sameness {
    let cached = cache.dir(number);
    let current = match cached.path.is_empty() {
        true => stat_fd(top),
        false => stat_name(top, cached.path),
    };
    let Ok(seen) = current else {
        return Sameness {
            is_same: false,
            writable: true,
        };
    };

    let times = Times::from(&seen.stat);
    let is_sure = !cache.basis.stamp.is_racy_at(times.mtime, times.ctime);
    Sameness {
        is_same: cached.marks & mark::RELIST == 0 && cached.times == times && is_sure,
        writable: seen.writable,
    }
}

fn secret(name: &[u8], none: ObjectId) -> CachedName<&[u8]> {
    CachedName {
        name,
        kind: EntryKind::Blob,
        id: none,
        stat: Stat::default(),
        basis: 0,
        origin: CacheOrigin::Watched,
    }
}

#[cfg(test)]
mod tests;
