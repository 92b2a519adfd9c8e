//! An empty scratch repository that borrows the user's objects. New objects and refs in it are
//! invisible to the user's repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::git::During as _;
use crate::git::alternates::alternates_line;
use crate::git::command::git_in;
use crate::git::object::CommitId;
use crate::git::open::{OpenError, plain};
use crate::git::repository::Repository;
use crate::git::user_git::feed;
use crate::host::file::make_folders;

/// The scratch repository. Dropping it deletes it.
pub(super) struct BorrowingRepository {
    folder: tempfile::TempDir,
}

impl BorrowingRepository {
    pub(super) fn make(
        repository: &Repository,
        folder: tempfile::TempDir,
    ) -> anyhow::Result<BorrowingRepository> {
        let made = BorrowingRepository { folder };
        let mut git = git_in(made.folder.path())?;
        let hash = repository.gix.object_hash();
        git.args(["init", "--quiet", "--bare", "--template="])
            .arg(format!("--object-format={hash}"))
            .arg(made.path());
        feed(&mut git, &[], "make a scratch repository")?;

        // Not with GIT_ALTERNATE_OBJECT_DIRECTORIES, which splits paths at colons.
        let store = repository.gix.objects.store_ref().path();
        let objects = alternates_line(&store.canonicalize()?);
        let info = made.objects().join("info");
        make_folders(&info)?;
        std::fs::write(info.join("alternates"), objects)?;

        Ok(made)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("git")
    }

    pub(super) fn objects(&self) -> PathBuf {
        self.path().join("objects")
    }

    pub(super) fn git(&self) -> anyhow::Result<Command> {
        let path = self.path();
        let mut git = git_in(&path)?;
        git.arg("--git-dir").arg(path);
        Ok(git)
    }

    pub(super) fn write(&self, kind: &str, bytes: &[u8]) -> anyhow::Result<CommitId> {
        let mut git = self.git()?;
        git.args(["hash-object", "-w", "--stdin", "-t", kind]);
        let id = feed(&mut git, bytes, "write an object")?;
        String::from_utf8_lossy(&id).trim().parse()
    }

    pub(super) fn put_refs(&self, refs: &[(String, CommitId)]) -> anyhow::Result<()> {
        let lines = refs
            .iter()
            .map(|(name, to)| format!("create {name} {to}\n"));
        let mut git = self.git()?;
        git.args(["update-ref", "--stdin"]);
        feed(&mut git, lines.collect::<String>().as_bytes(), "name them")?;
        Ok(())
    }

    /// Opens it read-only.
    pub(super) fn open(&self) -> anyhow::Result<Repository> {
        let path = self.path().canonicalize()?;
        let opened = gix::open_opts(&path, plain());
        let gix = opened.during("opening a scratch repository")?;

        Repository::of(gix, (path.clone(), path.clone()), true)
            .map_err(|format| OpenError::RefFormat(path, format).into())
    }
}

pub(super) fn folder_in(all: &Path) -> anyhow::Result<tempfile::TempDir> {
    let made = make_folders(all).and_then(|()| tempfile::Builder::new().prefix("").tempdir_in(all));
    made.with_context(|| format!("cannot write in `{}`", all.display()))
}
