//! What a hook can change of a repository besides files: HEAD, the stash and other refs.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::time::SystemTime;

use crate::git::command::run_checked;
use crate::git::object::CommitId;
use crate::git::refs;
use crate::git::repository::Repository;
use crate::git::user_git::silent_git_for;

#[derive(Debug, Clone)]
pub struct SharedState {
    branch: Option<String>,
    stash: Vec<StashEntry>,
    refs: BTreeMap<String, CommitId>,
    index: Option<IndexStamp>,
}

/// Differs once git has written the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IndexStamp {
    inode: u64,
    modified: SystemTime,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StashEntry {
    pub commit: String,
    /// Its line in the list.
    pub message: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedChanges {
    pub dropped: Vec<StashEntry>,
    pub added: Vec<StashEntry>,
    /// Other refs that moved or are gone, each with its commit before.
    pub moved: Vec<(String, CommitId)>,
    /// The branch that HEAD was on, if it is on another one.
    pub left_branch: Option<String>,
    /// The branch that it is on then.
    pub new_branch: Option<String>,
}

/// What was put back as it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestoredState {
    pub stash: bool,
    pub head: bool,
}

impl SharedState {
    pub fn read(repository: &Repository) -> anyhow::Result<SharedState> {
        let is_other =
            |name: &str| !name.starts_with("refs/teddy/") && name != "refs/stash" && name != "HEAD";
        let refs = refs::list(repository, "refs/")?.into_iter();
        Ok(SharedState {
            branch: refs::branch(repository)?,
            index: index_stamp(repository),
            stash: stash(repository)?,
            refs: refs
                .filter(|reference| is_other(&reference.name))
                .map(|reference| (reference.name, reference.target))
                .collect(),
        })
    }

    /// Returns what changed since, except for the branch that was landed on.
    pub fn changes(&self, repository: &Repository, branch: &str) -> anyhow::Result<SharedChanges> {
        let now = SharedState::read(repository)?;
        let without = |some: &[StashEntry], others: &[StashEntry]| {
            let is_gone = |entry: &&StashEntry| !others.contains(entry);
            some.iter().filter(is_gone).cloned().collect()
        };
        let is_moved = |(name, old): &(&String, &CommitId)| {
            *name != branch && now.refs.get(*name) != Some(old)
        };
        let moved = self.refs.iter().filter(is_moved);
        let has_left = now.branch != self.branch;
        Ok(SharedChanges {
            dropped: without(&self.stash, &now.stash),
            added: without(&now.stash, &self.stash),
            moved: moved.map(|(name, old)| (name.clone(), *old)).collect(),
            left_branch: self.branch.clone().filter(|_| has_left),
            new_branch: now.branch.filter(|_| has_left),
        })
    }

    /// `false` if the user used git in the checkout meanwhile, such as for a checkout.
    pub fn has_same_index(&self, repository: &Repository) -> bool {
        self.index == index_stamp(repository)
    }
}

fn index_stamp(repository: &Repository) -> Option<IndexStamp> {
    let index = repository.gix.index_path().metadata().ok()?;
    Some(IndexStamp {
        inode: index.ino(),
        modified: index.modified().ok()?,
    })
}

/// Puts stash entries back that a hook popped into the separate directory. The user's files do not
/// have their content.
pub fn restore_stash(repository: &Repository, dropped: &[StashEntry]) -> anyhow::Result<()> {
    // Oldest first: the last entry stored becomes `stash@{0}`.
    for entry in dropped.iter().rev() {
        let mut git = silent_git_for(repository)?;
        git.args(["stash", "store", "--quiet", "-m", &entry.message]);
        run_checked(git.arg(&entry.commit), "restore a stash entry")?;
    }
    Ok(())
}

/// Puts HEAD back on a branch that a hook left in the separate directory. The user's files are still
/// those of that branch.
pub fn restore_branch(repository: &Repository, branch: &str) -> anyhow::Result<()> {
    let mut git = silent_git_for(repository)?;
    let branch = format!("refs/heads/{branch}");
    git.args(["symbolic-ref", "-m", "teddy land: restore HEAD", "HEAD"]);
    run_checked(git.arg(branch), "restore HEAD").map(drop)
}

fn stash(repository: &Repository) -> anyhow::Result<Vec<StashEntry>> {
    if refs::read(repository, "refs/stash")?.is_none() {
        return Ok(Vec::new());
    }
    let mut git = silent_git_for(repository)?;
    git.args(["stash", "list", "--format=%H %gs"]);
    let list = run_checked(&mut git, "list the stash")?;
    let list = String::from_utf8_lossy(&list).into_owned();
    let entry = |line: &str| {
        let (commit, message) = line.split_once(' ').unwrap_or((line, ""));
        StashEntry {
            commit: commit.to_owned(),
            message: message.to_owned(),
        }
    };
    Ok(list.lines().map(entry).collect())
}
