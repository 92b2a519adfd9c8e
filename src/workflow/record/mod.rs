//! `record`: records changes that an agent or the user made without TeDDy as a turn.
//!
//! Runs nothing and changes no file. The turn is the difference between the last known state of the
//! files, or their state when the work began, and now.

mod known;
pub mod transcript;
mod turn;

use serde::Serialize;

use self::known::{known, since};
use self::transcript::Transcript;
use self::turn::write;
use crate::git::diff;
use crate::git::object::CommitId;
use crate::git::refs;
use crate::session::meta::Recorded;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::path::lossy;
use crate::workflow::context::message::without_keys;
use crate::workflow::gc::forget;
use crate::workflow::hinted::hinted;
use crate::workflow::model::agents;
use crate::workflow::new;
use crate::workflow::notice::Notice;
use crate::workflow::project::{NoSession, Project};
use crate::workflow::user::{Event, User};
use crate::workspace::carry;
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
    wish: &RecordOptions,
    user: &mut dyn User,
) -> anyhow::Result<RecordResult> {
    let started = match project.session() {
        Err(error) if error.is::<NoSession>() => {
            if !wish.allow_empty {
                // Before a session is started for nothing.
                ensure_changes(project)?;
            }
            start(project, &wish.message, user)?;
            true
        }
        session => {
            session?;
            false
        }
    };

    let recorded = write_down(project, None, wish, user)?;
    Ok(RecordResult {
        started,
        ..recorded
    })
}

/// Records the changes since the work began, in the current session.
pub fn record_since(
    project: &Project,
    begun: RecordStart,
    wish: &RecordOptions,
    user: &mut dyn User,
) -> anyhow::Result<RecordResult> {
    write_down(project, Some(begun), wish, user)
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
pub fn start(project: &mut Project, words: &str, user: &mut dyn User) -> anyhow::Result<()> {
    let words = if words.trim().is_empty() {
        UNNAMED
    } else {
        words
    };
    let name = project.free_name(SessionName::from_title(words))?;
    let agent = agents::agent(project, &project.settings.agent)?;
    let transaction = project.enter("record", user)?;
    new::new(&transaction, project, &name, &agent)?;
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
    if known::without_session(project)? == now {
        return Err(hinted(
            "nothing changed since HEAD",
            "`--allow-empty` records a turn all the same",
        ));
    }
    Ok(())
}

fn write_down(
    project: &Project,
    begun: Option<RecordStart>,
    wish: &RecordOptions,
    user: &mut dyn User,
) -> anyhow::Result<RecordResult> {
    let wish = &RecordOptions {
        message: without_keys(wish.message.clone(), user),
        ..wish.clone()
    };
    let session = project.session()?;
    let _session_lock = project.lock_session(&session, "record")?;
    let transaction = project.enter("record", user)?;
    let tip = project.store().tip(&session)?;
    let before = match begun {
        Some(begun) => since(project, &tip, begun)?,
        None => known(project, &tip)?,
    };

    let waiting = carry::waiting(&project.checkout(), &tip)?;
    let done = complete(&transaction, project, (&tip, before), wish)?;
    if let Some(Err(error)) = waiting.map(|draft| carry::carry(&project.checkout(), &tip, draft)) {
        user.tell(Event::Notice(Notice::DraftNotKept(format!("{error:#}"))));
    }

    Ok(done)
}

fn complete(
    transaction: &Transaction,
    project: &Project,
    (tip, before): (&Turn, CommitId),
    wish: &RecordOptions,
) -> anyhow::Result<RecordResult> {
    let (repository, checkout) = (&project.repository, project.checkout());
    let recorded = transaction.record(&checkout, tip, &[])?;
    let old = repository.commit(before)?.tree;
    let mut done = RecordResult {
        session: tip.session.to_string(),
        turn: tip.number() + 1,
        ..RecordResult::default()
    };
    for change in diff::changes(repository, old, recorded.tree)? {
        match change.new {
            _ if change.is_of_repository() => {}
            Some(_) => done.written.push(lossy(&change.path)),
            None => done.deleted.push(lossy(&change.path)),
        }
    }

    if old == recorded.tree && !wish.allow_empty {
        return Err(NothingToRecord {
            session: tip.session.clone(),
            turn: tip.number(),
        }
        .into());
    }

    let (step, files) = write(project, tip, (before, &recorded), wish)?;
    let completed = transaction.complete(&checkout, &tip.session, &step, Some(&files))?;
    done.commit = Some(completed.commit);
    Ok(done)
}

/// Returns `true` if a session exists.
pub fn exists(project: &Project, session: &SessionName) -> anyhow::Result<bool> {
    Ok(refs::read(&project.repository, &session.reference())?.is_some())
}
