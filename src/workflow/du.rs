//! `gc -n`: measures the disk space that TeDDy uses for a repository.

use anyhow::Context as _;
use serde::Serialize;

use crate::git::command::run_checked;
use crate::git::repository::Repository;
use crate::git::worktree;
use crate::workflow::gc::{ARCHIVE, dir_size, files_below};

/// In bytes.
#[derive(Debug, Clone, Serialize)]
pub struct DiskUsage {
    /// Objects that only our refs reach.
    pub objects: u64,
    pub worktrees: Vec<WorktreeUsage>,
    pub undo: u64,
    /// Bundles of deleted sessions.
    pub archives: u64,
    /// For the user to inspect.
    pub rescued: Vec<String>,
    /// Indexes, copies and caches below `teddy`.
    pub state: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct WorktreeUsage {
    pub session: String,
    pub path: String,
    /// Includes ignored files.
    pub bytes: u64,
}

/// Takes no lock.
pub fn du(repository: &Repository) -> anyhow::Result<DiskUsage> {
    let undo = repository.teddy_dir().join("undo");
    let all = dir_size(&repository.teddy_dir());
    let archives = dir_size(&repository.teddy_dir().join(ARCHIVE));
    let worktree = |listed: crate::git::worktree::RecordedWorktree| WorktreeUsage {
        bytes: dir_size(&listed.path) + dir_size(&listed.layer),
        session: listed.session,
        path: listed.path.display().to_string(),
    };

    Ok(DiskUsage {
        objects: objects(repository)?,
        worktrees: worktree::session_worktrees(repository)
            .into_iter()
            .map(worktree)
            .collect(),
        undo: dir_size(&undo),
        archives,
        rescued: files_below(&undo.join("rescued"))
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
        state: all.saturating_sub(dir_size(&undo) + archives),
    })
}

fn objects(repository: &Repository) -> anyhow::Result<u64> {
    let mut command = repository.git()?;
    command.args([
        "rev-list",
        "--disk-usage",
        "--objects",
        "--glob=refs/teddy/*",
        "--not",
        "--branches",
        "--tags",
        "--remotes",
    ]);
    let output = run_checked(&mut command, "measure the objects")?;
    String::from_utf8_lossy(&output)
        .trim()
        .parse()
        .context("reading what git rev-list says")
}
