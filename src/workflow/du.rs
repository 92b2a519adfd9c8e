//! Where the room goes: what TeDDy keeps for a repository, in git and beside it.

use anyhow::Context as _;
use serde::Serialize;

use crate::git::repository::Repository;
use crate::git::worktree;
use crate::workflow::gc::{ARCHIVE, files_below, size};

/// What TeDDy keeps.
#[derive(Debug, Clone, Serialize)]
pub struct DiskUsage {
    /// Bytes of objects that only our refs reach.
    pub objects: u64,
    /// The worktrees.
    pub worktrees: Vec<WorktreeUsage>,
    /// Bytes below `teddy/undo`.
    pub undo: u64,
    /// Bytes of the bundles of deleted sessions.
    pub archives: u64,
    /// Files with bytes of the user's that were set aside, to be looked at.
    pub rescued: Vec<String>,
    /// Bytes of indexes, copies and caches below `teddy`.
    pub state: u64,
}

/// A worktree and its size.
#[derive(Debug, Clone, Serialize)]
pub struct WorktreeUsage {
    /// The session.
    pub session: String,
    /// Where it is.
    pub path: String,
    /// Its bytes, what is ignored included.
    pub bytes: u64,
}

/// Measures what TeDDy keeps; takes no lock.
///
/// # Errors
/// Where git is not installed, or the worktrees cannot be listed.
pub fn du(repository: &Repository) -> anyhow::Result<DiskUsage> {
    let undo = repository.teddy_dir().join("undo");
    let all = size(&repository.teddy_dir());
    let archives = size(&repository.teddy_dir().join(ARCHIVE));
    let worktree = |listed: crate::git::worktree::RememberedWorktree| WorktreeUsage {
        bytes: size(&listed.path) + size(&listed.layer),
        session: listed.session,
        path: listed.path.display().to_string(),
    };

    Ok(DiskUsage {
        objects: objects(repository)?,
        worktrees: worktree::session_worktrees(repository)
            .into_iter()
            .map(worktree)
            .collect(),
        undo: size(&undo),
        archives,
        rescued: files_below(&undo.join("rescued"))
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
        state: all.saturating_sub(size(&undo) + archives),
    })
}

/// Returns the bytes of the objects that nothing but our refs reaches.
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
    let output = command.output().context("starting git rev-list")?;
    anyhow::ensure!(
        output.status.success(),
        "git rev-list failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );

    String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .context("reading what git rev-list says")
}
