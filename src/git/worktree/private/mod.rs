//! The git directory of a worktree while commands run: a repository of its own, which borrows the
//! objects of the user's and has a copy of their refs.
//!
//! Nothing of the user's is writable to a command, and nothing needs to be: what it commits, its
//! branches, tags, stashes and settings go to this repository. It is made aside, where no command
//! writes, and moved into place as one; afterwards it is read as a stranger's (`git::incoming`) and
//! thrown away.

mod config;
mod refs;
mod tracked;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anyhow::Context as _;

use super::root::GIT;
use super::{MAX_INDEX, SessionWorktree};
use crate::git::During;
use crate::git::alternates::alternates_line;
use crate::git::diff;
use crate::git::incoming;
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::host::file::{Root, open_up, remove_below};

/// What commands left in a worktree besides files.
#[derive(Debug, Default)]
pub struct TakenBack {
    /// The newest of the commits that they made, if any were taken.
    pub commit: Option<CommitId>,
    /// Paths that they track, beside those that were tracked before.
    pub tracked: Vec<Vec<u8>>,
    /// What was not taken, and why.
    pub remarks: Vec<String>,
}

/// The folder while it is made.
const NEW: &str = "new";
/// More bytes than this of rules or edges are not copied.
const MAX_COPIED: u64 = 16 << 20;
/// Files below a git directory that say how git behaves, besides its configuration.
const RULES: [&str; 3] = ["info/exclude", "info/attributes", "info/grafts"];

impl SessionWorktree {
    /// Gives the worktree a git directory for commands, with HEAD at a commit.
    ///
    /// # Errors
    /// Where the user's refs or settings cannot be read, or a file cannot be written.
    pub fn make_git_dir(&self, user: &Repository, at: CommitId) -> anyhow::Result<()> {
        let made = || {
            self.remove_git_dir()?;
            let beside = self.root.claim(&self.session)?;
            remove_below(&beside, OsStr::new(NEW))?;
            self.fill(&beside.make_folder(Path::new(NEW))?, user, at)?;
            beside.move_to(OsStr::new(NEW), &self.top()?, OsStr::new(GIT))?;
            Ok::<_, anyhow::Error>(())
        };
        made().with_context(|| {
            format!(
                "making a git directory for the commands in `{}`",
                self.path.display()
            )
        })
    }

    /// Takes the git directory away again, whatever commands made of it.
    ///
    /// # Errors
    /// Where it cannot be moved away.
    pub fn remove_git_dir(&self) -> anyhow::Result<()> {
        match self.is_layered() {
            true => self.root.remove_git_dir_of(&self.session, &self.top()?),
            false => self.root.remove_git_dir(&self.session),
        }
    }

    /// Takes in what commands committed and which paths they track.
    ///
    /// # Errors
    /// Where the user's repository cannot be read or written.
    pub fn take_back(&self, user: &Repository, before: CommitId) -> anyhow::Result<TakenBack> {
        let Some(git) = self.left_git_dir() else {
            return Ok(TakenBack::default());
        };
        let received = incoming::receive(user, &git, before)?;
        let mut tracked = self.staged(&git, user.gix.object_hash());

        if let Some(commit) = received.commit {
            let (from, to) = (user.commit(before)?.tree, user.commit(commit)?.tree);
            let new = diff::changes(user, from, to)?.into_iter();
            tracked.extend(
                new.filter(|change| change.new.is_some())
                    .map(|change| change.path),
            );
        }

        Ok(TakenBack {
            commit: received.commit,
            tracked: tracked.into_iter().collect(),
            remarks: received.remarks,
        })
    }

    /// Opens what commands left of the git directory: nobody knows what is in it.
    fn left_git_dir(&self) -> Option<Root> {
        let worktree = self.top().ok()?;
        open_up(&worktree, OsStr::new(GIT));
        worktree.folder(Path::new(GIT)).ok()
    }

    /// Returns the paths in the commands' index that were not in ours.
    fn staged(&self, git: &Root, hash: gix::hash::Kind) -> BTreeSet<Vec<u8>> {
        let path = Path::new("index");
        let Ok(ours) = self.index() else {
            return BTreeSet::new();
        };
        if git.has_bytes(path, &ours) {
            return BTreeSet::new();
        }
        let Ok(theirs) = git.read(path, MAX_INDEX) else {
            return BTreeSet::new();
        };

        let paths = |bytes: &[u8]| tracked::paths(bytes, hash).unwrap_or_default();
        let ours = paths(&ours);
        let mut theirs = paths(&theirs);
        theirs.retain(|path| !ours.contains(path));
        theirs
    }

    /// Writes the files of a git directory.
    fn fill(&self, git: &Root, user: &Repository, at: CommitId) -> anyhow::Result<()> {
        let put = |name: &str, bytes: &[u8]| git.create_aside(Path::new(name), bytes);
        for folder in ["refs/heads", "refs/tags", "objects/pack", "objects/info"] {
            git.make_folder(Path::new(folder))?;
        }

        put("HEAD", format!("{at}\n").as_bytes())?;
        put("config", &config::of(user))?;
        put("objects/info/alternates", &alternates(user)?)?;
        let refs = refs::of(user)?;
        put("packed-refs", &refs.packed)?;
        for (name, target) in refs.symbolic {
            git.create_aside(Path::new(OsStr::from_bytes(&name)), &target)?;
        }

        let common = user.common_dir();
        let rules = RULES.map(|name| (name, common.join(name)));
        let sparse = (
            "info/sparse-checkout",
            user.git_dir().join("info/sparse-checkout"),
        );
        let edges = user
            .gix
            .shallow_file()
            .during("finding the shallow edges")?;
        let edges = ("shallow", edges);

        for (name, path) in rules.into_iter().chain([sparse, edges]) {
            if let Some(bytes) = copied(&path, MAX_COPIED) {
                put(name, &bytes)?;
            }
        }

        match self.index() {
            Ok(index) => put("index", &index).map_err(Into::into),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Reads a file of the user's that need not be there.
fn copied(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let folder = Root::open(path.parent()?).ok()?;
    folder.read(Path::new(path.file_name()?), limit).ok()
}

/// Returns the list of object folders that are borrowed: the user's, and those from which they
/// borrow themselves, as git follows such lists to some depth only.
fn alternates(user: &Repository) -> anyhow::Result<Vec<u8>> {
    let store = user.gix.objects.store_ref();
    let others = store.alternate_db_paths().during("reading alternates")?;
    let mut list = Vec::new();
    for folder in [store.path().to_owned()].into_iter().chain(others) {
        let folder = folder.canonicalize().unwrap_or(folder);
        list.extend(alternates_line(&folder));
    }

    Ok(list)
}
