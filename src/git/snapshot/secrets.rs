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

use super::beside;
use super::cache::{
    Basis, Cache, CacheOrigin, CachedFolder, CachedName, Sizes, Times, Writer, mark,
};
use super::folder::join;
use super::limits::{SECRET_DIRS, SECRETS, SECRETS_IN, SnapshotLimits, shown};
use super::share::{FOLDERS, in_parts};
use crate::git::repository::Repository;
use crate::git::stat::{NameKind, Stamp, is_absent, look, look_at, names, open_below};
use keys::KeySearch;

const GIT: &[u8] = b".git";
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

struct SecretFinder<'a> {
    workdir: PathBuf,
    limits: &'a SnapshotLimits,
}

/// A search for secrets among the user's files. It can run in its own thread.
pub struct SecretSearch<'a> {
    finder: SecretFinder<'a>,
    kept: PathBuf,
    basis: Basis,
    /// The private index of the last snapshot.
    last: Option<Arc<Cache>>,
}

/// Result of a search.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FoundSecrets {
    /// Paths of files with the name of a secret.
    pub named: Vec<Vec<u8>>,
    /// Paths of other files that contain a key.
    pub keyed: Vec<Vec<u8>>,
    /// Directories in which their owner cannot add or remove entries.
    pub closed: Vec<Vec<u8>>,
}

struct KeptFolders {
    cache: Cache,
    /// By directory number, whether it is unchanged.
    same: Vec<Sameness>,
}

#[derive(Clone, Copy)]
struct Sameness {
    is_same: bool,
    writable: bool,
}

struct SearchedFolder {
    path: Vec<u8>,
    /// `None` if the directory could not be listed.
    times: Option<Times>,
    writable: bool,
    folders: Vec<Vec<u8>>,
    /// Names of its secrets.
    secrets: Vec<Vec<u8>>,
}

#[derive(Default)]
struct FoundFolders {
    /// Numbers of unchanged directories in the cache.
    same: Vec<usize>,
    listed: Vec<SearchedFolder>,
    unknown: Vec<Vec<u8>>,
}

/// Returns the paths of secrets in the given directories of the worktree, whose paths contain no
/// symlink. Uses no cache.
///
/// Fails if a directory cannot be listed that a plan's command could list.
pub fn secrets_in(
    workdir: &Path,
    limits: &SnapshotLimits,
    folders: Vec<Vec<u8>>,
) -> io::Result<Vec<Vec<u8>>> {
    if !limits.leave_secrets || folders.is_empty() {
        return Ok(Vec::new());
    }

    let finder = SecretFinder {
        workdir: workdir.to_owned(),
        limits,
    };
    let top = finder.open()?;
    let mut found = FoundFolders {
        unknown: folders,
        ..FoundFolders::default()
    };
    while !found.unknown.is_empty() {
        let unknown = std::mem::take(&mut found.unknown);
        for mut folder in finder.list_all(&top, &unknown)? {
            found.unknown.append(&mut folder.folders);
            found.listed.push(folder);
        }
    }
    Ok(found.secrets(None))
}

impl<'a> SecretSearch<'a> {
    /// Prepares a search. `kept` is its cache. `index` is the private index of the last snapshot:
    /// directories that changed after that snapshot are listed again next time.
    pub fn new(
        repository: &Repository,
        limits: &'a SnapshotLimits,
        (kept, index): (&Path, &Path),
    ) -> SecretSearch<'a> {
        let hash = repository.gix.object_hash();
        let last = repository.loaded.private_index(index, hash);
        let mut choice = DefaultHasher::new();
        (limits.leave_secrets, &limits.exclude, &limits.include).hash(&mut choice);
        repository.workdir().hash(&mut choice);
        // Another version can know other patterns.
        (SECRETS, SECRET_DIRS, SECRETS_IN).hash(&mut choice);
        env!("CARGO_PKG_VERSION").hash(&mut choice);

