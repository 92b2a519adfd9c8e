//! Session worktrees: directories in which plans run, apart from the user's files.
//!
//! There is one for each session, outside the repository. It is kept between turns, so a switch
//! writes only what differs, and ignored files such as build caches stay. A lost or damaged
//! worktree is created again. If that fails, it is an error; a plan never runs in the user's files
//! instead.
//!
//! Whatever commands can write is untrusted: it determines the plan's result and nothing else.
//! TeDDy's record is in `.git/teddy/worktrees`, where commands cannot write.
//!
//! # Example
//!
//! ```
//! # use std::process::Command;
//! # use teddy::git::repository::Repository;
//! # let dir = tempfile::tempdir()?;
//! # let git = |args: &[&str]| {
//! #     let mut git = Command::new("git");
//! #     git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
//! #     git.current_dir(&dir).args(args).status()
//! # };
//! # git(&["init", "-q", "-b", "main"])?;
//! # std::fs::write(dir.path().join("a.txt"), "one\n")?;
//! # git(&["add", "a.txt"])?;
//! # git(&["-c", "user.name=A", "-c", "user.email=a@localhost", "commit", "-qm", "first"])?;
//! # let repository = Repository::discover(dir.path(), None)?;
//! use teddy::git::refs;
//! use teddy::git::worktree::{Extent, WorktreeTarget, session_worktree};
//! use teddy::host::file::read_regular_text;
//!
//! let head = refs::head(&repository)?.expect("a commit");
//! let root = dir.path().join(".git/worktrees-of-sessions");
//! let target = WorktreeTarget::unwatched(head, Extent::All);
//! let worktree = session_worktree(&repository, &root, "add-auth", target)?;
//! assert_eq!(read_regular_text(&worktree.path.join("a.txt"), 100)?, "one\n");
//! # Ok::<(), anyhow::Error>(())
//! ```

mod editable;
mod file_writer;
mod git_record;
mod index;

pub mod layer;
pub mod moved;

pub mod private;
pub mod progress;
pub mod provision;
mod record;
pub mod registered;
mod root;
mod scan;

mod switch;

mod to_commit;

mod visible;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use gix::index::State;

use self::progress::ProgressWatch;
use self::record::WorktreeRecord;
use self::root::WorktreeRoot;
use super::During as _;
use super::repository::Repository;
use crate::git::object::{CommitId, TreeId};
use crate::host::file::{FileKind, Root, open_up_below, read_regular, remove_at_path};
use crate::host::interrupt;

const MAX_INDEX: u64 = 256 << 20;

/// Which files of a worktree must equal its commit.
#[derive(Debug, Clone, Copy)]
pub enum Extent<'a> {
    /// All files, because a command can read each of them.
    All,
    /// Only these paths. In an incomplete worktree no other path is checked or written. A complete
    /// one stays complete: it also gets everything that differs from the previous commit.
    Paths(&'a [Vec<u8>]),
}

#[derive(Clone, Copy)]
pub struct WorktreeTarget<'a> {
    pub at: CommitId,
    pub extent: Extent<'a>,
    pub watch: ProgressWatch<'a>,
}

