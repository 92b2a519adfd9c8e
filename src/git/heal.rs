//! Refs of ours that a crash damaged, and lock files that one left: found, and put right.
//!
//! Power that is lost before a ref's bytes are on disk leaves an empty file, which breaks the
//! user's own `git gc` and `git fetch` too. Locks that are not below `refs/teddy/` are never
//! touched.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::object::CommitId;
use super::reference::Expected;
use super::repository::Repository;
use crate::host::file::{make_folders, read_regular};

/// A ref is an id and a line end, or another ref's name.
const MAX_REF: u64 = 8 << 10;
/// A log of a million moves is smaller.
const MAX_LOG: u64 = 256 << 20;

/// Where our refs are.
const OURS: &str = "refs/teddy";
/// How long a lock must stand unchanged before nobody can be about to use it.
const STALE: Duration = Duration::from_secs(1);
/// How often a lock that is waited for is looked at.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a ref is looked at before it counts as broken: while git repacks, an object can hide
/// for a moment.
const LOOKS: u32 = 4;
/// How many lines of a ref's log are looked at.
const MOST_LINES: usize = 50;

/// A lock of git's own.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ForeignLock {
    /// The file.
    pub path: PathBuf,
    /// How long it has been there, in seconds.
    pub seconds: u64,
}

impl Repository {
    /// Returns the refs below `refs/teddy/` that name no object that is there, sorted.
    ///
    /// # Errors
    /// Where the refs cannot be listed.
    pub fn broken_references(&self) -> anyhow::Result<Vec<String>> {
        let mut broken = self.seemingly_broken()?;
        for look in 1..LOOKS {
            if broken.is_empty() {
                break;
            }
            std::thread::sleep(PAUSE * look);
            let again = Repository::open(self.workdir())?.seemingly_broken()?;
            broken.retain(|name| again.contains(name));
        }
        Ok(broken)
    }

    /// Returns the refs that name no object that is found at once.
    fn seemingly_broken(&self) -> anyhow::Result<Vec<String>> {
        let mut broken = Vec::new();
        for path in self
            .loose_references()?
            .into_iter()
            .filter(|path| !is_lock(path))
        {
            let text = read_regular(&path, MAX_REF).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let whole = text.starts_with("ref: ")
                || text
                    .trim_end()
                    .parse()
                    .is_ok_and(|id: CommitId| self.is_readable(id));
            if !whole && let Some(name) = self.name_of(&path) {
                broken.push(name);
            }
        }
        for reference in self
            .references(OURS)?
            .into_iter()
            .filter(|reference| !self.is_readable(reference.target))
        {
            broken.push(reference.name);
        }
        broken.sort();
        broken.dedup();
        Ok(broken)
    }

    /// Returns the commits that a ref pointed at by its log and that are there, newest first.
    pub fn logged(&self, name: &str) -> Vec<CommitId> {
        let log = self.common_dir().join("logs").join(name);
        let text = read_regular(&log, MAX_LOG).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let ids = text
            .lines()
            .rev()
            .take(MOST_LINES)
            .filter_map(|line| line.split(' ').nth(1)?.parse().ok());
        ids.filter(|&id| self.commit(id).is_ok()).collect()
    }