        SecretSearch {
            finder: SecretFinder {
                workdir: repository.workdir().to_owned(),
                limits,
            },
            kept: kept.to_owned(),
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
            // Commands may read the contents of the directory then.
            Err(_) if !self.finder.limits.leave_secrets => Ok(FoundSecrets::default()),
            found => found,
        }
    }

    fn search(&self) -> anyhow::Result<FoundSecrets> {
        let top = self.finder.open()?;
        let cache = Cache::load(&self.kept, self.basis.root.kind());
        let cache = cache.filter(|cache| cache.basis.choice == self.basis.choice);
        let kept = cache.map(|cache| KeptFolders::compare(cache, &top));

        let mut found = FoundFolders::default();
        found.enter(kept.as_ref(), b"");
        while !found.unknown.is_empty() {
            let unknown = std::mem::take(&mut found.unknown);
            for folder in self.finder.list_all(&top, &unknown)? {
                let folders = folder.folders.iter();
                folders.for_each(|path| found.enter(kept.as_ref(), path));
                found.listed.push(folder);
            }
        }

        let closed = found.closed(kept.as_ref());
        let named = found.secrets(kept.as_ref());
        self.keep(kept.as_ref(), found);
        let keys = KeySearch {
            limits: self.finder.limits,
            last: self.last.as_deref(),
        };
        let keyed = match self.finder.limits.leave_secrets {
            true => keys.run(&top),
            false => Vec::new(),
        };
        Ok(FoundSecrets {
            named,
            keyed,
            closed,
        })
    }

    /// Writes the cache. Ignores errors: it only saves time.
    fn keep(&self, kept: Option<&KeptFolders>, found: FoundFolders) {
        let is_known =
            found.listed.is_empty() && kept.is_some_and(|kept| kept.same.len() == found.same.len());
        // Without the time of a snapshot, no directory could be trusted later.
        if is_known || self.basis.stamp == Stamp::default() {
            return;
        }

        let mut folders = found.listed;
        if let Some(kept) = kept {
            folders.extend(found.same.iter().map(|&number| kept.folder(number)));
        }
        folders.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let written = self.written(&folders);
        let file = self.kept.parent().map(beside).and_then(Result::ok);
        if let Some((written, file)) = written.zip(file) {
            let _ = written.save(file, &self.kept);
        }
    }

    fn written(&self, found: &[SearchedFolder]) -> Option<Cache> {
        let length = |folder: &SearchedFolder| {
            let names = folder.secrets.iter().map(Vec::len);
            folder.path.len() + names.sum::<usize>()
        };
        let sizes = Sizes {
            folders: found.len(),
            entries: found.iter().map(|folder| folder.secrets.len()).sum(),
            names: found.iter().map(length).sum(),
        };
        let none = self.basis.root;
        let mut writer = Writer::new(sizes, none.as_slice().len());
        for folder in found {
            let parent = parent(&folder.path);
            let parent = found.binary_search_by(|other| other.path.as_slice().cmp(parent));
            let record = CachedFolder {
                path: &folder.path,
                parent: parent.ok()? as u32,
                entries: 0..0,
                marks: folder.times.map_or(mark::RELIST, |_| 0),
                times: folder.times.unwrap_or_default(),
                tree: none,
            };
            writer.folder(&record, |writer| {
                let secrets = folder.secrets.iter();
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
            FOLDER,
            rustix::fs::Mode::empty(),
        )?;
        Ok(top)
    }

    fn list_all(&self, top: &OwnedFd, folders: &[Vec<u8>]) -> io::Result<Vec<SearchedFolder>> {
        let parts = in_parts(0..folders.len(), FOLDERS, |part| {
            let listed = folders[part].iter().map(|path| self.list(top, path));
            listed
                .filter_map(Result::transpose)
                .collect::<io::Result<Vec<_>>>()
        });
        let parts = parts.into_iter().collect::<io::Result<Vec<_>>>()?;
        Ok(parts.into_iter().flatten().collect())
    }

    /// Lists a directory; `None` if it is missing. Fails if commands could list it and we cannot,
    /// because its secrets would not be hidden from them.
    fn list(&self, top: &OwnedFd, path: &[u8]) -> io::Result<Option<SearchedFolder>> {
        let mut listed = SearchedFolder {
            path: path.to_vec(),
            times: None,
            writable: true,
            folders: Vec::new(),
            secrets: Vec::new(),
        };
        let folder = match path.is_empty() {
            true => top.try_clone(),
            false => open_below(top, path, FOLDER),
        };
        let folder = match folder {
            Ok(folder) => folder,
            Err(error) if is_absent(&error) => return Ok(None),
            // Commands cannot list it either, unless the user owns it and they change its mode.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !self.is_own(path) => {
                return Ok(Some(listed));
            }
            Err(error) => {
                let words = format!("`{}` cannot be listed: {error}", shown(path));
                return Err(io::Error::new(error.kind(), words));
            }
        };

        let seen = look_at(&folder)?;
        (listed.times, listed.writable) = (Some(Times::from(&seen.stat)), seen.writable);
        for (name, kind) in names(&folder)?.into_iter().filter(|(name, _)| name != GIT) {
            let at = join(path, &name);
            match kind {
                NameKind::Folder => listed.folders.push(at),
                _ if self.limits.is_secret(&at) => listed.secrets.push(name),
                _ => {}
            }
        }
        Ok(Some(listed))
    }

    fn is_own(&self, path: &[u8]) -> bool {
        let own = rustix::process::geteuid().as_raw();
        let found = self
            .workdir
            .join(OsStr::from_bytes(path))
            .symlink_metadata();
        found.is_ok_and(|found| found.uid() == own)
    }
}

