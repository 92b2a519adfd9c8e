//! Finds files with keys in their content among those that no snapshot has: untracked and ignored.
//!
//! A build can leave any number of such files, so the search has bounds: it skips directories of
//! dependencies and build output, nested repositories and large files, and ends after a number of
//! files and bytes, those nearest to the top of the worktree first.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read as _;

use gix::objs::tree::EntryKind;
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;

use super::super::cache::{Cache, CacheOrigin, CachedDir};
use super::super::limits::SnapshotLimits;
use super::{DIR, FILES_SHIFT, GIT, OUTPUT, SavedDirs};
use crate::git::paths;
use crate::git::stat::{NameKind, names, open_below};

/// Larger files are rather data than configuration.
const MAX_FILE: u64 = 256 << 10;
/// Bounds of one search.
const MAX_FILES: usize = 4000;
const MAX_BYTES: u64 = 64 << 20;
/// Directories in which tools put dependencies and build output. Cargo and others mark theirs with a
/// file, too.
const SKIPPED: [&[u8]; 31] = [
    b".bundle",
    b".cache",
    b".cargo",
    b".dart_tool",
    b".gradle",
    b".m2",
    b".mypy_cache",
    b".next",
    b".nox",
    b".nuxt",
    b".parcel-cache",
    b".pytest_cache",
    b".ruff_cache",
    b".stack-work",
    b".svelte-kit",
    b".tox",
    b".turbo",
    b".venv",
    b"__pycache__",
    b"_build",
    b"bower_components",
    b"build",
    b"coverage",
    b"DerivedData",
    b"dist",
    b"node_modules",
    b"Pods",
    b"site-packages",
    b"target",
    b"vendor",
    b"venv",
];
/// Files that mark such a directory.
const MARKS: [&[u8]; 3] = [b"CACHEDIR.TAG", b"pyvenv.cfg", GIT];

pub(super) struct KeySearch<'a> {
    pub(super) limits: &'a SnapshotLimits,
    /// The private index of the last snapshot. What it has recorded is not read.
    pub(super) last: Option<&'a Cache>,
    /// The directories that the last search listed.
    pub(super) saved: Option<&'a SavedDirs>,
}

#[derive(Default)]
struct ReadAmount {
    files: usize,
    bytes: u64,
}

/// Returns whether a directory with these names has dependencies or build output.
pub(super) fn has_mark(names: &[(Vec<u8>, NameKind)]) -> bool {
    names
        .iter()
        .any(|(name, _)| MARKS.contains(&name.as_slice()))
}

fn is_searched(name: &[u8]) -> bool {
    name != GIT && !SKIPPED.contains(&name)
}

impl KeySearch<'_> {
    /// Returns the paths of files with a key. Skips what cannot be read: commands cannot read it
    /// either, or the search for names has failed.
    pub(super) fn run(&self, top: &OwnedFd) -> Vec<Vec<u8>> {
        let (mut paths, mut amount) = (Vec::new(), ReadAmount::default());
        let mut dirs = VecDeque::from([Vec::new()]);
        while let Some(path) = dirs.pop_front() {
            let last = self.last_dir(&path);
            if let Some(subdirs) = self.recorded_dir(&path, last.as_ref()) {
                dirs.extend(subdirs);
                continue;
            }
            let dir = match path.is_empty() {
                true => top.try_clone(),
                false => open_below(top, &path, DIR),
            };
            let listed = dir.and_then(|folder| Ok((names(&folder)?, folder)));
            let Ok((mut names, dir)) = listed else {
                continue;
            };
            if has_mark(&names) && !path.is_empty() {
                continue;
            }

            names.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            for (name, kind) in names {
                let at = paths::join(&path, &name);
                let is_recorded = |(last, dir): &(&Cache, CachedDir<'_>)| {
                    let entry = last.find_entry(dir, &name);
                    entry.is_some_and(|entry| {
                        entry.origin != CacheOrigin::Watched && !entry.id.is_null()
                    })
                };
                match kind {
                    NameKind::Dir if is_searched(&name) => dirs.push_back(at),
                    NameKind::File if !last.as_ref().is_some_and(is_recorded) => {
                        if amount.files >= MAX_FILES || amount.bytes >= MAX_BYTES {
                            return paths;
                        }
                        if self.has_key(&dir, &at, &mut amount) {
                            paths.push(at);
                        }
                    }
                    _ => {}
                }
            }
        }
        paths
    }

    /// Returns what the last snapshot saw of a directory.
    pub(super) fn last_dir(&self, path: &[u8]) -> Option<(&Cache, CachedDir<'_>)> {
        let last = self.last?;
        Some((last, last.dir(last.find_dir(path)?)))
    }

    /// Returns the directories to search in a directory that has not changed since its names were
    /// listed, if the snapshot has all of its files.
    pub(super) fn recorded_dir(
        &self,
        path: &[u8],
        last: Option<&(&Cache, CachedDir<'_>)>,
    ) -> Option<Vec<Vec<u8>>> {
        let saved = self.saved?;
        let number = saved
            .cache
            .find_dir(path)
            .filter(|&n| saved.same[n].is_same)?;
        let dir = saved.cache.dir(number);
        if dir.marks & OUTPUT != 0 && !path.is_empty() {
            return Some(Vec::new());
        }
        // Files that only the user's index has can be missing on disk.
        let is_recorded = |cache: &Cache, at: usize| {
            let entry = cache.entry(at);
            let is_file = matches!(entry.kind, EntryKind::Blob | EntryKind::BlobExecutable);
            is_file && entry.origin == CacheOrigin::Scanned && !entry.id.is_null()
        };
        let recorded = match last {
            Some((_, last)) if last.times != dir.times => return None,
            Some((cache, last)) => {
                let entries = last.entries.clone();
                entries.filter(|&at| is_recorded(cache, at)).count()
            }
            None => 0,
        };
        let subdirs = saved.cache.children(number).iter();
        let subdirs = subdirs.map(|&child| saved.cache.dir(child as usize).path);
        let searched = subdirs.filter(|path| is_searched(paths::split(path).1));
        (recorded as u32 == dir.marks >> FILES_SHIFT)
            .then(|| searched.map(<[u8]>::to_vec).collect())
    }

    fn has_key(&self, dir: &OwnedFd, path: &[u8], amount: &mut ReadAmount) -> bool {
        let Ok(opened) = open_below(dir, paths::split(path).1, OFlags::RDONLY) else {
            return false;
        };
        let file = File::from(opened);
        let size = file.metadata().map(|found| found.len()).unwrap_or(u64::MAX);
        if size == 0 || size > MAX_FILE {
            return false;
        }

        let mut bytes = Vec::new();
        let is_read = file.take(MAX_FILE).read_to_end(&mut bytes).is_ok();
        amount.files += 1;
        amount.bytes += bytes.len() as u64;
        is_read && self.limits.key_in(path, &bytes).is_some()
    }
}
