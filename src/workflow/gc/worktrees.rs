//! Finds and removes idle worktrees and records of deleted checkouts.

use anyhow::Context as _;

use super::files::{age, size};
use super::{DAY, GcOptions, RemovedWorktree};
use crate::git::refs::{self, Expected, Reference};
use crate::git::worktree;
use crate::git::worktree::RememberedWorktree;
use crate::host::lock::Lock;
use crate::session::name::SessionName;
use crate::workflow::project::Project;
use crate::workspace::worktrees;

const PUBLISHED: &str = "refs/teddy/published/linked-";

#[derive(Default)]
pub(super) struct IdleWorktrees {
    pub(super) idle: Vec<(RemovedWorktree, Lock)>,
    /// Sessions of idle worktrees that a process is using.
    pub(super) in_use: Vec<String>,
}

/// Finds worktrees that are idle or whose session was deleted, and locks them.
pub(super) fn idle(project: &Project, wish: &GcOptions) -> anyhow::Result<IdleWorktrees> {
    let mut found = IdleWorktrees::default();
    let going: Vec<String> = wish.sessions.iter().map(SessionName::folder).collect();
    for listed in worktree::session_worktrees(&project.repository) {
        // The worktree of a session to delete is removed with it.
        if going.contains(&listed.session) || !is_idle(project, &listed, wish)? {
            continue;
        }

        match worktrees::try_lock_worktree(&project.checkout(), &listed.session, "gc") {
            Some(lock) => {
                let bytes = size(&listed.path) + size(&listed.layer);
                let session = listed.session;
                found.idle.push((RemovedWorktree { session, bytes }, lock));
            }
            None => found.in_use.push(listed.session),
        }
    }

    Ok(found)
}

fn is_idle(
    project: &Project,
    listed: &RememberedWorktree,
    wish: &GcOptions,
) -> anyhow::Result<bool> {
    let session = SessionName::from_folder(&listed.session);
    let exists = match &session {
        Some(session) => refs::read(&project.repository, &session.reference())?.is_some(),
        None => false,
    };
    let used = age(&listed.used);
    Ok(!exists || used.is_none_or(|age| age >= DAY * wish.idle_days))
}

/// Removes a worktree and its index. `folder` is the directory name of its session.
pub(super) fn remove_files(project: &Project, folder: &str) -> anyhow::Result<bool> {
    let removed = worktree::remove_session_worktree(&project.repository, folder)?;
    let _ = std::fs::remove_file(project.index(&format!("session-{folder}")));
    Ok(removed)
}

/// Published refs of deleted linked worktrees, with the name of the worktree.
pub(super) fn gone_checkouts(project: &Project) -> anyhow::Result<Vec<(String, Reference)>> {
    let repository = &project.repository;
    let linked = repository.common_dir().join("worktrees");
    let all = refs::list(repository, "refs/teddy/published/")?;
    let mut gone = Vec::new();
    for reference in all {
        let Some(name) = reference.name.strip_prefix(PUBLISHED).map(str::to_owned) else {
            continue;
        };
        // What cannot be read is not gone.
        let place = linked.join(&name);
        let is_there = place.try_exists();
        if !is_there.with_context(|| format!("cannot read `{}`", place.display()))? {
            gone.push((name, reference));
        }
    }
    Ok(gone)
}

pub(super) fn forget_checkouts(
    project: &Project,
    gone: &[(String, Reference)],
) -> anyhow::Result<()> {
    for (_, reference) in gone {
        let expected = Expected::At(reference.target);
        refs::delete(&project.repository, &reference.name, expected)?;
    }
    Ok(())
}