    /// Gives a broken ref a commit, or takes it away where there is none; its bytes are kept in
    /// `aside`.
    ///
    /// # Errors
    /// Where the ref cannot be written.
    pub fn mend(&self, name: &str, commit: Option<CommitId>, aside: &Path) -> anyhow::Result<()> {
        let path = self.common_dir().join(name);
        if path.is_file() {
            make_folders(aside)?;
            std::fs::copy(&path, aside.join(name.replace('/', "-")))
                .with_context(|| format!("keeping what `{name}` was"))?;
        }
        self.trim_log(name, aside)?;
        let Some(commit) = commit else {
            let removed = if path.is_file() {
                std::fs::remove_file(&path)
            } else {
                Ok(())
            };
            removed.with_context(|| format!("removing `{name}`"))?;
            if self
                .references(OURS)?
                .iter()
                .any(|other| other.name == name && !self.has(other.target))
            {
                self.delete_reference(name, Expected::Any)?;
            }
            return Ok(());
        };
        // As git does it: whoever looks sees the old file or the new one.
        let lock = path.with_file_name(format!(
            "{}.lock",
            path.file_name().unwrap_or_default().to_string_lossy()
        ));
        if let Some(folder) = path.parent() {
            make_folders(folder)?;
        }
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&lock)
            .with_context(|| format!("locking `{name}`"))?;
        std::io::Write::write_all(&mut file, format!("{commit}\n").as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&lock, &path).with_context(|| format!("writing `{name}`"))
    }

    /// Takes the lines out of a ref's log that name commits which are gone: `git fsck` reports each
    /// of them for ever. The log as it was is kept in `aside`.
    fn trim_log(&self, name: &str, aside: &Path) -> anyhow::Result<()> {
        let path = self.common_dir().join("logs").join(name);
        let Ok(text) = read_regular(&path, MAX_LOG) else {
            return Ok(());
        };
        let text = String::from_utf8_lossy(&text);
        let is_there = |id: &str| {
            let null = id.bytes().all(|byte| byte == b'0');
            null || id.parse().is_ok_and(|id: CommitId| self.is_readable(id))
        };
        let kept: String = text
            .split_inclusive('\n')
            .filter(|line| line.splitn(3, ' ').take(2).all(is_there))
            .collect();
        if kept.len() == text.len() {
            return Ok(());
        }

        let copy = aside.join(format!("{}.log", name.replace('/', "-")));
        make_folders(aside)?;
        std::fs::copy(&path, copy).with_context(|| format!("keeping the log of `{name}`"))?;
        crate::host::file::write_atomic(&path, kept.as_bytes())
            .with_context(|| format!("writing the log of `{name}`"))
    }

    /// Removes lock files of refs below `refs/teddy/` whose process is gone; returns the refs. The
    /// caller holds the lock; `is_in_use` knows the refs that move without it.
    ///
    /// # Errors
    /// Where one cannot be removed.
    pub fn remove_stale_locks(
        &self,
        is_in_use: &dyn Fn(&str) -> bool,
    ) -> anyhow::Result<Vec<String>> {
        let mut removed = Vec::new();
        for path in self
            .loose_references()?
            .into_iter()
            .filter(|path| is_lock(path))
        {
            let Some(name) = self.name_of(&path.with_extension("")) else {
                continue;
            };
            if !is_in_use(&name) && outlives(&path) {
                std::fs::remove_file(&path)
                    .with_context(|| format!("removing `{}`", path.display()))?;
                removed.push(name);
            }
        }
        Ok(removed)
    }

    /// Returns the locks of git's own that stand in the way of the user's git.
    pub fn foreign_locks(&self) -> Vec<ForeignLock> {
        let common = self.common_dir();
        let names = [
            "index.lock",
            "HEAD.lock",
            "config.lock",
            "packed-refs.lock",
            "shallow.lock",
        ];
        let mut paths: Vec<PathBuf> = names
            .iter()
            .flat_map(|name| [common.join(name), self.git_dir().join(name)])
            .collect();
        paths.sort();
        paths.dedup();
        let age = |path: &PathBuf| {
            let metadata = std::fs::symlink_metadata(path).ok()?;
            Some(
                metadata
                    .modified()
                    .ok()?
                    .elapsed()
                    .unwrap_or_default()
                    .as_secs(),
            )
        };
        paths
            .into_iter()
            .filter_map(|path| age(&path).map(|seconds| ForeignLock { path, seconds }))
            .collect()
    }

    /// Returns every file below `refs/teddy/`.
    fn loose_references(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut folders = vec![self.common_dir().join(OURS)];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => {
                    return Err(error).with_context(|| format!("listing `{}`", folder.display()));
                }
            };
            for entry in entries.flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                    Ok(kind) if kind.is_file() => files.push(entry.path()),
                    _ => {}
                }
            }
        }
        files.sort();
        Ok(files)
    }

    /// Returns the name of the ref that a file holds.
    fn name_of(&self, path: &Path) -> Option<String> {
        let name = path.strip_prefix(self.common_dir()).ok()?.to_str()?;
        gix::refs::FullName::try_from(name)
            .ok()
            .map(|_| name.to_owned())
    }
}

/// Returns whether a file is a ref's lock.
fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "lock")
}

/// Waits a moment for a lock to go or to be taken anew; returns whether it is still the same one.
fn outlives(path: &Path) -> bool {
    let look = || {
        std::fs::symlink_metadata(path)
            .ok()
            .and_then(|metadata| Some((metadata.modified().ok()?, metadata.len())))
    };
    let Some(first) = look() else { return false };
    let (started, age) = (Instant::now(), first.0.elapsed().unwrap_or_default());
    while started.elapsed() + age < STALE {
        std::thread::sleep(PAUSE);
        if look() != Some(first) {
            return false;
        }
    }
    look() == Some(first)
}
