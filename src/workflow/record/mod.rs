//! Recording: what was done in the user's own files without TeDDy, by an agent or by hand, as a
//! turn like any other.
//!
//! Nothing is run and no file is changed. The turn is the difference between the files as they were
//! last known, or as they were when the work began, and the files now.

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

/// A session whose name nothing suggests.
const UNNAMED: &str = "recorded";

/// What is recorded besides the files.
#[derive(Debug, Clone, Default)]
pub struct RecordOptions {
    /// What was asked for; may be empty.
    pub message: String,
    /// Who did it.
    pub work: Recorded,
    /// What they wrote down of it.
    pub transcript: Option<Transcript>,
    /// Whether a turn is recorded although no file changed.
    pub allow_empty: bool,
}

/// What a recording came to.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RecordResult {
    /// The session.
    pub session: String,
    /// Whether it was started for this.
    pub started: bool,
    /// The number of the turn.
    pub turn: u64,
    /// That turn.
    pub commit: Option<CommitId>,
    /// Files that were written.
    pub written: Vec<String>,
    /// Files that were deleted.
    pub deleted: Vec<String>,
}

/// The files as they were when the work began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordStart {
    /// Their workspace commit.
    pub files: CommitId,
    /// What had been brought to them last.
    pub published: Option<CommitId>,
}

/// No file changed, and nothing else was to be recorded.
#[derive(Debug, thiserror::Error)]
#[error("nothing changed since turn {turn} of session `{session}`")]
pub struct NothingToRecord {
    /// The session.
    pub session: SessionName,
    /// Its newest turn.
    pub turn: u64,
}

/// Records what changed in the user's files since the session's newest turn. If no session is in
/// use, one is started, and what HEAD has is known already.
///
/// # Errors
/// [`NothingToRecord`], or where the repository cannot be read or written.
pub fn record(
    project: &mut Project,
    wish: &RecordOptions,
    user: &mut dyn User,
) -> anyhow::Result<RecordResult> {
    let started = match project.session() {
        Err(error) if error.is::<NoSession>() => {
            if !wish.allow_empty {
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

/// Records what changed in the user's files since the work began, in the session in use.
///
/// # Errors
/// As for [`record`].
pub fn record_since(
    project: &Project,
    begun: RecordStart,
    wish: &RecordOptions,
    user: &mut dyn User,
) -> anyhow::Result<RecordResult> {
    write_down(project, Some(begun), wish, user)
}

/// Notes what the user's files are before somebody works on them; what changed until now is not
/// their work.
///
/// # Errors
/// Where the repository cannot be read or written.
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

/// Starts a session for what is recorded, named after the words, and makes it the one in use.
///
/// # Errors
/// Where the repository cannot be written.
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

/// Removes the session in use, which [`start`] made, if nobody has used it.
///
/// # Errors
/// Where the repository cannot be read or written.
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

/// Makes sure that the user's files are not as HEAD and what turns brought to them say, before a
/// session is started for nothing.
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

/// Records the turn.
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

/// Looks at the files, writes the turn and moves the session to it.
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

/// Returns whether a session is there.
///
/// # Errors
/// Where the refs cannot be read.
pub fn exists(project: &Project, session: &SessionName) -> anyhow::Result<bool> {
    Ok(refs::read(&project.repository, &session.reference())?.is_some())
}