impl KeptFolders {
    fn compare(cache: Cache, top: &OwnedFd) -> KeptFolders {
        let same = in_parts(0..cache.folder_count(), FOLDERS, |part| {
            let same = part.map(|number| compare(&cache, number, top));
            same.collect::<Vec<Sameness>>()
        });
        let same = same.concat();
        KeptFolders { cache, same }
    }

    fn secrets(&self, number: usize) -> impl Iterator<Item = &[u8]> {
        let entries = self.cache.folder(number).entries;
        entries.map(|at| self.cache.entry(at).name)
    }

    /// Returns a directory without its subdirectories, which have records of their own.
    fn folder(&self, number: usize) -> SearchedFolder {
        let folder = self.cache.folder(number);
        SearchedFolder {
            path: folder.path.to_vec(),
            times: Some(folder.times),
            writable: self.same[number].writable,
            folders: Vec::new(),
            secrets: self.secrets(number).map(<[u8]>::to_vec).collect(),
        }
    }
}

impl FoundFolders {
    /// Adds a directory: unchanged ones from the cache, with their subdirectories, the others to
    /// the list of directories to list.
    fn enter(&mut self, kept: Option<&KeptFolders>, path: &[u8]) {
        let known = kept.and_then(|kept| Some((kept, kept.cache.find_folder(path)?)));
        let Some((kept, first)) = known else {
            self.unknown.push(path.to_vec());
            return;
        };

        let mut numbers = vec![first];
        while let Some(number) = numbers.pop() {
            if kept.same[number].is_same {
                self.same.push(number);
                let children = kept.cache.children(number).iter();
                numbers.extend(children.map(|&child| child as usize));
            } else {
                self.unknown.push(kept.cache.folder(number).path.to_vec());
            }
        }
    }

    fn secrets(&self, kept: Option<&KeptFolders>) -> Vec<Vec<u8>> {
        let listed = self.listed.iter().flat_map(|folder| {
            let names = folder.secrets.iter();
            names.map(|name| join(&folder.path, name))
        });
        let same = kept.into_iter().flat_map(|kept| {
            self.same.iter().flat_map(move |&number| {
                let folder = kept.cache.folder(number).path;
                kept.secrets(number).map(move |name| join(folder, name))
            })
        });
        listed.chain(same).collect()
    }

    fn closed(&self, kept: Option<&KeptFolders>) -> Vec<Vec<u8>> {
        let listed = self.listed.iter().filter(|folder| !folder.writable);
        let listed = listed.map(|folder| folder.path.clone());
        let same = kept.into_iter().flat_map(|kept| {
            let closed = self
                .same
                .iter()
                .filter(|&&number| !kept.same[number].writable);
            closed.map(|&number| kept.cache.folder(number).path.to_vec())
        });
        listed.chain(same).collect()
    }
}

/// Compares a directory with the cache. Times within the clock tick of the snapshot prove nothing.
fn compare(cache: &Cache, number: usize, top: &OwnedFd) -> Sameness {
    let kept = cache.folder(number);
    let seen = match kept.path.is_empty() {
        true => look_at(top),
        false => look(top, kept.path),
    };
    let Ok(seen) = seen else {
        return Sameness {
            is_same: false,
            writable: true,
        };
    };

    let times = Times::from(&seen.stat);
    let is_sure = !cache.basis.stamp.is_racy_at(times.mtime, times.ctime);
    Sameness {
        is_same: kept.marks & mark::RELIST == 0 && kept.times == times && is_sure,
        writable: seen.writable,
    }
}

fn parent(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&byte| byte == b'/');
    &path[..end.unwrap_or_default()]
}

fn secret(name: &[u8], none: ObjectId) -> CachedName<&[u8]> {
    CachedName {
        name,
        kind: EntryKind::Blob,
        id: none,
        stat: Stat::default(),
        basis: 0,
        standing: CacheOrigin::Watched,
    }
}

#[cfg(test)]
mod tests;
