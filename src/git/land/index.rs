//! The index that git commits, and the user's index after the commit.
//!
//! git commits from an index of its own ([`for_commit`]), so that a refused commit leaves the user's
//! index untouched. After the commit [`NewIndex`] adds what landed to the user's index and keeps what
//! the user staged. It takes `index.lock` like git, writes the new index next to the old one and
//! renames it. The lock is a hard link to a file of ours: recovery can tell it from another git's lock.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::git::command::{run_checked, run_with_input};
use crate::git::diff;
use crate::git::merge;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::remove_if_exists;
use crate::git::repository::Repository;
use crate::git::user_git::silent_git_for;
use crate::host::file::sync_open_file;

// Name of the lock in git and here.
const LOCK: &str = "index.lock";
// Second name of our lock, by which recovery recognizes it.
const OWN_LOCK: &str = "teddy-index.own";
const NEW: &str = "teddy-index";
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

#[must_use = "the index is unlocked at once"]
pub struct NewIndex<'a> {
    repository: &'a Repository,
    /// Paths whose staged version overlaps with the landed one. It stays staged.
    pub preserved: Vec<Vec<u8>>,
}

impl<'a> NewIndex<'a> {
    /// Locks the index and writes its replacement for a move of the branch from one tree to another.
    /// The index is unchanged if this fails.
    pub fn prepare(
        repository: &'a Repository,
        old: TreeId,
        new: TreeId,
    ) -> anyhow::Result<NewIndex<'a>> {
        lock(repository)?;
        let mut index = NewIndex {
            repository,
            preserved: Vec::new(),
        };
        index.write(old, new).context("preparing the index")?;
        Ok(index)
    }

    fn write(&mut self, old: TreeId, new: TreeId) -> anyhow::Result<()> {
        let repository = self.repository;
        let path = file(repository, NEW);
        copy(&file(repository, "index"), &path)?;

        // What is staged is the difference to the old commit. It is merged onto the new one.
        let staged = difference(repository, &path, old)?;
        let staged = staged
            .into_iter()
            .map(|(path, [_, staged])| (path, staged))
            .collect();
        let before = diff::tree_with(repository, old, &staged)?;
        let merged = merge::merge_trees(repository, old, before, new)?;
        self.preserved = merged.paths;

        let changes = diff::changes(repository, before, merged.ours)?;
        let entries = changes.iter().map(|change| (&change.path, &change.new));
        let kept = changes.iter().filter(|change| change.new.is_some());
        let marks = IndexMarks::of(repository, &path, kept.map(|change| &change.path))?;
        set(repository, &path, entries)?;
        marks.set(repository, &path)?;
        refresh(repository, &path)?;
        // Flushed before the rename, or a power cut leaves an empty index.
        Ok(sync_open_file(&std::fs::File::open(&path)?)?)
    }

    /// Replaces the index and unlocks it.
    pub fn put(self) -> anyhow::Result<()> {
        std::fs::rename(file(self.repository, NEW), file(self.repository, "index"))
            .context("writing the index")
    }
}

impl Drop for NewIndex<'_> {
    fn drop(&mut self) {
        // The next call reports a lock that could not be removed.
        let _ = release(self.repository);
    }
}

/// Removes our temporary files next to the index. The caller holds TeDDy's lock, so a remaining file
/// is from a crash.
pub fn release(repository: &Repository) -> anyhow::Result<()> {
    let (own, lock) = (file(repository, OWN_LOCK), file(repository, LOCK));
    let identity = |path: &Path| {
        let metadata = path.symlink_metadata().ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    remove_if_exists(&file(repository, NEW))?;
    remove_if_exists(&file(repository, &format!("{NEW}.lock")))?;
    if identity(&own).is_some() && identity(&own) == identity(&lock) {
        remove_if_exists(&lock)?;
    }

    remove_if_exists(&own)
}

fn lock(repository: &Repository) -> anyhow::Result<()> {
    release(repository)?;
    let (own, lock) = (file(repository, OWN_LOCK), file(repository, LOCK));
    let text = format!("teddy land, process {}\n", std::process::id());
    std::fs::write(&own, text).with_context(|| format!("writing `{}`", own.display()))?;

    let locked = wait_until(&lock, || match std::fs::hard_link(&own, &lock) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        linked => linked
            .map(|()| true)
            .with_context(|| format!("locking the index, `{}`", lock.display())),
    });
    if locked.is_err() {
        remove_if_exists(&own)?;
    }
    locked
}

/// Writes an index from which git commits a tree: a copy of the user's index with the entries of the
/// tree. Equal entries keep the cached stat data of their files.
pub(super) fn for_commit(
    repository: &Repository,
    index: &Path,
    tree: TreeId,
) -> anyhow::Result<()> {
    copy(&file(repository, "index"), index)?;
    let difference = difference(repository, index, tree)?;
    let entries = difference
        .iter()
        .map(|(path, [expected, _])| (path, expected));
    set(repository, index, entries)?;
    refresh(repository, index)
}

pub(super) fn wait_unlocked(repository: &Repository) -> anyhow::Result<()> {
    let lock = file(repository, LOCK);
    wait_until(&lock, || Ok(lock.symlink_metadata().is_err()))
}

