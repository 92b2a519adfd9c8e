//! The user's index, after the branch that they are on has moved: what landed is in it, what they
//! have staged themselves stays staged.
//!
//! Taken as git takes it: `index.lock` first, so that nobody else writes; the new index beside the
//! old one, and renamed over it once the branch has moved. The lock is a second name of a file of
//! ours, so that one that a crash left is told from the lock of a git that is at work.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::git::diff;
use crate::git::merge;
use crate::git::merge::Merged;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::git::user_git::{answer, feed, in_checkout, silent_git};

/// What git and we lock the index with.
const LOCK: &str = "index.lock";
/// The other name of our lock.
const OURS: &str = "teddy-index.own";
/// The new index, until it takes the place of the old one.
const NEW: &str = "teddy-index";
/// How long another's lock is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked at.
const PAUSE: Duration = Duration::from_millis(10);

/// The index, locked, with the one that takes its place.
#[must_use = "the index is unlocked at once"]
pub struct NewIndex<'a> {
    /// The checkout.
    repository: &'a Repository,
    /// Paths whose staged version overlaps with what landed, and stays as it is.
    pub kept: Vec<Vec<u8>>,
}

/// Some paths, and what is staged there.
type Staged = BTreeMap<Vec<u8>, Option<TreeEntry>>;

impl<'a> NewIndex<'a> {
    /// Locks the index, and writes the one that it is to become when the branch moves from one tree
    /// to the other.
    ///
    /// # Errors
    /// If another git is at work, or the index cannot be read or written; it is as it was then.
    pub fn prepare(
        repository: &'a Repository,
        old: TreeId,
        new: TreeId,
    ) -> anyhow::Result<NewIndex<'a>> {
        lock(repository)?;
        let mut index = NewIndex {
            repository,
            kept: Vec::new(),
        };
        index.write(old, new).context("preparing the index")?;
        Ok(index)
    }

    /// Writes the new index.
    fn write(&mut self, old: TreeId, new: TreeId) -> anyhow::Result<()> {
        let repository = self.repository;
        let path = file(repository, NEW);
        match std::fs::copy(file(repository, "index"), &path) {
            Err(error) if error.kind() == ErrorKind::NotFound => drop_file(&path)?,
            copied => drop(copied?),
        }

        let staged = staged(repository, old)?;
        let before = diff::tree_with(repository, old, &staged)?;
        let after = match merge::merge(repository, old, before, new)? {
            Merged::Clean(tree) => tree,
            Merged::Overlap { paths, ours, .. } => {
                self.kept = paths;
                ours
            }
        };

        let mut lines = Vec::new();
        for change in diff::changes(repository, before, after)? {
            let line = match &change.new {
                Some(entry) => format!("{} {}\t", mode(entry.mode), entry.id),
                None => format!("0 {}\t", repository.gix.object_hash().null()),
            };
            lines.extend_from_slice(line.as_bytes());
            lines.extend_from_slice(&change.path);
            lines.push(0);
        }

        let mut git = self.git()?;
        git.args(["update-index", "-z", "--index-info"]);
        feed(&mut git, &lines, "write the index")?;

        // Only what the next `git status` would do; it complains of every file that is changed.
        let _ = self
            .git()?
            .args(["update-index", "-q", "--refresh"])
            .output();
        Ok(std::fs::File::open(&path)?.sync_all()?)
    }

    /// Returns git on the new index.
    fn git(&self) -> anyhow::Result<std::process::Command> {
        let git = silent_git(self.repository.workdir())?;
        let mut git = in_checkout(git, self.repository);
        git.env("GIT_INDEX_FILE", file(self.repository, NEW));
        Ok(git)
    }

    /// Puts the new index in the place of the old one, and unlocks it.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn put(self) -> anyhow::Result<()> {
        std::fs::rename(file(self.repository, NEW), file(self.repository, "index"))
            .context("writing the index")
    }
}

