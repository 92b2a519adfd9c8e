//! Session worktrees: linked worktrees of git in which plans run, apart from the user's files.
//!
//! One per session, outside the repository, detached, and locked so that `git worktree prune`
//! leaves it. It is kept between turns: a switch writes only what differs, and what is ignored (a
//! build's caches) stays. One that is lost or damaged is made anew. Where none can be made that is
//! an error, and never a reason to run in the user's files.

pub mod bring;
mod glance;
mod index;
mod leftovers;
pub mod moved;
mod remove;
mod survey;
mod switch;

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use gix::bstr::{BStr, ByteSlice};

use super::During;
use super::object::CommitId;
use super::repository::Repository;

/// What the lock of a session's worktree begins with; the session's name follows.
const LOCK: &str = "teddy session ";

/// How often a worktree is tried to be made.
const MOST_ATTEMPTS: u32 = 5;
/// How long the first pause between two tries is.
const PAUSE: Duration = Duration::from_millis(20);

/// How much of a worktree must be as its commit says.
#[derive(Debug, Clone, Copy)]
pub enum Extent<'a> {
    /// Everything: a command sees every file.
    Whole,
    /// These paths, and what differs from the commit before: nothing else is looked at.
    Paths(&'a [Vec<u8>]),
}

/// A worktree in which the plans of a session run.
pub struct SessionWorktree {
    /// The repository, opened there.
    pub repository: Repository,
    /// Its top.
    pub path: PathBuf,
    /// Whether it was made just now, so that nothing ignored is in it.
    pub fresh: bool,
}

/// A worktree that git lists as ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The session.
    pub session: String,
    /// Its top, which may be lost.
    pub path: PathBuf,
    /// Git's record of it.
    pub git_dir: PathBuf,
}

/// What is at the path of a session's worktree.
enum State {
    /// Nothing, or an empty folder.
    Free,
    /// The worktree.
    Whole(Box<Repository>),
    /// The worktree, or what is left of it.
    Damaged,
    /// Something that is not ours.
    Foreign(String),
}

impl Repository {
    /// Returns the session's worktree below `root`, as far as `extent` says with the files of `at`
    /// and nothing else that is not ignored; makes it where there is none. The caller holds the
    /// lock.
    ///
    /// # Errors
    /// Where something else is in its place, or a file cannot be read or written.
    pub fn session_worktree(
        &self,
        root: &Path,
        session: &str,
        at: CommitId,
        extent: Extent<'_>,
    ) -> anyhow::Result<SessionWorktree> {
        let path = place_of(root, session)?;
        self.clean_records();
        let during = || {
            format!(
                "the worktree of session `{session}` at `{}`",
                path.display()
            )
        };
        match self.state(&path) {
            State::Whole(repository) => {
                // A worktree that resists is made anew, as a damaged one is.
                if switch::switch(&repository, at, extent).is_ok() {
                    self.lock_worktree(&path, session)?;
                    return Ok(SessionWorktree {
                        repository: *repository,
                        path,
                        fresh: false,
                    });
                }
                self.discard(&path).with_context(during)?;
            }
            State::Damaged => self.discard(&path).with_context(during)?,
            State::Free => {}
            State::Foreign(what) => {
                anyhow::bail!(
                    "`{}` is in the way: {what}; move it away, or set `worktree.root`",
                    path.display()
                )
            }
        }
        let repository = self.make_at_last(&path, session, at).with_context(during)?;
        Ok(SessionWorktree {
            repository,
            path,
            fresh: true,
        })
    }

    /// Returns the worktrees of sessions that git knows, sorted by session.
    ///
    /// # Errors
    /// Where git's records cannot be read.
    pub fn session_worktrees(&self) -> anyhow::Result<Vec<Listed>> {
        let mut listed = Vec::new();
        for proxy in self.gix.worktrees().during("listing worktrees")? {
            let reason = proxy.lock_reason().unwrap_or_default();
            let Some(session) = reason.strip_prefix(LOCK.as_bytes()) else {
                continue;
            };
            let Ok(path) = proxy.base() else { continue };
            listed.push(Listed {
                session: session.to_str_lossy().into_owned(),
                path,
                git_dir: proxy.git_dir().to_owned(),
            });
        }
        listed.sort_by(|a, b| a.session.cmp(&b.session));
        Ok(listed)
    }

