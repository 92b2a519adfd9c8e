//! Implements `doctor --fix`: only harmless repairs. Deletes nothing that a user made, moves no
//! session, costs nothing.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{HealthCheck, Patient, display_path};
use crate::git::worktree;
use crate::host::file::open_regular;
use crate::text::sanitize::sanitize_line;
use crate::workflow::project::Project;
use crate::workspace::worktrees::try_lock_worktree;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Repair {
    /// Hide the refs of sessions from the decorations of `git log`.
    HideDecoration,
    /// Restrict a file to its owner.
    Close(PathBuf),
    /// Remove the record of a missing worktree.
    ForgetWorktree(String),
}

/// Result of a repair.
#[derive(Debug)]
pub struct RepairOutcome {
    /// The check that it repairs.
    pub check: HealthCheck,
    /// Description of the change, or the error.
    pub result: anyhow::Result<String>,
}

impl Patient {
    /// Applies the repairs of all checks.
    pub fn repair(&self, checks: &[HealthCheck]) -> Vec<RepairOutcome> {
        let repairs = checks
            .iter()
            .filter_map(|check| Some((check, check.repair.as_ref()?)));
        let outcomes = repairs.map(|(check, repair)| RepairOutcome {
            check: check.clone(),
            result: self.apply(repair),
        });
        outcomes.collect()
    }

    fn apply(&self, repair: &Repair) -> anyhow::Result<String> {
        match (repair, self.project.as_ref().ok()) {
            (Repair::Close(file), _) => restrict_permissions(file),
            (Repair::HideDecoration, Some(project)) => hide_decoration(project),
            (Repair::ForgetWorktree(session), Some(project)) => forget_worktree(project, session),
            (_, None) => anyhow::bail!("there is no repository any more"),
        }
    }
}

fn hide_decoration(project: &Project) -> anyhow::Result<String> {
    let mut command = project.repository.git()?;
    command.args(["config", "--add", "log.excludeDecoration", "refs/teddy/"]);
    let output = command.output().context("starting git config")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "git config failed: {}",
        sanitize_line(stderr.trim())
    );
    Ok("set `log.excludeDecoration` to `refs/teddy/` in this repository".to_owned())
}

fn restrict_permissions(path: &Path) -> anyhow::Result<String> {
    anyhow::ensure!(!path.is_symlink(), "`{}` is a link", display_path(path));
    let file = open_regular(path).with_context(|| format!("opening `{}`", display_path(path)))?;
    let mut permissions = file.metadata()?.permissions();
    permissions.set_mode(permissions.mode() & !0o077);
    file.set_permissions(permissions)
        .with_context(|| format!("closing `{}`", display_path(path)))?;
    Ok(format!("closed `{}` to others", display_path(path)))
}

fn forget_worktree(project: &Project, session: &str) -> anyhow::Result<String> {
    let Some(_lock) = try_lock_worktree(&project.checkout(), session, "doctor") else {
        anyhow::bail!(
            "a process is at work in session `{}`",
            sanitize_line(session)
        );
    };
    // It can have been created again since the check.
    let listed = worktree::session_worktrees(&project.repository);
    let one = listed.iter().find(|one| one.session == session);
    if one.is_some_and(|one| !one.path.exists()) {
        worktree::remove_session_worktree(&project.repository, session)?;
    }
    Ok(format!(
        "forgot the worktree of `{}`, which is gone",
        sanitize_line(session)
    ))
}