impl Drop for NewIndex<'_> {
    fn drop(&mut self) {
        // What cannot be removed is in the way of the next call, which says so.
        let _ = release(self.repository);
    }
}

/// Takes away what of ours is beside the index: a crash left it, or it is done. The caller holds
/// TeDDy's lock.
///
/// # Errors
/// If a file cannot be removed.
pub fn release(repository: &Repository) -> anyhow::Result<()> {
    let (ours, lock) = (file(repository, OURS), file(repository, LOCK));
    let identity = |path: &Path| {
        let metadata = path.symlink_metadata().ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    drop_file(&file(repository, NEW))?;
    drop_file(&file(repository, &format!("{NEW}.lock")))?;
    if identity(&ours).is_some() && identity(&ours) == identity(&lock) {
        drop_file(&lock)?;
    }

    drop_file(&ours)
}

/// Locks the index.
fn lock(repository: &Repository) -> anyhow::Result<()> {
    release(repository)?;
    let (ours, lock) = (file(repository, OURS), file(repository, LOCK));
    let text = format!("teddy land, process {}\n", std::process::id());
    std::fs::write(&ours, text).with_context(|| format!("writing `{}`", ours.display()))?;

    let start = Instant::now();
    loop {
        match std::fs::hard_link(&ours, &lock) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if start.elapsed() > PATIENCE {
                    drop_file(&ours)?;
                    anyhow::bail!(
                        "another git is writing the index, or left `{}`; nothing was changed",
                        lock.display()
                    );
                }
                std::thread::sleep(PAUSE);
            }
            linked => {
                return linked.with_context(|| format!("locking the index, `{}`", lock.display()));
            }
        }
    }
}

/// Returns where the index differs from a tree: what the user has staged.
fn staged(repository: &Repository, tree: TreeId) -> anyhow::Result<Staged> {
    let mut git = in_checkout(silent_git(repository.workdir())?, repository);
    git.args(["diff-index", "--cached", "--raw", "-z", "--no-renames"])
        .args(["--no-abbrev", "--ignore-submodules=none"])
        .arg(tree.to_string());
    git.env("GIT_INDEX_FILE", file(repository, NEW));
    let raw = answer(&mut git, "compare the index")?;
    let mut parts = raw.split(|byte| *byte == 0);
    let mut staged = Staged::new();

    while let (Some(facts), Some(path)) = (parts.next(), parts.next()) {
        staged.insert(path.to_vec(), entry(facts)?);
    }

    Ok(staged)
}

/// Reads what is staged from a line of git's: `:100644 100755 <old> <new> M`.
fn entry(line: &[u8]) -> anyhow::Result<Option<TreeEntry>> {
    let text = std::str::from_utf8(line)?;
    let fields: Vec<&str> = text.trim_start_matches(':').split(' ').collect();
    let [_, mode, _, id, _] = fields.as_slice() else {
        anyhow::bail!("git said something else about the index: {text}");
    };
    let mode = match *mode {
        "000000" => return Ok(None),
        "100755" => EntryMode::Executable,
        "120000" => EntryMode::Link,
        "160000" => EntryMode::Gitlink,
        _ => EntryMode::File,
    };

    let id = gix::ObjectId::from_hex(id.as_bytes())?;
    Ok(Some(TreeEntry { mode, id }))
}

/// Returns a mode as git writes it.
fn mode(mode: EntryMode) -> &'static str {
    match mode {
        EntryMode::File => "100644",
        EntryMode::Executable => "100755",
        EntryMode::Link => "120000",
        EntryMode::Gitlink => "160000",
        EntryMode::Tree => "040000",
    }
}

/// Returns the path of a file beside the index of a checkout.
fn file(repository: &Repository, name: &str) -> PathBuf {
    repository.git_dir().join(name)
}

/// Removes a file; one that is not there is gone.
fn drop_file(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing `{}`", path.display()))
        }
        _ => Ok(()),
    }
}
