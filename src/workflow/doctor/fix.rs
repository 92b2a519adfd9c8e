//! What `--fix` does: only what is harmless. Nothing that a user made is deleted, no session moves,
//! and nothing is spent.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{HealthCheck, Patient, shown};
use crate::git::worktree;
use crate::host::file::open_regular;
use crate::text::visible::visible;
use crate::workflow::project::Project;
use crate::workspace::worktrees::try_lock_worktree;

/// Something harmless that fixes a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Repair {
    /// Keeps the refs of sessions out of what `git log` shows beside commits.
    HideDecoration,
    /// Closes a file to others.
    Close(PathBuf),
    /// Forgets a worktree that is gone.
    ForgetWorktree(String),
}

/// Something that was fixed, or could not be.
#[derive(Debug)]
pub struct RepairOutcome {
    /// The check.
    pub check: HealthCheck,
    /// What was done, or why it failed.
    pub done: anyhow::Result<String>,
}

impl Patient {
    /// Fixes what is harmless to fix, one after another.
    pub fn repair(&self, checks: &[HealthCheck]) -> Vec<RepairOutcome> {
        let repairs = checks
            .iter()
            .filter_map(|check| Some((check, check.repair.as_ref()?)));
        let done = repairs.map(|(check, repair)| RepairOutcome {
            check: check.clone(),
            done: self.apply(repair),
        });
        done.collect()
    }

    /// Does one thing, and says what it did.
    fn apply(&self, repair: &Repair) -> anyhow::Result<String> {
        match (repair, self.project.as_ref().ok()) {
            (Repair::Close(file), _) => close(file),
            (Repair::HideDecoration, Some(project)) => hide_decoration(project),
            (Repair::ForgetWorktree(session), Some(project)) => forget_worktree(project, session),
            (_, None) => anyhow::bail!("there is no repository any more"),
        }
    }
}

/// Sets what keeps our refs out of `git log`.
fn hide_decoration(project: &Project) -> anyhow::Result<String> {
    let mut command = project.repository.git()?;
    command.args(["config", "--add", "log.excludeDecoration", "refs/teddy/"]);
    let output = command.output().context("starting git config")?;
    let words = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "git config failed: {}",
        visible(words.trim())
    );
    Ok("set `log.excludeDecoration` to `refs/teddy/` in this repository".to_owned())
}

/// Takes a file from everybody but its owner.
fn close(path: &Path) -> anyhow::Result<String> {
    anyhow::ensure!(!path.is_symlink(), "`{}` is a link", shown(path));
    let file = open_regular(path).with_context(|| format!("opening `{}`", shown(path)))?;
    let mut permissions = file.metadata()?.permissions();
    permissions.set_mode(permissions.mode() & !0o077);
    file.set_permissions(permissions)
        .with_context(|| format!("closing `{}`", shown(path)))?;
    Ok(format!("closed `{}` to others", shown(path)))
}

/// Forgets what is known of a worktree that is gone.
fn forget_worktree(project: &Project, session: &str) -> anyhow::Result<String> {
    let Some(_lock) = try_lock_worktree(&project.checkout(), session, "doctor") else {
        anyhow::bail!("a process is at work in session `{}`", visible(session));
    };
    // It may be there again by now.
    let listed = worktree::session_worktrees(&project.repository);
    let one = listed.iter().find(|one| one.session == session);
    if one.is_some_and(|one| !one.path.exists()) {
        worktree::remove_session_worktree(&project.repository, session)?;
    }
    Ok(format!(
        "forgot the worktree of `{}`, which is gone",
        visible(session)
    ))
}