impl<'a> WorktreeTarget<'a> {
    pub fn unwatched(at: CommitId, extent: Extent<'a>) -> WorktreeTarget<'a> {
        let watch: ProgressWatch<'_> = &|_| ();
        WorktreeTarget { at, extent, watch }
    }
}

/// A worktree in which the plans of a session run.
pub struct SessionWorktree {
    /// The repository with this worktree and its own index.
    pub repository: Repository,
    /// Top directory, as commands see it.
    pub path: PathBuf,
    /// Directory with the files: the same, or the overlay's upper directory.
    files: PathBuf,
    /// Lower directory of the overlay. `None` for a copy.
    lower: Option<LowerDir>,
    /// Whether the worktree was just created, so it contains no ignored files.
    pub fresh: bool,
    /// Paths at which the worktree has links to the user's directories.
    pub linked: Vec<Vec<u8>>,
    /// Directories with modules that Python has to import from here instead of the user's.
    pub module_dirs: Vec<PathBuf>,
    /// Name of the session, also of its directory.
    session: String,
    root: WorktreeRoot,
    record: WorktreeRecord,
}

struct LowerDir {
    files: PathBuf,
    /// Of a snapshot of them.
    tree: TreeId,
    /// Where commands find the object store, if the overlay is mounted over the checkout itself and
    /// covers the user's git directory. An empty directory outside of it.
    store_at: Option<PathBuf>,
    /// The index with which commands start, and its encoding.
    index: Arc<State>,
    index_bytes: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedWorktree {
    pub session: String,
    /// Top directory, which is possibly missing.
    pub path: PathBuf,
    /// Directory of the session's layer, which is possibly missing.
    pub layer: PathBuf,
    /// File whose mtime is the time of the last use.
    pub used: PathBuf,
}

/// Returns the session's worktree below `root`, creating it if necessary. The files selected by
/// `target` then equal its commit, and other files that git does not ignore are removed. The caller
/// holds the session's lock.
pub fn session_worktree(
    repository: &Repository,
    root: &Path,
    session: &str,
    target: WorktreeTarget<'_>,
) -> anyhow::Result<SessionWorktree> {
    root::check_session(session)?;
    let root = WorktreeRoot::make(root, &repository.common_dir())?;
    let path = root.worktree_path(session);
    let during = || {
        format!(
            "the worktree of session `{session}` at `{}`",
            path.display()
        )
    };

    let record = record::worktree_record(repository, session);
    let state = enter(repository, &root, &record, session, during)?;
    record.check_index();
    let mut worktree = SessionWorktree {
        repository: repository.with_worktree(&path, &record.index())?,
        record,
        fresh: state == PathState::Nothing,
        session: session.to_owned(),
        path: path.clone(),
        files: path.clone(),
        lower: None,
        linked: Vec::new(),
        module_dirs: Vec::new(),
        root,
    };

    worktree
        .apply_target(repository, target)
        .with_context(during)?;
    Ok(worktree)
}

pub fn session_worktrees(repository: &Repository) -> Vec<RecordedWorktree> {
    let listed = |session: String| {
        let record = record::worktree_record(repository, &session);
        let root = record.root()?;
        Some(RecordedWorktree {
            path: root.join(&session),
            layer: root::layer_path(&root, &session),
            used: record.used(),
            session,
        })
    };
    let sessions = record::recorded_worktrees(repository).into_iter();
    sessions.filter_map(listed).collect()
}

/// Returns the directories of all checkouts of the repository that exist: the main one and the linked
/// ones.
pub fn linked_checkouts(repository: &Repository) -> anyhow::Result<Vec<PathBuf>> {
    let main = repository.main_repository().ok();
    let main = main.and_then(|main| Some(main.workdir()?.to_owned()));
    let linked = repository.gix.worktrees().during("listing worktrees")?;
    let linked = linked.iter().filter_map(|proxy| proxy.base().ok());
    let dirs = main.into_iter().chain(linked);
    Ok(dirs.filter_map(|dir| dir.canonicalize().ok()).collect())
}

/// Returns the directories that contain worktrees: `current`, those in the records, which an earlier
/// `worktree.root` can have named, and next to each of them those of other repositories.
pub fn worktree_dirs(repository: &Repository, current: &Path) -> Vec<PathBuf> {
    let sessions = record::recorded_worktrees(repository).into_iter();
    let recorded =
        sessions.filter_map(|session| record::worktree_record(repository, &session).root());
    let own: BTreeSet<PathBuf> = recorded.chain([current.to_owned()]).collect();

    let parents: BTreeSet<&Path> = own.iter().filter_map(|dir| dir.parent()).collect();
    let listed = parents.into_iter().filter_map(|dir| dir.read_dir().ok());
    let paths = listed.flatten().flatten().map(|entry| entry.path());
    let others: Vec<PathBuf> = paths.filter(|path| root::is_root(path)).collect();
    own.into_iter().chain(others).collect()
}

/// Removes the worktree of a session and its record. Returns `false` if there is none. The caller
/// holds the session's lock.
pub fn remove_session_worktree(repository: &Repository, session: &str) -> anyhow::Result<bool> {
    registered::discard_record(repository, session)?;
    let record = record::worktree_record(repository, session);
    let Some(path) = record.root() else {
        return Ok(false);
    };

    // Keep worktrees of another repository, for example the one that this is a copy of.
    let root =
        WorktreeRoot::open(&path, &repository.common_dir()).filter(|root| root.is_ours(session));
    if let Some(root) = root {
        let during = || format!("removing `{}`", root.worktree_path(session).display());
        root.remove_worktree(session).with_context(during)?;
        match root.forget(session) {
            // Something is mounted in it. Leave it for a later attempt.
            Err(error) if error.kind() == ErrorKind::CrossesDevices => return Ok(true),
            forgotten => forgotten.with_context(during)?,
        }
    }

    // Last, so an interrupted removal is found and completed later.
    record.remove()?;
    Ok(true)
}

/// Cleans up after a command or a crash in a session's worktree. Returns whether there was anything
/// to do. The caller holds the session's lock.
pub fn tidy_session_worktree(repository: &Repository, session: &str) -> anyhow::Result<bool> {
    let record = record::worktree_record(repository, session);
    remove_at_path(&record.visible())?;
    let open = |path: PathBuf| WorktreeRoot::open(&path, &repository.common_dir());
    let root = record.root().and_then(open);
    let Some(root) = root.filter(|root| root.is_ours(session)) else {
        return Ok(false);
    };
    let has_leftovers = root.has_leftovers(session);

    if has_leftovers {
        root.remove_git_dir(session)?;
        root.clear(session)?;
    }

    Ok(has_leftovers)
}

/// Removes a worktree and layer without a record, left by an earlier repository at this path with a
/// session of the same name. Its ignored files belong to another project.
fn remove_unknown(
    root: &WorktreeRoot,
    record: &WorktreeRecord,
    session: &str,
) -> anyhow::Result<()> {
    let is_known = record.root().as_deref() == Some(root.path());
    if root.is_ours(session) && !is_known {
        root.remove_worktree(session)?;
        root.remove_layer(session)?;
        record.forget_layer();
    }
    Ok(())
}

/// Prepares the path of a session's worktree, and returns its earlier state.
fn enter(
    repository: &Repository,
    root: &WorktreeRoot,
    record: &WorktreeRecord,
    session: &str,
    during: impl Fn() -> String,
) -> anyhow::Result<PathState> {
    registered::discard_record(repository, session).with_context(&during)?;
    remove_unknown(root, record, session).with_context(&during)?;
    let state = prepare_path(root, session)?;
    // Left by an interrupted run.
    root.clear(session).with_context(&during)?;
    root.remove_git_dir(session).with_context(&during)?;
    root.worktree(session).with_context(&during)?;
    Ok(state)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathState {
    /// Nothing, or an empty directory.
    Nothing,
    Worktree,
}

/// Checks that the path of a session's worktree can be used. Fails if something of another owner is
/// there.
fn prepare_path(root: &WorktreeRoot, session: &str) -> anyhow::Result<PathState> {
    let (kind, is_ours) = (root.kind(session)?, root.is_ours(session));
    let foreign = match kind {
        None => return Ok(PathState::Nothing),
        Some(FileKind::Dir) if is_ours => return Ok(PathState::Worktree),
        // Only an unconfined command can have replaced the directory.
        Some(_) if is_ours => {
            root.remove_worktree(session)?;
            return Ok(PathState::Nothing);
        }
        Some(FileKind::Dir) if root.worktree(session)?.names()?.is_empty() => {
            return Ok(PathState::Nothing);
        }
        Some(FileKind::Dir) => "it is not a worktree of this repository",
        Some(_) => "it is not a directory",
    };
    anyhow::bail!(
        "`{}` is in the way: {foreign}; move it away, or set `worktree.root`",
        root.worktree_path(session).display()
    )
}

impl SessionWorktree {
    /// Switches to a commit. If that fails, for example in a damaged worktree, the worktree is
    /// created again.
    fn apply_target(
        &mut self,
        user: &Repository,
        target: WorktreeTarget<'_>,
    ) -> anyhow::Result<()> {
        self.keep_record()?;
        if self.fresh {
            self.record.forget_files();
            return to_commit::switch(self, user, target);
        }

        match to_commit::switch(self, user, target) {
            Ok(()) => Ok(()),
            // Ctrl-c is not damage.
            Err(error) if interrupt::requested() => Err(error),
            Err(_) => {
                // Permissions that commands left can be the cause.
                self.open_up();
                match to_commit::switch(self, user, target) {
                    Err(_) if !interrupt::requested() => self.recreate(user, target),
                    switched => switched,
                }
            }
        }
    }

    /// Makes everything in a copy readable and removable for its owner, whatever permissions
    /// commands gave it. git records no such permissions.
    pub fn open_up(&self) {
        if self.is_layered() {
            return;
        }
        if let Ok(top) = self.root.open_up(&self.session) {
            open_up_below(&top);
        }
    }

    pub fn recreate(
        &mut self,
        user: &Repository,
        target: WorktreeTarget<'_>,
    ) -> anyhow::Result<()> {
        self.root.remove_worktree(&self.session)?;
        self.record.forget_files();
        self.root.worktree(&self.session)?;
        self.keep_record()?;
        self.fresh = true;
        to_commit::switch(self, user, target)
    }

    pub fn repair(&self, user: &Repository, target: WorktreeTarget<'_>) -> anyhow::Result<()> {
        to_commit::switch(self, user, target)
    }

    /// Returns the directory on whose disk the changes of commands are.
    pub fn written_dir(&self) -> &Path {
        &self.files
    }

    /// Returns whether the worktree is an overlay layer.
    pub fn is_layered(&self) -> bool {
        self.lower.is_some()
    }

    /// The user's files below the layer, as a snapshot had them.
    pub fn lower_tree(&self) -> Option<TreeId> {
        self.lower.as_ref().map(|lower| lower.tree)
    }

    pub fn is_set_up(&self, setup: &str) -> bool {
        self.record.setup(self.is_layered()).as_deref() == Some(setup)
    }

    pub fn keep_setup(&self, setup: &str) -> anyhow::Result<()> {
        Ok(self.record.keep_setup(self.is_layered(), setup)?)
    }

    /// Records the trees of a turn. Files in them are not build output: they are removed here when
    /// they disappear from the user's files, even if git ignores them by then.
    pub fn keep_recorded(&self, before: TreeId, after: TreeId) -> anyhow::Result<()> {
        let layered = self.is_layered();
        // A copy has an index, which contains the tree before the turn.
        let trees = if layered {
            &[after, before][..]
        } else {
            &[after]
        };
        Ok(self.record.keep_recorded(layered, trees)?)
    }

    /// Returns the trees of the last recorded turn, except `now` and trees that a killed run did
    /// not store.
    fn recorded(&self, now: TreeId) -> Vec<TreeId> {
        let mut trees = self.record.recorded(self.is_layered());
        trees.retain(|tree| *tree != now && self.repository.has(tree.0));
        trees
    }

    fn top(&self) -> std::io::Result<Root> {
        match self.is_layered() {
            true => Root::open_strictly(&self.files),
            false => self.root.worktree(&self.session),
        }
    }

    fn index(&self) -> std::io::Result<Cow<'_, [u8]>> {
        match &self.lower {
            Some(lower) => Ok(Cow::Borrowed(&lower.index_bytes)),
            None => read_regular(&self.record.index(), MAX_INDEX).map(Cow::Owned),
        }
    }

    /// Records that the worktree is ours, and the time of use.
    fn keep_record(&self) -> anyhow::Result<()> {
        Ok(self.record.keep_root(self.root.path())?)
    }
}
