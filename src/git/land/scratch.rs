//! A scratch worktree in which git makes a commit: it has what is committed and nothing else, so
//! that hooks check that, and a formatter changes that.
//!
//! Whatever happens here is nobody's until a branch moves. A child that outlives us, an editor or a
//! hook, can only move a ref of this worktree.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::Context as _;

use super::hooks::{self, Hooks, LANDING, Verify};
use super::links::link_ignored;
use crate::git::keep::durable::note_written;
use crate::git::object::{CommitId, TreeId};
use crate::git::repository::Repository;
use crate::git::user_git::{answer, in_checkout, silent_git, user_git};
use crate::host::file::read_regular_text;
use crate::host::foreground::{self, Foreground};
use crate::host::interrupt;

/// The folder below that of the worktrees in which commits are made, a folder for each session.
pub const LANDINGS: &str = ".landing";
/// The name of the worktree, below a folder of its own.
pub(super) const WORKTREE: &str = "teddy-land";
/// The message, beside it.
const MESSAGE: &str = "message";
/// The ignore rules for what is linked into it, beside it, too.
const RULES: &str = "ignored";
/// What is in the name of a folder that goes; no session has two dots there.
const ASIDE: &str = "..old-";
/// More than this is no template.
const MAX_TEMPLATE: u64 = 1 << 20;
/// What git is told for every commit: what it writes is durable before anything points at it, and
/// no collection begins while nothing does.
const SETTINGS: [&str; 3] = [
    "core.fsync=committed",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// The worktree; removed when dropped.
pub struct LandingWorktree<'a> {
    /// The repository.
    repository: &'a Repository,
    /// The folder that holds the worktree, the message and the hooks.
    folder: PathBuf,
    /// The hooks.
    hooks: Hooks,
    /// Whether those run that check.
    verify: Verify,
}

/// How a commit gets its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageEdit {
    /// It is as it is.
    No,
    /// The user's editor opens it first.
    InEditor,
}

/// A commit to make.
pub struct Wanted<'a> {
    /// Its parent; nothing for the first commit of a repository.
    pub parent: Option<CommitId>,
    /// Its tree, before hooks.
    pub tree: TreeId,
    /// The branch that hooks see as the one committed to; without one, or where it is at another
    /// commit than the parent, they see none.
    pub branch: Option<&'a str>,
    /// The message.
    pub message: &'a str,
    /// Whether it is edited.
    pub edit: MessageEdit,
}

/// git made no commit: a hook refused, the message was empty, a key was missing. Its words are on
/// the screen already.
#[derive(Debug, thiserror::Error)]
#[error("git made no commit ({status}); nothing was changed")]
pub struct CommitRefused {
    /// How git ended.
    pub status: ExitStatus,
}

impl<'a> LandingWorktree<'a> {
    /// Makes the worktree in a folder, which is ours alone.
    ///
    /// # Errors
    /// If git cannot make it.
    pub fn make(
        repository: &'a Repository,
        folder: &Path,
        base: Option<CommitId>,
        verify: Verify,
    ) -> anyhow::Result<LandingWorktree<'a>> {
        use std::os::unix::fs::DirBuilderExt as _;

        remove(repository, folder)?;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let scripts = folder.join("hooks");
        let scratch = LandingWorktree {
            repository,
            hooks: hooks::wrap(repository, (&scripts, &folder.join(RULES)), verify)?,
            folder: folder.to_owned(),
            verify,
        };

        let mut git = in_checkout(silent_git(repository.workdir())?, repository);
        git.args(["worktree", "add", "--quiet", "--force"]);
        match base {
            Some(_) => git.args(["--detach", "--no-checkout"]),
            None => git.args(["--orphan", "-b", "teddy-land"]),
        };

        git.arg(scratch.path());
        if let Some(base) = base {
            git.arg(base.to_string());
        }

