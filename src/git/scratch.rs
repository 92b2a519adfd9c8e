//! Empty scratch repositories that borrow the user's objects. New objects and refs in them are
//! invisible to the user's repository.

use std::path::PathBuf;
use std::process::Command;

use super::During as _;
use super::command::{git_in, run_with_input};
use super::object::CommitId;
use super::open::{OpenError, plain};
use super::repository::{Repository, alternates_line};
use crate::host::file::make_dirs;

/// The scratch repository. Dropping it deletes it.
pub(super) struct BorrowingRepository {
    pub(super) dir: tempfile::TempDir,
}

impl BorrowingRepository {
    pub(super) fn make(
        repository: &Repository,
        dir: tempfile::TempDir,
    ) -> anyhow::Result<BorrowingRepository> {
        let scratch = BorrowingRepository { dir };
        let mut git = git_in(scratch.dir.path())?;
        let hash = repository.gix.object_hash();
        // No hooks from the user's template.
        git.args(["init", "--quiet", "--bare", "--template="])
            .arg(format!("--object-format={hash}"))
            .arg(scratch.path());
        run_with_input(&mut git, &[], "make a scratch repository")?;

        // Not with GIT_ALTERNATE_OBJECT_DIRECTORIES, which splits paths at colons.
        let store = repository.gix.objects.store_ref().path();
        let objects = alternates_line(&store.canonicalize()?);
        let info = scratch.objects().join("info");
        make_dirs(&info)?;
        std::fs::write(info.join("alternates"), objects)?;

        Ok(scratch)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join("git")
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
        let id = run_with_input(&mut git, bytes, "write an object")?;
        String::from_utf8_lossy(&id).trim().parse()
    }

    pub(super) fn put_refs(&self, refs: &[(String, CommitId)]) -> anyhow::Result<()> {
        let lines = refs
            .iter()
            .map(|(name, to)| format!("create {name} {to}\n"));
        let mut git = self.git()?;
        git.args(["update-ref", "--stdin"]);
        run_with_input(&mut git, lines.collect::<String>().as_bytes(), "name them")?;
        Ok(())
    }

    pub(super) fn open(&self) -> anyhow::Result<Repository> {
        let path = self.path().canonicalize()?;
        let opened = gix::open_opts(&path, plain());
        let gix = opened.during("opening a scratch repository")?;

        Repository::of(gix, path.clone(), path.clone(), true)
            .map_err(|format| OpenError::RefFormat(path, format).into())
    }
}
