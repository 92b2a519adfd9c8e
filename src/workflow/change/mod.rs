//! The workflow of a change: plan, impl, archive, and the steps that they are made of.
//!
//! A step asks a model, or the user, for one thing and records it as one commit; so a call that is
//! cut short anywhere loses at most the answer that was on its way. Workflows decide on the phase
//! alone; a step looks at the documents to see what is left to do.

pub mod approve;
pub mod archive;
mod archive_turn;
mod ask;
pub mod challenge;
pub mod implement;
pub mod look;
mod material;
pub mod plan;
pub mod proposal;
pub mod reproposal;
pub mod review;
pub mod work;

use crate::git::keep::hold;
use anyhow::Context as _;

use crate::change::entry::ChangeEntry;
use crate::change::error::ChangeError;
use crate::change::id::ChangeId;
use crate::change::message;
use crate::change::phase::{self, ChangeEvent};
use crate::change::store::{Change, ChangeStore};
use crate::git::keep::hold::Older;
use crate::git::object::TreeId;
use crate::git::refs::{self, Expected, MoveError};
use crate::host::clock;
use crate::host::lock::{Lock, LockError, patience};
use crate::workflow::project::Project;
use crate::workspace::snapshot;

/// What is wanted of every step.
#[derive(Debug, Clone, Default)]
pub struct ChangeOptions {
    /// The model of every role, in place of the configured ones.
    pub model: Option<String>,
    /// What the user says to the implementer: the answer to a question, or more about the work.
    pub message: Option<String>,
}

/// A step that is about to be recorded.
struct ChangeStep {
    /// What happened.
    event: ChangeEvent,
    /// The command, for a message.
    wanted: &'static str,
    /// What is kept of it.
    entry: ChangeEntry,
    /// The subject of the commit.
    title: String,
    /// The lines of the commit.
    lines: Vec<String>,
}

/// Returns the time, RFC 3339.
fn now() -> String {
    clock::now().timestamp().to_string()
}

/// Returns the changes.
pub fn changes(project: &Project) -> ChangeStore<'_> {
    ChangeStore {
        repository: &project.repository,
    }
}

/// Reads a change.
///
/// # Errors
/// [`ChangeError::ChangeNotFound`], or where its state cannot be read.
pub fn change(project: &Project, id: &ChangeId) -> anyhow::Result<Change> {
    changes(project).read(id)
}

/// Takes the lock under which one process works on a change.
///
/// # Errors
/// Where another process holds it for too long.
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

/// Returns the user's files as they are.
fn files_now(project: &Project) -> anyhow::Result<TreeId> {
    let _lock = project.lock("change")?;
    Ok(snapshot::snapshot(&project.checkout(), &[])
        .context("recording your files")?
        .tree)
}

/// Records a step, if the phase allows it. Takes the lock under which refs move.
fn save(project: &Project, change: &mut Change, step: ChangeStep) -> anyhow::Result<()> {
    let _lock = project.lock("change")?;
    save_locked(project, change, step)
}

/// Records a step, if the phase allows it. The caller holds the lock under which refs move.
fn save_locked(project: &Project, change: &mut Change, step: ChangeStep) -> anyhow::Result<()> {
    let mut after = change.clone();
    let ChangeStep {
        event,
        wanted,
        entry,
        title,
        lines,
    } = step;
    after
        .state
        .take(event, entry)
        .map_err(|illegal| ChangeError::of(&change.id, wanted, illegal))?;
    let message = message::render(&title, &lines, &after.state);
    let (commit, tree) = changes(project).write(&after, &message)?;
    let before = change.commit.map(|_| change.tree);
    let held = hold::hold(
        &project.repository,
        &[commit],
        before.as_slice(),
        Older::Join,
    )?;
    let held = held.context("`git gc` removed objects of the step while it was recorded; nothing was changed, try again")?;
    let expected = change.commit.map_or(Expected::Absent, Expected::At);
    let log = format!("teddy: change {wanted}");

    // The ref moves last: a crash before this line leaves only unreachable objects.
    refs::move_to(
        &project.repository,
        (&change.id.reference(), expected),
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
    hold::settle(&project.repository, &held)?;
    *change = Change {
        commit: Some(commit),
        tree,
        ..after
    };

    Ok(())
}

/// Returns how many answers a model gave for a change: for its documents, and in its session.
///
/// # Errors
/// Where the repository cannot be read.
pub fn answers_in_change(project: &Project, id: &ChangeId, model: &str) -> anyhow::Result<usize> {
    let mut count = match refs::read(&project.repository, &id.reference())? {
        Some(_) => change(project, id)?.state.answers_of(model),
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

/// Finds out whether a phase allows a step, before anybody is asked for anything.
fn allow(change: &Change, event: ChangeEvent, wanted: &'static str) -> Result<(), ChangeError> {
    let phase = Some(change.state.phase);
    phase::next(phase, event)
        .map(|_| ())
        .map_err(|illegal| ChangeError::of(&change.id, wanted, illegal))
}
