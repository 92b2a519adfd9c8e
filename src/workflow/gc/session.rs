//! Deletes a session after writing it to a bundle.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;

use crate::git::history;
use crate::git::keep::store_access::{self, ReadExtent};
use crate::git::object::CommitId;
use crate::git::refs::{self, Expected};
use crate::host::file::make_dirs;
use crate::project::Project;
use crate::query::log;
use crate::session::bare::bare_reference;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::session::verify::check;
use crate::text::hint::with_hint;
use crate::workflow::archive::{Drafts, Existing, collect_sessions};
use crate::workflow::conversation;
use crate::workflow::gc::expired::remove_worktree;
use crate::workflow::model::budget;
use crate::workspace::stack::is_patch;

/// Below `teddy/`.
pub(in crate::workflow) const ARCHIVE: &str = "archive";
/// `git filter-branch` keeps copies of the refs that it rewrote here.
const ORIGINAL: &str = "refs/original/";
/// Digits of an id in a name.
const SHORT: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchivedSession {
    pub session: String,
    pub file: PathBuf,
    pub bytes: u64,
    /// Why `teddy fetch` would refuse the bundle; `None` if it would not.
    #[serde(skip)]
    pub fault: Option<String>,
}

/// The caller holds the session lock.
pub(super) fn archive(project: &Project, session: &SessionName) -> anyhow::Result<ArchivedSession> {
    let file = free_file(project, session)?;
    let dir = file.parent().unwrap_or(&file);
    let saved = make_dirs(dir)
        .map_err(anyhow::Error::from)
        .and_then(|()| collect_sessions(project, std::slice::from_ref(session), Drafts::Included))
        .and_then(|bundle| bundle.save(project, &file, Existing::Stays));
    let bytes = saved.map_err(|error| {
        let during =
            format!("session `{session}` was not deleted, as no bundle could be made of it");
        with_hint(
            error.context(during),
            format!("`teddy gc {session} --no-bundle` deletes it without one, for good"),
        )
    })?;

    Ok(ArchivedSession {
        session: session.to_string(),
        file,
        bytes,
        fault: fault(project, session)?,
    })
}

pub(super) fn fault(project: &Project, session: &SessionName) -> anyhow::Result<Option<String>> {
    let tip = project.store().tip_id(session)?;
    let faults = check(&project.repository, session, tip).faults;
    if !faults.is_empty() {
        store_access::ensure_readable(&project.repository, ReadExtent::Start)?;
    }
    Ok(faults.first().map(ToString::to_string))
}

pub(super) fn free_file(project: &Project, session: &SessionName) -> anyhow::Result<PathBuf> {
    let tip = project.store().tip_id(session)?.to_string();
    let dir = project.repository.teddy_dir().join(ARCHIVE);
    let name = format!("{}-{}", session.dir_name(), &tip[..SHORT]);
    let mut file = dir.join(format!("{name}.bundle"));
    let mut number = 1;
    while file.symlink_metadata().is_ok() {
        number += 1;
        file = dir.join(format!("{name}-{number}.bundle"));
    }

    Ok(file)
}

/// With copies that `git filter-branch` made.
fn references(session: &SessionName) -> Vec<String> {
    let names = [
        session.reference(),
        session.draft_reference(),
        session.signed_reference(),
        bare_reference(session),
    ];
    let copies = names.each_ref().map(|name| format!("{ORIGINAL}{name}"));
    names.into_iter().chain(copies).collect()
}

/// Its turns, what they did to the files, and their publications.
pub(super) fn commits(project: &Project, session: &SessionName) -> anyhow::Result<Vec<CommitId>> {
    let mut commits = Vec::new();
    for name in references(session) {
        let Some(tip) = refs::read_unpeeled(&project.repository, &name)? else {
            continue;
        };
        // A signature is a tag, and a damaged turn cannot be read: neither has turns below it.
        let Ok(tip) = Turn::read_as_recorded(&project.repository, session, tip) else {
            continue;
        };
        for turn in project.store().history(tip).map_while(Result::ok) {
            commits.push(turn.commit);
            if is_patch(&turn) {
                commits.extend(turn.workspace.into_iter().chain(turn.publication));
                commits.extend(turn.meta.workspace.map(|workspace| workspace.after));
            }
        }
    }

    Ok(commits)
}

/// Other refs that reach one of these commits.
pub(super) fn still_held(
    project: &Project,
    sessions: &BTreeSet<&SessionName>,
    commits: &[CommitId],
) -> anyhow::Result<Vec<String>> {
    let own: BTreeSet<String> = sessions.iter().flat_map(|name| references(name)).collect();
    let reaching = history::refs_that_reach(&project.repository, commits)?;
    Ok(reaching.difference(&own).cloned().collect())
}

/// The caller holds the session lock.
pub(in crate::workflow) fn forget(project: &Project, session: &SessionName) -> anyhow::Result<()> {
    let repository = &project.repository;
    let tip = project.store().tip_id(session)?;
    remove_worktree(project, &session.dir_name())?;
    refs::delete(repository, &session.reference(), Expected::At(tip))?;

    // Any of these refs would keep turns reachable.
    for name in references(session) {
        if refs::read_unpeeled(repository, &name)?.is_some() {
            refs::delete(repository, &name, Expected::Any)?;
        }
    }

    project.journal().forget_draft(session);
    project.journal().forget_model(session);
    for cache in [log::CACHE_DIR, budget::CACHE_DIR] {
        let _ = std::fs::remove_file(session.cache_file(&repository.teddy_dir(), cache));
    }
    conversation::forget(project, session);
    project.journal().forget_tip(session)?;
    Ok(())
}

/// Deletes the refs of a session of a remote, as it was last fetched.
pub(super) fn forget_fetched(project: &Project, session: &SessionName) -> anyhow::Result<()> {
    for name in [session.reference(), session.signed_reference()] {
        if let Some(target) = refs::read_unpeeled(&project.repository, &name)? {
            refs::delete(&project.repository, &name, Expected::At(target))?;
        }
    }
    Ok(())
}
