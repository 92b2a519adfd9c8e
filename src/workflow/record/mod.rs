//! `record`: records changes that an agent or the user made without TeDDy as a turn.
//!
//! Runs nothing and changes no file. The turn is the difference between the last known state of the
//! files, or their state when the work began, and now.

mod last_state;
pub mod transcript;
mod turn;

use serde::Serialize;

use self::last_state::{read_last_state, state_since};
use self::transcript::Transcript;
use self::turn::write_recorded_turn;
use crate::git::diff;
use crate::git::object::CommitId;
use crate::git::refs;
use crate::session::meta::Recorded;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::path::lossy;
use crate::workflow::context::message::without_keys;
use crate::workflow::gc::forget;
use crate::workflow::hint::error_with_hint;
use crate::workflow::model::agents;
use crate::workflow::new;
use crate::workflow::notice::Notice;
use crate::workflow::project::{NoSession, Project};
use crate::workflow::user::{Event, User};
use crate::workspace::draft_transfer;
use crate::workspace::snapshot;
use crate::workspace::stack::Stacks;
use crate::workspace::transaction::Transaction;

const UNNAMED: &str = "recorded";

/// What to record besides the files.
#[derive(Debug, Clone, Default)]
pub struct RecordOptions {
    /// What was requested; can be empty.
    pub message: String,
    /// Author of the work.
    pub work: Recorded,
    /// The agent's transcript.
    pub transcript: Option<Transcript>,
    /// Record a turn even if no file changed.
    pub allow_empty: bool,
}

/// Result of a recording.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RecordResult {
    /// Session name.
    pub session: String,
    /// The session was started for this.
    pub started: bool,
    /// Turn number.
    pub turn: u64,
    /// Commit of the turn.
    pub commit: Option<CommitId>,
    /// Written files.
    pub written: Vec<String>,
    /// Deleted files.
    pub deleted: Vec<String>,
}

/// State of the files when the work began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordStart {
    /// Workspace commit.
    pub files: CommitId,
    /// Last publication at that time.
    pub published: Option<CommitId>,
}

/// There is nothing to record.
#[derive(Debug, thiserror::Error)]
#[error("nothing changed since turn {turn} of session `{session}`")]
pub struct NothingToRecord {
    /// Session name.
    pub session: SessionName,
    /// Its newest turn.
    pub turn: u64,
}

/// Records the changes since the newest turn of the session. Without a current session, starts one
/// and records the changes since HEAD. Fails with [`NothingToRecord`].
pub fn record(
    project: &mut Project,
    options: &RecordOptions,
    user: &mut dyn User,
) -> anyhow::Result<RecordResult> {
    let started = match project.session() {
        Err(error) if error.is::<NoSession>() => {
            if !options.allow_empty {
                // Before a session is started for nothing.
                ensure_changes(project)?;
            }
            start(project, &options.message, user)?;
            true
        }
        session => {
            session?;
            false
        }
    };

    let recorded = write_down(project, None, options, user)?;
    Ok(RecordResult {
        started,
        ..recorded
    })
}

/// Records the changes since the work began, in the current session.
pub fn record_since(
    project: &Project,
    baseline: RecordStart,
    options: &RecordOptions,
    user: &mut dyn User,
) -> anyhow::Result<RecordResult> {
    write_down(project, Some(baseline), options, user)
}

/// Takes a snapshot before the work begins. Earlier changes are not part of the work.
pub fn begin(project: &Project, user: &mut dyn User) -> anyhow::Result<RecordStart> {
    let session = project.session()?;
    let transaction = project.enter("record", user)?;
    let tip = project.store().tip(&session)?;
    let recorded = transaction.record(&project.checkout(), &tip, &[])?;
    let last = Stacks::new(&project.repository).last()?;

    Ok(RecordStart {
        files: recorded.commit,
        published: last.map(|(id, _)| id),
    })
}

/// Starts a session named after the message, and makes it the current one.
pub fn start(project: &mut Project, title: &str, user: &mut dyn User) -> anyhow::Result<()> {
    let title = if title.trim().is_empty() {
        UNNAMED
    } else {
        title
    };
    let name = project.free_name(SessionName::from_title(title))?;
    let agent = agents::agent(project, &project.settings.agent)?;
    let transaction = project.enter("record", user)?;
    new::start_session(&transaction, project, &name, &agent)?;
    Ok(())
}

/// Deletes the current session, which [`start`] created, if it is still unused.
pub fn take_back_start(project: &Project, user: &mut dyn User) -> anyhow::Result<()> {
    let session = project.session()?;
    let _session_lock = project.lock_session(&session, "record")?;
    let _transaction = project.enter("record", user)?;
    let tip = project.store().tip(&session)?;
    if tip.number() == 0 && project.store().draft(&tip)?.commit.is_none() {
        forget(project, &session)?;
    }
    Ok(())
}

fn ensure_changes(project: &Project) -> anyhow::Result<()> {
    let now = snapshot::snapshot(&project.checkout(), &[])?.tree;
    if last_state::state_without_session(project)? == now {
        return Err(error_with_hint(
            "nothing changed since HEAD",
            "`--allow-empty` records a turn all the same",
        ));
    }
    Ok(())
}

fn write_down(
    project: &Project,
    baseline: Option<RecordStart>,
    options: &RecordOptions,
    user: &mut dyn User,
) -> anyhow::Result<RecordResult> {
    let options = &RecordOptions {
        message: without_keys(options.message.clone(), user),
        ..options.clone()
    };
    let session = project.session()?;
    let _session_lock = project.lock_session(&session, "record")?;
    let transaction = project.enter("record", user)?;
    let tip = project.store().tip(&session)?;
    let before = match baseline {
        Some(baseline) => state_since(project, &tip, baseline)?,
        None => read_last_state(project, &tip)?,
    };

    let waiting = draft_transfer::waiting(&project.checkout(), &tip)?;
    let result = complete(&transaction, project, (&tip, before), options)?;
    if let Some(Err(error)) =
        waiting.map(|draft| draft_transfer::transfer_draft(&project.checkout(), &tip, draft))
    {
        user.report(Event::Notice(Notice::DraftNotKept(format!("{error:#}"))));
    }

    Ok(result)
}

fn complete(
    transaction: &Transaction,
    project: &Project,
    (tip, before): (&Turn, CommitId),
    options: &RecordOptions,
) -> anyhow::Result<RecordResult> {
    let (repository, checkout) = (&project.repository, project.checkout());
    let recorded = transaction.record(&checkout, tip, &[])?;
    let old = repository.commit(before)?.tree;
    let mut result = RecordResult {
        session: tip.session.to_string(),
        turn: tip.number() + 1,
        ..RecordResult::default()
    };
    for change in diff::changes(repository, old, recorded.tree)? {
        match change.new {
            _ if change.is_of_repository() => {}
            Some(_) => result.written.push(lossy(&change.path)),
            None => result.deleted.push(lossy(&change.path)),
        }
    }

    if old == recorded.tree && !options.allow_empty {
        return Err(NothingToRecord {
            session: tip.session.clone(),
            turn: tip.number(),
        }
        .into());
    }

    let (step, files) = write_recorded_turn(project, tip, (before, &recorded), options)?;
    let completed = transaction.complete(&checkout, &tip.session, &step, Some(&files))?;
    result.commit = Some(completed.commit);
    Ok(result)
}

/// Returns `true` if a session exists.
pub fn exists(project: &Project, session: &SessionName) -> anyhow::Result<bool> {
    Ok(refs::read(&project.repository, &session.reference())?.is_some())
}
