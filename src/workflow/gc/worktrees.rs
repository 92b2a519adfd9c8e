//! Finds and removes idle worktrees and records of deleted checkouts.

use anyhow::Context as _;

use super::expired::{age, dir_size};
use super::{DAY, GcOptions, RemovedWorktree};
use crate::git::refs::{self, Expected, Reference};
use crate::git::worktree;
use crate::git::worktree::RecordedWorktree;
use crate::host::lock::Lock;
use crate::session::name::SessionName;
use crate::workflow::project::Project;
use crate::workspace::worktrees;

const PUBLISHED_LINKED: &str = "refs/teddy/published/linked-";

#[derive(Default)]
pub(super) struct IdleWorktrees {
    pub(super) idle: Vec<(RemovedWorktree, Lock)>,
    /// Sessions of idle worktrees that a process is using.
    pub(super) in_use: Vec<String>,
}

/// Finds worktrees that are idle or whose session was deleted, and locks them.
pub(super) fn find_idle_worktrees(
    project: &Project,
    options: &GcOptions,
) -> anyhow::Result<IdleWorktrees> {
    let mut result = IdleWorktrees::default();
    let going: Vec<String> = options.sessions.iter().map(SessionName::dir_name).collect();
    for listed in worktree::session_worktrees(&project.repository) {
        // The worktree of a session to delete is removed with it.
        if going.contains(&listed.session) || !is_idle_worktree(project, &listed, options)? {
            continue;
        }

        match worktrees::try_lock_worktree(&project.checkout(), &listed.session, "gc") {
            Some(lock) => {
                let bytes = dir_size(&listed.path) + dir_size(&listed.layer);
                let session = listed.session;
                result.idle.push((RemovedWorktree { session, bytes }, lock));
            }
            None => result.in_use.push(listed.session),
        }
    }

    Ok(result)
}

fn is_idle_worktree(
    project: &Project,
    listed: &RecordedWorktree,
    options: &GcOptions,
) -> anyhow::Result<bool> {
    let session = SessionName::from_dir_name(&listed.session);
    let exists = match &session {
        Some(session) => refs::read(&project.repository, &session.reference())?.is_some(),
        None => false,
    };
    let used = age(&listed.used);
    Ok(!exists || used.is_none_or(|age| age >= DAY * options.idle_days))
}

/// Removes a worktree and its index. `folder` is the directory name of its session.
pub(super) fn remove_worktree(project: &Project, dir_name: &str) -> anyhow::Result<bool> {
    let removed = worktree::remove_session_worktree(&project.repository, dir_name)?;
    let _ = std::fs::remove_file(project.index(&format!("session-{dir_name}")));
    Ok(removed)
}

/// Published refs of deleted linked worktrees, with the name of the worktree.
pub(super) fn missing_checkouts(project: &Project) -> anyhow::Result<Vec<(String, Reference)>> {
    let repository = &project.repository;
    let linked = repository.common_dir().join("worktrees");
    let all = refs::list(repository, "refs/teddy/published/")?;
    let mut missing = Vec::new();
    for reference in all {
        let Some(name) = reference
            .name
            .strip_prefix(PUBLISHED_LINKED)
            .map(str::to_owned)
        else {
            continue;
        };
        // What cannot be read is not gone.
        let path = linked.join(&name);
        let is_there = path.try_exists();
        if !is_there.with_context(|| format!("cannot read `{}`", path.display()))? {
            missing.push((name, reference));
        }
    }
    Ok(missing)
}

pub(super) fn forget_checkouts(
    project: &Project,
    missing: &[(String, Reference)],
) -> anyhow::Result<()> {
    for (_, reference) in missing {
        let expected = Expected::At(reference.target);
        refs::delete(&project.repository, &reference.name, expected)?;
    }
    Ok(())
}
