//! Workflows of a change (plan, impl, archive) and the steps they consist of.
//!
//! A step asks a model or the user for one thing and records the answer as one commit, so an
//! interrupted call loses at most one answer. Workflows decide by the phase only; a step reads the
//! documents to see what is left to do.

pub mod archive;

mod ask;
pub mod challenge;
pub mod implement;

pub mod plan;
pub mod proposal;
pub mod reproposal;
pub mod review;
pub mod status;
pub mod work;

use crate::git::keep::protect;
use anyhow::Context as _;

use crate::change::id::ChangeId;
use crate::change::phase::{self, ChangeEvent};
use crate::change::state::ChangeEntry;
use crate::change::store;
use crate::change::store::ChangeError;
use crate::change::store::{Change, ChangeStore};
use crate::git::keep::protect::MergePolicy;
use crate::git::object::TreeId;
use crate::git::refs::{self, Expected, MoveError};
use crate::host::clock;
use crate::host::lock::{Lock, LockError, patience};
use crate::project::Project;
use crate::workspace::snapshot;

#[derive(Debug, Clone, Default)]
pub struct ChangeOptions {
    /// For all roles, instead of the configured models.
    pub model: Option<String>,
    /// To the implementer: an answer to its question, or additional instructions.
    pub message: Option<String>,
}

struct ChangeStep {
    event: ChangeEvent,
    /// For messages.
    command: &'static str,
    entry: ChangeEntry,
    title: String,
    lines: Vec<String>,
}

fn now() -> String {
    clock::now().timestamp().to_string()
}

pub fn change_store(project: &Project) -> ChangeStore<'_> {
    ChangeStore {
        repository: &project.repository,
    }
}

pub fn open_change(project: &Project, id: &ChangeId) -> anyhow::Result<Change> {
    change_store(project).read(id)
}

/// Held for the whole command, unlike the repository lock.
fn lock_change(project: &Project, id: &ChangeId, command: &str) -> Result<Lock, LockError> {
    Lock::take(
        &project
            .repository
            .teddy_dir()
            .join("changes")
            .join(id.as_str()),
        command,
        patience(),
    )
}

fn files_now(project: &Project) -> anyhow::Result<TreeId> {
    let _lock = project.lock("change")?;
    Ok(snapshot::snapshot(&project.checkout(), &[])
        .context("recording your files")?
        .tree)
}

/// Takes the repository lock.
fn save(project: &Project, change: &mut Change, step: ChangeStep) -> anyhow::Result<()> {
    let _lock = project.lock("change")?;
    save_locked(project, change, step)
}

/// The caller holds the repository lock.
fn save_locked(project: &Project, change: &mut Change, step: ChangeStep) -> anyhow::Result<()> {
    let mut after = change.clone();
    let ChangeStep {
        event,
        command,
        entry,
        title,
        lines,
    } = step;
    after
        .state
        .apply(event, entry)
        .map_err(|illegal| ChangeError::of(&change.id, command, illegal))?;
    let message = store::commit_message(&title, &lines, &after.state);
    let (commit, tree) = change_store(project).write(&after, &message)?;
    let before = change.commit.map(|_| change.tree);
    let protected = protect::protect_commits(
        &project.repository,
        &[commit],
        before.as_slice(),
        MergePolicy::Merge,
    )?;
    let protected = protected.context("`git gc` removed objects of the step while it was recorded; nothing was changed, try again")?;
    let expected = change.commit.map_or(Expected::Absent, Expected::At);
    let log = format!("teddy: change {command}");

    // The ref moves last: a crash before this line leaves only unreachable objects.
    refs::move_to(
        &project.repository,
        &change.id.reference(),
        expected,
        commit,
        &log,
    )
    .map_err(|error| match error {
        MoveError::Moved { .. } => anyhow::anyhow!(
            "change `{}` got another step meanwhile; nothing was changed",
            change.id
        ),
        MoveError::Store(error) => error,
    })?;

    refs::sync(&project.repository, &change.id.reference())?;
    protect::release_protected(&project.repository, &protected)?;
    *change = Change {
        commit: Some(commit),
        tree,
        ..after
    };

    Ok(())
}

/// In a change and its session. A replay continues with the answer after these.
pub fn answers_in_change(project: &Project, id: &ChangeId, model: &str) -> anyhow::Result<usize> {
    let mut count = match refs::read(&project.repository, &id.reference())? {
        Some(_) => open_change(project, id)?.state.answers_of(model),
        None => 0,
    };
    let session = id.session();
    if refs::read(&project.repository, &session.reference())?.is_some() {
        for turn in project.store().history(project.store().tip(&session)?) {
            count += usize::from(turn?.meta.model.is_some_and(|used| used.asked == model));
        }
    }

    Ok(count)
}

fn allow(change: &Change, event: ChangeEvent, command: &'static str) -> Result<(), ChangeError> {
    let phase = Some(change.state.phase);
    phase::next(phase, event)
        .map(|_| ())
        .map_err(|illegal| ChangeError::of(&change.id, command, illegal))
}