        answer(&mut git, "make a scratch worktree for the commit")?;
        Ok(scratch)
    }

    /// Makes a commit and returns it.
    ///
    /// # Errors
    /// [`CommitRefused`], or where git cannot be run.
    pub fn commit(&self, wanted: &Wanted<'_>) -> anyhow::Result<CommitId> {
        self.see(wanted)?;
        self.fill(wanted)?;
        let message = self.folder.join(MESSAGE);
        std::fs::write(&message, wanted.message)?;
        let mut git = user_git(&self.path())?;

        git.arg("-c")
            .arg(setting("core.hooksPath", &self.hooks.folder));
        let rules = self.folder.join(RULES);
        if rules.exists() {
            git.arg("-c").arg(setting("core.excludesFile", &rules));
        }

        for setting in SETTINGS {
            git.args(["-c", setting]);
        }

        if wanted.edit == MessageEdit::No {
            // As the message is; an editor writes it as the user has it set.
            git.args(["-c", "i18n.commitEncoding=UTF-8"]);
        }
        git.args(["commit", "--quiet", "--file"]).arg(&message);
        if wanted.edit == MessageEdit::InEditor {
            git.arg("--edit");
        }

        if self.verify == Verify::No {
            git.arg("--no-verify");
        }

        let way = match wanted.edit {
            MessageEdit::No => Foreground::Watched,
            MessageEdit::InEditor => Foreground::Terminal,
        };
        let status = foreground::run(&mut git, way).context("cannot start `git commit`")?;
        anyhow::ensure!(
            !interrupt::requested(),
            "interrupted before anything was changed"
        );
        if !status.success() {
            return Err(CommitRefused { status }.into());
        }

        note_written();
        self.made(wanted.parent)
    }

    /// Returns the commit that git made.
    fn made(&self, parent: Option<CommitId>) -> anyhow::Result<CommitId> {
        let head = self.git(
            &["rev-parse", "--symbolic-full-name", "HEAD"],
            "find the commit",
        )?;
        anyhow::ensure!(
            !head.starts_with(b"refs/heads/"),
            "a hook went back to the branch in the scratch worktree"
        );
        let args = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"];
        let id = self.git(&args, "find the commit")?;
        let id: CommitId = String::from_utf8_lossy(&id).trim().parse()?;
        let commit = self.repository.commit(id)?;

        anyhow::ensure!(
            commit.parents == parent.into_iter().collect::<Vec<_>>(),
            "a hook made other commits in the scratch worktree; nothing was changed"
        );
        Ok(id)
    }

    /// Makes `HEAD` what hooks see while the commit is made.
    fn see(&self, wanted: &Wanted<'_>) -> anyhow::Result<()> {
        let branch = wanted.branch.map(|name| format!("refs/heads/{name}"));
        if let Some(parent) = wanted.parent {
            let parent = parent.to_string();
            self.git(&["update-ref", LANDING, &parent], "prepare the commit")?;
            self.git(
                &["update-ref", "--no-deref", "HEAD", &parent],
                "prepare the commit",
            )?;
        }

        match branch {
            Some(branch) => self.git(&["symbolic-ref", "HEAD", &branch], "prepare the commit"),
            None => Ok(Vec::new()),
        }
        .map(drop)
    }

    /// Gives the worktree the files that are committed, if anybody looks at them.
    fn fill(&self, wanted: &Wanted<'_>) -> anyhow::Result<()> {
        let tree = wanted.tree.to_string();
        if !self.hooks.any && wanted.edit == MessageEdit::No {
            let args = ["read-tree", &tree];
            return self.git(&args, "fill the scratch worktree").map(drop);
        }

        let args = ["read-tree", "--reset", "-u", &tree];
        self.git(&args, "fill the scratch worktree")?;
        link_ignored(self.repository, &self.path(), &self.folder.join(RULES))
    }

    /// Runs git in the worktree, without hooks.
    fn git(&self, args: &[&str], what: &str) -> anyhow::Result<Vec<u8>> {
        let mut git: Command = silent_git(&self.path())?;
        answer(git.args(args), what)
    }

    /// Returns the top of the worktree.
    fn path(&self) -> PathBuf {
        self.folder.join(WORKTREE)
    }
}

impl Drop for LandingWorktree<'_> {
    fn drop(&mut self) {
        // What resists is removed by the next call.
        let _ = remove(self.repository, &self.folder);
    }
}

/// Returns the user's template of a message, if they have one.
pub fn template(repository: &Repository) -> Option<String> {
    let snapshot = repository.gix.config_snapshot();
    let path = snapshot.trusted_path("commit.template").ok().flatten()?;
    let path = repository.workdir().join(path);
    read_regular_text(&path, MAX_TEMPLATE).ok()
}

/// Returns a setting with a path as `git -c` takes it.
fn setting(name: &str, path: &Path) -> std::ffi::OsString {
    [OsStr::new(name), OsStr::new("="), path.as_os_str()]
        .into_iter()
        .collect()
}

/// Removes a scratch worktree, also one that a crash left; false where there is none. It is moved
/// away first: a hook of a TeDDy that was killed may still write in it.
///
/// # Errors
/// If it cannot be moved away, or git goes on taking it for a worktree.
pub fn remove(repository: &Repository, folder: &Path) -> anyhow::Result<bool> {
    if folder.symlink_metadata().is_err() {
        return Ok(false);
    }

    let during = || format!("removing `{}`", folder.display());
    let aside = aside(folder);
    std::fs::rename(folder, &aside).with_context(during)?;
    let worktree = folder.join(WORKTREE);
    let mut git = in_checkout(silent_git(repository.workdir())?, repository);

    git.args(["worktree", "remove", "--force", "--force"])
        .arg(&worktree);
    // Where the crash was early git does not know it.
    let _ = answer(&mut git, "remove the scratch worktree");
    sweep(&aside);
    Ok(true)
}

/// Returns a free name for a folder that goes.
fn aside(folder: &Path) -> PathBuf {
    let name = |number: u32| {
        let mut name = folder.as_os_str().to_owned();
        name.push(format!("{ASIDE}{number}"));
        PathBuf::from(name)
    };
    (0..)
        .map(name)
        .find(|path| path.symlink_metadata().is_err())
        .expect("some number is free")
}

/// Returns whether a name is that of a folder that goes.
pub fn is_aside(name: &str) -> bool {
    name.contains(ASIDE)
}

/// Removes a folder that was moved away, as far as that can be done now.
pub fn sweep(aside: &Path) {
    let _ = std::fs::remove_dir_all(aside);
}