    /// Removes the worktree of a session, and git's record of it; false where there is none.
    ///
    /// # Errors
    /// Where a file cannot be removed.
    pub fn remove_session_worktree(&self, session: &str) -> anyhow::Result<bool> {
        let found: Vec<_> = self
            .session_worktrees()?
            .into_iter()
            .filter(|listed| listed.session == session)
            .collect();
        for listed in &found {
            self.discard(&listed.path)
                .with_context(|| format!("removing `{}`", listed.path.display()))?;
        }
        Ok(!found.is_empty())
    }

    /// Makes the worktree, once more where the record of another one was seen half-written.
    fn make_at_last(&self, path: &Path, session: &str, at: CommitId) -> anyhow::Result<Repository> {
        let mut attempt = 1;
        loop {
            match self.make(path, session, at) {
                Err(_) if attempt < MOST_ATTEMPTS && !path.join(".git").exists() => {
                    std::thread::sleep(PAUSE * attempt);
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    /// Makes the worktree, its files written by all processors.
    fn make(&self, path: &Path, session: &str, at: CommitId) -> anyhow::Result<Repository> {
        let mut gix = self.gix.clone();
        // Relative links would be written into the user's configuration.
        let mut settings = gix.config_snapshot_mut();
        settings
            .set_raw_value("worktree.useRelativePaths", "false")
            .during("preparing a worktree")?;
        settings.commit().during("preparing a worktree")?;
        let never = AtomicBool::new(false);
        let prepared = gix
            .prepare_add_worktree(path, gix::worktree::add::Head::Detached(at.0), &never)
            .during(format_args!("making `{}`", path.display()))?;
        let (_, outcome) = prepared
            .checkout(gix::progress::Discard, &never)
            .during("writing the files of a worktree")?;
        if let Some(error) = outcome.errors.first() {
            anyhow::bail!("cannot write `{}`: {:#}", error.path, error.error);
        }
        if let Some(collision) = outcome.collisions.first() {
            anyhow::bail!(
                "cannot write `{}`: another file has its name on this file system",
                collision.path
            );
        }
        self.lock_worktree(path, session)?;
        let repository = Repository::open(path)?;
        switch::make_gitlink_folders(&repository, &index::read(&repository)?)?;
        index::remember(&repository, repository.commit(at)?.tree)?;
        Ok(repository)
    }

    /// Locks a worktree against `git worktree prune`.
    fn lock_worktree(&self, path: &Path, session: &str) -> anyhow::Result<()> {
        let reason = format!("{LOCK}{session}");
        for proxy in self.gix.worktrees().during("listing worktrees")? {
            if is_at(&proxy, path) && proxy.lock_reason().is_none_or(|old| old != reason) {
                proxy
                    .set_lock(Some(BStr::new(&reason)))
                    .during("locking a worktree")?;
            }
        }
        Ok(())
    }

    /// Finds out what is at the path of a session's worktree.
    fn state(&self, path: &Path) -> State {
        let registered = self.registered(path);
        let metadata = match std::fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return if registered.is_some() {
                    State::Damaged
                } else {
                    State::Free
                };
            }
            Err(error) => return State::Foreign(error.to_string()),
        };
        if !metadata.is_dir() {
            if registered.is_some() {
                return State::Damaged;
            }
            return State::Foreign("it is no folder".to_owned());
        }
        if let Some(git_dir) = registered {
            return self
                .open_worktree(path, &git_dir)
                .map_or(State::Damaged, |repository| {
                    State::Whole(Box::new(repository))
                });
        }
        if std::fs::symlink_metadata(path.join(".git")).is_ok_and(|git| !git.is_file()) {
            return State::Foreign("it is a repository of its own".to_owned());
        }
        match std::fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
            Ok(true) => State::Free,
            _ if self.points_to_us(path) => State::Damaged,
            _ => State::Foreign("it is no worktree of this repository".to_owned()),
        }
    }

    /// Opens a worktree that git knows; nothing where it is damaged.
    ///
    /// A plan's commands write to both: whatever they put in the place of what we made, it is not
    /// opened.
    fn open_worktree(&self, path: &Path, git_dir: &Path) -> Option<Repository> {
        if !std::fs::symlink_metadata(path.join(".git")).is_ok_and(|git| git.is_file())
            || git_dir.join("config.worktree").exists()
        {
            return None;
        }
        let repository = Repository::open(path).ok()?;
        let same = |a: &Path, b: &Path| Some(a.canonicalize().ok()? == b.canonicalize().ok()?);
        let whole = same(repository.git_dir(), git_dir)?
            && same(&repository.common_dir(), &self.common_dir())?;
        whole.then_some(repository)
    }

    /// Removes from git's records of worktrees what no git ever writes there and would wait at for
    /// ever.
    pub fn clean_records(&self) {
        let inside = |folder: &Path| {
            std::fs::read_dir(folder)
                .into_iter()
                .flatten()
                .flatten()
                .collect::<Vec<_>>()
        };
        let files = inside(&self.common_dir().join("worktrees"))
            .into_iter()
            .flat_map(|record| inside(&record.path()));
        for file in files.filter(|file| {
            file.file_type()
                .is_ok_and(|kind| !(kind.is_file() || kind.is_dir() || kind.is_symlink()))
        }) {
            // What resists shows when it is opened.
            let _ = std::fs::remove_file(file.path());
        }
    }

    /// Returns git's record of the worktree at a path.
    fn registered(&self, path: &Path) -> Option<PathBuf> {
        let proxies = self.gix.worktrees().ok()?;
        proxies
            .iter()
            .find(|proxy| is_at(proxy, path))
            .map(|proxy| proxy.git_dir().to_owned())
    }

    /// Returns whether a folder says that it is a worktree of this repository, be the record of it
    /// lost.
    fn points_to_us(&self, path: &Path) -> bool {
        let Ok(link) = std::fs::read_to_string(path.join(".git")) else {
            return false;
        };
        let Some(target) = link.trim_end().strip_prefix("gitdir: ") else {
            return false;
        };
        let records = self.common_dir().join("worktrees");
        path.join(target).parent().is_some_and(|parent| {
            parent == records || parent.canonicalize().is_ok_and(|p| p == records)
        })
    }

    /// Removes what is left of a worktree of ours: its files, and git's record of it.
    fn discard(&self, path: &Path) -> anyhow::Result<()> {
        let record = self.registered(path);
        remove::remove_any(path)?;
        match record {
            Some(record)
                if record
                    .parent()
                    .is_some_and(|parent| parent.ends_with("worktrees")) =>
            {
                std::fs::remove_dir_all(&record)
                    .with_context(|| format!("removing `{}`", record.display()))
            }
            _ => Ok(()),
        }
    }
}

/// Returns where a session's worktree is, below a root that is made if need be.
fn place_of(root: &Path, session: &str) -> anyhow::Result<PathBuf> {
    let mut components = Path::new(session).components();
    let plain = matches!(
        (components.next(), components.next()),
        (Some(Component::Normal(_)), None)
    );
    anyhow::ensure!(plain, "`{session}` cannot name a worktree");
    // The project may be where nobody else looks into: so is its copy.
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(root);
    made.with_context(|| format!("cannot make `{}`", root.display()))?;
    let root = root
        .canonicalize()
        .with_context(|| format!("cannot use `{}`", root.display()))?;
    Ok(root.join(session))
}

/// Returns whether git's record of a worktree is about a path.
fn is_at(proxy: &gix::worktree::Proxy<'_>, path: &Path) -> bool {
    let Ok(base) = proxy.base() else { return false };
    base == path || base.canonicalize().is_ok_and(|base| base == path)
}