fn wait_until(lock: &Path, is_done: impl Fn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let start = Instant::now();
    while !is_done()? {
        anyhow::ensure!(
            start.elapsed() < PATIENCE,
            "another git is writing the index, or left `{}`; nothing was changed",
            lock.display()
        );
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Copies an index with its modification time. git rereads a file whose time in the index is
/// not older than the index itself, because it can have changed within the same tick ("racy git"). A
/// copy with a newer time would make git trust such entries and hide the edit.
pub(super) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let mut from = match std::fs::File::open(from) {
        Err(error) if error.kind() == ErrorKind::NotFound => return remove_if_exists(to),
        opened => opened?,
    };
    let modified = from.metadata()?.modified()?;
    let mut copy = std::fs::File::create(to)?;
    std::io::copy(&mut from, &mut copy)?;
    Ok(copy.set_modified(modified)?)
}

/// Sets or removes entries of an index.
fn set<'e>(
    repository: &Repository,
    index: &Path,
    entries: impl Iterator<Item = (&'e Vec<u8>, &'e Option<TreeEntry>)>,
) -> anyhow::Result<()> {
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for (path, entry) in entries {
        let (lines, line) = match entry {
            Some(entry) => {
                let mode = entry.mode.as_octal_str();
                (&mut added, format!("{mode} {}\t", entry.id))
            }
            None => {
                let null = repository.gix.object_hash().null();
                (&mut removed, format!("0 {null}\t"))
            }
        };
        lines.extend_from_slice(line.as_bytes());
        lines.extend_from_slice(path);
        lines.push(0);
    }

    // A file and a directory of the same name exclude each other.
    removed.extend(added);
    let mut git = git_on(repository, index)?;
    git.args(["update-index", "-z", "--index-info"]);
    run_with_input(&mut git, &removed, "write the index").map(drop)
}

/// Paths with marks of the user's, each terminated by NUL. A changed entry would lose them.
#[derive(Default)]
struct IndexMarks {
    skip_worktree: Vec<u8>,
    assume_unchanged: Vec<u8>,
}

impl IndexMarks {
    fn of<'p>(
        repository: &Repository,
        index: &Path,
        paths: impl Iterator<Item = &'p Vec<u8>>,
    ) -> anyhow::Result<IndexMarks> {
        let paths: BTreeSet<&[u8]> = paths.map(Vec::as_slice).collect();
        let mut git = git_on(repository, index)?;
        let list = run_checked(git.args(["ls-files", "-v", "-z"]), "list the index")?;
        let mut marks = IndexMarks::default();
        for line in list.split_inclusive(|byte| *byte == 0) {
            let [tag, b' ', path @ .., 0] = line else {
                continue;
            };
            if !paths.contains(path) {
                continue;
            }
            if tag.eq_ignore_ascii_case(&b'S') {
                marks.skip_worktree.extend_from_slice(&line[2..]);
            }
            if tag.is_ascii_lowercase() {
                marks.assume_unchanged.extend_from_slice(&line[2..]);
            }
        }
        Ok(marks)
    }

    fn set(&self, repository: &Repository, index: &Path) -> anyhow::Result<()> {
        for (mark, paths) in [
            ("--skip-worktree", &self.skip_worktree),
            ("--assume-unchanged", &self.assume_unchanged),
        ] {
            if !paths.is_empty() {
                let mut git = git_on(repository, index)?;
                git.args(["update-index", mark, "-z", "--stdin"]);
                run_with_input(&mut git, paths, "mark entries of the index")?;
            }
        }
        Ok(())
    }
}

/// Compares the entries of an index with the files, as `git status` does.
fn refresh(repository: &Repository, index: &Path) -> anyhow::Result<()> {
    // It exits with 1 if a file differs.
    let mut git = git_on(repository, index)?;
    git.args(["update-index", "-q", "--refresh"]).output()?;
    Ok(())
}

fn git_on(repository: &Repository, index: &Path) -> anyhow::Result<std::process::Command> {
    let mut git = silent_git_for(repository)?;
    git.env("GIT_INDEX_FILE", index);
    Ok(git)
}

/// Returns the paths at which an index differs from a tree, with both entries.
fn difference(
    repository: &Repository,
    index: &Path,
    tree: TreeId,
) -> anyhow::Result<BTreeMap<Vec<u8>, [Option<TreeEntry>; 2]>> {
    let mut git = git_on(repository, index)?;
    // A sparse index has entries for whole directories.
    git.args(["-c", "index.sparse=false"]);
    git.args(["diff-index", "--cached", "--raw", "-z", "--no-renames"])
        .args(["--no-abbrev", "--ignore-submodules=none"])
        .arg(tree.to_string());
    let raw = run_checked(&mut git, "compare the index")?;
    let mut parts = raw.split(|byte| *byte == 0);
    let mut difference = BTreeMap::new();

    while let (Some(facts), Some(path)) = (parts.next(), parts.next()) {
        difference.insert(path.to_vec(), entries(facts)?);
    }

    Ok(difference)
}

/// Parses both entries of a line of `git diff-index --raw`: `:100644 100755 <old> <new> M`.
fn entries(line: &[u8]) -> anyhow::Result<[Option<TreeEntry>; 2]> {
    let text = std::str::from_utf8(line)?;
    let fields: Vec<&str> = text.trim_start_matches(':').split(' ').collect();
    let [old_mode, new_mode, old, new, _] = fields.as_slice() else {
        anyhow::bail!("git described the index in an unknown way: {text}");
    };

    Ok([entry(old_mode, old)?, entry(new_mode, new)?])
}

/// Parses an entry; `None` if the id is null.
fn entry(mode: &str, id: &str) -> anyhow::Result<Option<TreeEntry>> {
    let mode = match mode {
        "000000" => return Ok(None),
        "100644" => EntryMode::Blob,
        "100755" => EntryMode::BlobExecutable,
        "120000" => EntryMode::Link,
        "160000" => EntryMode::Commit,
        _ => anyhow::bail!("the index has an entry of the unknown mode {mode}"),
    };
    let id = gix::ObjectId::from_hex(id.as_bytes())?;
    Ok(Some(TreeEntry { mode, id }))
}

fn file(repository: &Repository, name: &str) -> PathBuf {
    repository.git_dir().join(name)
}
