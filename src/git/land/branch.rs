//! The branch that a landing commits on: checks that it can move, and moves it.

use std::path::PathBuf;

use crate::git::During as _;
use crate::git::object::{CommitId, TreeId};
use crate::git::refs::{self, choose};
use crate::git::repository::Repository;
use crate::git::user_git::git_for;
use crate::host::env;

#[derive(Debug, thiserror::Error)]
pub enum Obstacle {
    #[error("HEAD is detached: there is no branch to land on")]
    Detached,
    #[error("HEAD is on `{0}`, which is not a branch")]
    NoBranch(String),
    #[error("{0} is in progress")]
    UnderWay(&'static str),
    #[error("the index has unresolved conflicts: `{0}`")]
    Unmerged(String),
    #[error("`{branch}` is also checked out in `{}`", path.display())]
    CheckedOut { branch: String, path: PathBuf },
    /// git still runs for an interrupted landing.
    #[error("a landing on `{0}` that was stopped is just ending")]
    Ending(String),
    #[error("HEAD is on `{0}`, which GitButler writes anew: a commit there would not stay")]
    GitButler(String),
    #[error("a branch named `{0}` already exists")]
    Exists(String),
    #[error("`{0}` is not a valid branch name")]
    BadName(String),
    #[error("`GIT_INDEX_FILE` names another index than this checkout's")]
    OtherIndex,
    #[error("git does not know who you are: {0}")]
    NoIdentity(String),
}

impl Obstacle {
    pub fn hint(&self) -> String {
        match self {
            Obstacle::Detached | Obstacle::NoBranch(_) => {
                "`--branch <name>` lands on a new branch; or `git switch <branch>` first".to_owned()
            }
            Obstacle::UnderWay(_) => "finish it, or abort it, first; `git status` says how".to_owned(),
            Obstacle::Unmerged(_) => "resolve them and `git add` the files first".to_owned(),
            Obstacle::CheckedOut { path, .. } if !path.exists() => format!(
                "it is not there; `git worktree remove --force --force {}` forgets it; or land on a new branch (`--branch <name>`)",
                path.display()
            ),
            Obstacle::CheckedOut { path, .. } => format!(
                "land there (`-C {}`), or on a new branch (`--branch <name>`)",
                path.display()
            ),
            Obstacle::GitButler(_) => "commit with GitButler (`but commit`), or `git switch <branch>` to a \
                                       branch of your own first"
                .to_owned(),
            Obstacle::OtherIndex => {
                "a landing updates the checkout's index only; unset the variable first".to_owned()
            }
            Obstacle::Ending(_) => "try again in a moment".to_owned(),
            Obstacle::Exists(_) | Obstacle::BadName(_) => "choose another name".to_owned(),
            Obstacle::NoIdentity(_) => {
                "`git config --global user.name <name>` and `git config --global user.email <address>`"
                    .to_owned()
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub name: String,
    /// Parent of the first landed commit; `None` on an unborn branch.
    pub base: Option<CommitId>,
    pub tree: TreeId,
    pub is_current: bool,
}

impl Target {
    pub fn reference(&self) -> String {
        format!("refs/heads/{}", self.name)
    }
}

/// Returns the branch to land on: a new one of this name, or the current one. The error is an
/// [`Obstacle`] if the user can remove it.
pub fn target(repository: &Repository, new: Option<&str>) -> anyhow::Result<Target> {
    check_state(repository)?;
    check_identity(repository)?;
    let (base, tree) = (refs::head(repository)?, refs::head_tree(repository)?);
    let current = refs::branch(repository)?;
    if let Some(name) = current
        .as_ref()
        .filter(|name| name.starts_with("gitbutler/"))
    {
        return Err(Obstacle::GitButler(name.clone()).into());
    }
    if let Some(name) = new {
        let full = format!("refs/heads/{name}");
        let is_name = gix::refs::FullName::try_from(full.as_str()).is_ok();
        if !is_name || name.starts_with('-') || name == "HEAD" {
            return Err(Obstacle::BadName(name.to_owned()).into());
        }

        if refs::read(repository, &full)?.is_some() {
            return Err(Obstacle::Exists(name.to_owned()).into());
        }

        let is_current = current.as_deref() == Some(name);
        return Ok(Target {
            name: name.to_owned(),
            base,
            tree,
            is_current,
        });
    }

    let name = current.ok_or(Obstacle::Detached)?;
    // Only a ref that is not a branch keeps its prefix when it is shortened.
    if name.starts_with("refs/") {
        return Err(Obstacle::NoBranch(name).into());
    }
    if let Some(path) = elsewhere(repository, &name)? {
        return Err(Obstacle::CheckedOut { branch: name, path }.into());
    }

    Ok(Target {
        name,
        base,
        tree,
        is_current: true,
    })
}

fn check_state(repository: &Repository) -> anyhow::Result<()> {
    use gix::state::InProgress;

    let operation = match repository.gix.state() {
        None => None,
        Some(InProgress::Bisect) => Some("a bisection"),
        Some(InProgress::Merge) => Some("a merge"),
        Some(InProgress::CherryPick | InProgress::CherryPickSequence) => Some("a cherry-pick"),
        Some(InProgress::Revert | InProgress::RevertSequence) => Some("a revert"),
        Some(InProgress::ApplyMailbox) => Some("`git am`"),
        Some(_) => Some("a rebase"),
    };
    let is_there = |name| Ok::<_, anyhow::Error>(refs::read(repository, name)?.is_some());
    let operation = match operation {
        Some(operation) => Some(operation),
        // gix looks for files, which a reftable does not have.
        None if is_there("CHERRY_PICK_HEAD")? => Some("a cherry-pick"),
        None if is_there("REVERT_HEAD")? => Some("a revert"),
        // Between two commits of a series.
        None => repository
            .git_dir()
            .join("sequencer/todo")
            .exists()
            .then_some("a cherry-pick or revert"),
    };

    if let Some(operation) = operation {
        return Err(Obstacle::UnderWay(operation).into());
    }

    let used = env::var_os("GIT_INDEX_FILE").map(|path| repository.workdir().join(path));
    let resolved = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let own = resolved(repository.gix.index_path());
    if used.is_some_and(|path| resolved(path) != own) {
        return Err(Obstacle::OtherIndex.into());
    }
    let index = repository
        .gix
        .index_or_empty()
        .during("reading git's index")?;
    let conflict = index
        .entries()
        .iter()
        .find(|entry| entry.stage_raw() != 0)
        .map(|entry| entry.path(&index).to_string());
    conflict.map_or(Ok(()), |path| Err(Obstacle::Unmerged(path).into()))
}

pub(in crate::git) fn check_identity(repository: &Repository) -> anyhow::Result<()> {
    for role in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
        let mut git = git_for(repository)?;
        let output = git.args(["var", role]).output()?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let last = stderr.lines().rev().find(|line| !line.is_empty());
            let why = last.unwrap_or("it has neither name nor address");
            return Err(Obstacle::NoIdentity(why.trim_start_matches("fatal: ").to_owned()).into());
        }
    }

    Ok(())
}

/// Returns another worktree that has a branch checked out.
fn elsewhere(repository: &Repository, branch: &str) -> anyhow::Result<Option<PathBuf>> {
    let own = repository.git_dir().canonicalize()?;
    let mut others = vec![repository.main_repository().ok()];
    for proxy in repository.gix.worktrees().during("listing worktrees")? {
        others.push(proxy.into_repo_with_possibly_inaccessible_worktree().ok());
    }

    // A worktree that cannot be opened does not count.
    for other in others.into_iter().flatten() {
        let is_own = other.git_dir().canonicalize().is_ok_and(|dir| dir == own);
        // Not from gix, which cannot read a reftable.
        let refs = choose::of(&other, other.common_dir()).ok();
        let head = refs.and_then(|refs| refs.head().ok());
        let name = head.and_then(|head| head.branch);
        let is_on = name.is_some_and(|name| name.shorten() == branch);

        // To gix, the linked worktrees of a bare repository are bare, too.
        let is_bare = other.is_bare() && other.git_dir() == other.common_dir();
        if is_on && !is_own && !is_bare {
            let path = other.workdir().unwrap_or(other.git_dir());
            return Ok(Some(path.to_owned()));
        }
    }

    Ok(None)
}
