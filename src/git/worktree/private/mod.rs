//! The commands' git directory: a repository of its own that borrows the user's objects and has a
//! copy of their refs.
//!
//! Nothing of the user's is writable to commands. Their commits, branches, tags, stashes and
//! settings go into this repository. It is prepared where commands cannot write, and renamed into
//! place. Afterwards it is read like an untrusted push ([`crate::git::incoming`]) and deleted.

mod config;
mod refs;
mod tracked;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use gix::ObjectId;

use self::refs::CopiedRefs;
use super::root::GIT;
use super::visible;
use super::{MAX_INDEX, SessionWorktree};
use crate::git::During;
use crate::git::alternates::alternates_line;
use crate::git::diff;
use crate::git::incoming;
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::host::file::{Root, make_writable, remove_below};

/// Commits and tracked paths that commands left in the git directory.
#[derive(Debug, Default)]
pub struct ImportedCommits {
    /// Their newest commit, if commits were imported.
    pub commit: Option<CommitId>,
    /// Paths that they added to the index or committed.
    pub tracked: Vec<Vec<u8>>,
    /// What was not imported, and why.
    pub remarks: Vec<String>,
}

/// Name of the directory while it is prepared.
const NEW: &str = "new";
const MAX_COPIED: u64 = 16 << 20;
/// Files of a git directory that change git's behavior, apart from its configuration.
const RULES: [&str; 3] = ["info/exclude", "info/attributes", "info/grafts"];

impl SessionWorktree {
    /// Creates the git directory for commands, with HEAD at a commit.
    pub fn make_git_dir(&self, user: &Repository, at: CommitId) -> anyhow::Result<()> {
        let create = || {
            self.remove_git_dir()?;
            let own_dir = self.root.claim(&self.session)?;
            remove_below(&own_dir, OsStr::new(NEW))?;
            self.write_git_dir(&own_dir.make_dir(Path::new(NEW))?, user, at)?;
            // One rename, so no command sees a partial git directory.
            own_dir.move_to(OsStr::new(NEW), &self.top()?, OsStr::new(GIT))?;
            Ok::<_, anyhow::Error>(())
        };
        create().with_context(|| {
            format!(
                "making a git directory for the commands in `{}`",
                self.path.display()
            )
        })
    }

    /// Removes the git directory, whatever commands did to it.
    pub fn remove_git_dir(&self) -> anyhow::Result<()> {
        match self.is_layered() {
            true => self.root.remove_git_dir_of(&self.session, &self.top()?)?,
            false => self.root.remove_git_dir(&self.session)?,
        }
        Ok(visible::remove_visible_store(&self.record.visible())?)
    }

    /// Returns the paths in the user's git directory that git needs in the commands' one.
    pub fn borrowed_paths(&self) -> Vec<PathBuf> {
        visible::readable_paths(&self.record.visible())
    }

    /// Imports the commits of commands and the paths that they track.
    pub fn import(&self, user: &Repository, before: CommitId) -> anyhow::Result<ImportedCommits> {
        let Some(git) = self.open_git_dir() else {
            return Ok(ImportedCommits::default());
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

        Ok(ImportedCommits {
            commit: received.commit,
            tracked: tracked.into_iter().collect(),
            remarks: received.remarks,
        })
    }

    /// Opens the git directory that commands left. Its content is untrusted.
    fn open_git_dir(&self) -> Option<Root> {
        let worktree = self.top().ok()?;
        make_writable(&worktree, OsStr::new(GIT));
        worktree.open_dir(Path::new(GIT)).ok()
    }

    /// Returns the paths in the commands' index that are not in ours.
    fn staged(&self, git: &Root, hash: gix::hash::Kind) -> BTreeSet<Vec<u8>> {
        let path = Path::new("index");
        let Ok(own) = self.index() else {
            return BTreeSet::new();
        };
        if git.has_bytes(path, &own) {
            return BTreeSet::new();
        }
        let Ok(current) = git.read(path, MAX_INDEX) else {
            return BTreeSet::new();
        };

        let paths = |bytes: &[u8]| tracked::read_index_paths(bytes, hash).unwrap_or_default();
        let own = paths(&own);
        let mut current = paths(&current);
        current.retain(|path| !own.contains(path));
        current
    }

    fn write_git_dir(&self, git: &Root, user: &Repository, at: CommitId) -> anyhow::Result<()> {
        let put = |name: &str, bytes: &[u8]| git.create_aside(Path::new(name), bytes);
        for dir in ["refs/heads", "refs/tags", "objects/pack", "objects/info"] {
            git.make_dir(Path::new(dir))?;
        }

        put("HEAD", format!("{at}\n").as_bytes())?;
        put("config", &config::generate_config(user))?;
        let refs = refs::copy_refs(user)?;
        let roots = roots(user, &refs, at);
        let store = visible::make_visible_store(user, &self.record.visible(), &roots)?;
        put("objects/info/alternates", &alternates(user, &store)?)?;
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
            if let Some(bytes) = copy_file(&path, MAX_COPIED) {
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

fn copy_file(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let dir = Root::open(path.parent()?).ok()?;
    dir.read(Path::new(path.file_name()?), limit).ok()
}

/// Returns the objects from which commands can reach others: HEAD, the refs that they see, and the
/// parents in grafts.
fn roots(user: &Repository, refs: &CopiedRefs, at: CommitId) -> BTreeSet<ObjectId> {
    let grafts = user.common_dir().join("info/grafts");
    let grafts = copy_file(&grafts, MAX_COPIED).unwrap_or_default();
    let words = [&refs.packed, &grafts];
    let words = words
        .into_iter()
        .flat_map(|text| text.split(u8::is_ascii_whitespace));
    let ids = words.filter_map(|word| ObjectId::from_hex(word).ok());
    ids.chain([at.0]).collect()
}

/// Returns the list of borrowed object directories: what commands see of the user's, and their
/// alternates. They are listed one by one because git follows alternates only five levels deep.
fn alternates(user: &Repository, visible: &Path) -> anyhow::Result<Vec<u8>> {
    let store = user.gix.objects.store_ref();
    let others = store.alternate_db_paths().during("reading alternates")?;
    let mut list = Vec::new();
    for dir in [visible.to_owned()].into_iter().chain(others) {
        let dir = dir.canonicalize().unwrap_or(dir);
        list.extend(alternates_line(&dir));
    }

    Ok(list)
}
