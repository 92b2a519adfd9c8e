//! Completing a turn: objects, intent, the session's ref, the user's files, in this order.
//!
//! The ref is the one commit point. Before it, nothing that anyone sees has changed; after it,
//! the journal makes the next call finish what this one could not.

use anyhow::Context as _;
use fail::fail_point;

use crate::git::merge::Merged;
use crate::git::object::{CommitId, TreeId};
use crate::git::publish::{Guard, Overlap, Published};
use crate::git::reference::{Expected, MoveError};
use crate::git::repository::Repository;
use crate::host::sync::sync;
use crate::session::journal::{Entry, Pending};
use crate::session::name::SessionName;
use crate::workflow::project::Project;
use crate::workflow::user::{Event, User};

/// What the user's files are brought to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// Their tree before; reachable.
    pub from: TreeId,
    /// Their tree after.
    pub to: TreeId,
}

/// How the user's files and a result fit together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit {
    /// They do: this is to be done.
    Clean(Move),
    /// They meet at these paths; nothing is to be done.
    Overlap(Vec<Vec<u8>>, Box<WaysOut>),
}

/// What could be done about an overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaysOut {
    /// The user's files now.
    pub from: TreeId,
    /// The user's side where they meet.
    pub ours: TreeId,
    /// The result's side where they meet.
    pub theirs: TreeId,
    /// Conflict markers where they meet.
    pub markers: TreeId,
}

impl Project {
    /// Fits a result into the user's files as they are now.
    ///
    /// # Errors
    /// Where the repository cannot be read or written.
    pub fn fit(&self, base: TreeId, now: TreeId, target: TreeId) -> anyhow::Result<Fit> {
        Ok(match self.repository.merge(base, now, target)? {
            Merged::Clean(to) => Fit::Clean(Move { from: now, to }),
            Merged::Overlap { paths, ours, theirs, markers } => Fit::Overlap(paths, Box::new(WaysOut { from: now, ours, theirs, markers })),
        })
    }

    /// Moves a session's ref to a written turn and brings the user's files along. The caller holds the lock.
    ///
    /// # Errors
    /// Before the ref moved: nothing has changed. After it: the message says that the next call finishes.
    pub fn complete(&self, session: &SessionName, turn: &Step, files: Option<&Move>) -> anyhow::Result<Published> {
        let journal = self.journal();
        fail_point!("before-objects-sync", |_| Err(anyhow::anyhow!("failpoint before-objects-sync")));
        sync(&self.repository.common_dir(), &[]).context("making the turn's objects durable")?;
        let needed = files.filter(|files| files.from != files.to);
        if let Some(files) = needed {
            fail_point!("before-intent", |_| Err(anyhow::anyhow!("failpoint before-intent")));
            journal.begin(&self.pending(session, turn.new, files)).context("writing the journal")?;
            fail_point!("after-intent", |_| Err(anyhow::anyhow!("failpoint after-intent")));
        }
        let moved = self.repository.move_reference(&session.reference(), turn.expected, turn.new, &turn.log);
        if let Err(error) = moved {
            journal.finish()?;
            return Err(not_moved(session, error));
        }
        fail_point!("after-ref", |_| Err(anyhow::anyhow!("failpoint after-ref")));
        let done = self.after_the_ref(session, turn, needed);
        done.with_context(|| format!("the turn is recorded as {}; `teddy recover` brings it to your files", turn.new))
    }

    /// Does what comes after the commit point.
    fn after_the_ref(&self, session: &SessionName, turn: &Step, files: Option<&Move>) -> anyhow::Result<Published> {
        let (journal, tip) = (self.journal(), turn.new);
        sync(&self.repository.common_dir(), &[]).context("making the session's ref durable")?;
        journal.keep_tip(session, tip)?;
        self.store().discard_draft(session)?;
        if let Some(workspace) = turn.published {
            self.repository.move_reference(&self.published_reference(), Expected::Any, workspace, &turn.log)?;
        }
        let Some(files) = files else { return Ok(Published::default()) };
        let published = publish(&self.repository, files, &guard(&operation(tip), Overlap::Stop))?;
        fail_point!("before-clear", |_| Err(anyhow::anyhow!("failpoint before-clear")));
        journal.finish()?;
        Ok(published)
    }

    /// Returns the intent to complete a turn.
    fn pending(&self, session: &SessionName, commit: CommitId, files: &Move) -> Pending {
        Pending {
            schema: 1,
            operation: operation(commit),
            session: session.to_string(),
            commit,
            workspace: self.repository.workdir().to_owned(),
            from: files.from,
            to: files.to,
        }
    }

    /// Finishes what a crash interrupted. The caller holds the lock. Returns whether there was anything to do.
    ///
    /// # Errors
    /// Where the files cannot be brought along even now.
    pub fn recover(&self, user: &mut dyn User) -> anyhow::Result<bool> {
        let journal = self.journal();
        let pending = match journal.read().context("reading the journal")? {
            Entry::None => return Ok(false),
            Entry::Damaged(aside) => {
                user.tell(Event::Warning(&format!(
                    "the journal was damaged and is now `{}`; `teddy status` shows where things stand",
                    aside.display()
                )));
                return Ok(true);
            }
            Entry::Pending(pending) => pending,
        };
        let session = SessionName::from_ref(&pending.session)?;
        let tip = self.repository.reference(&session.reference())?;
        let committed = match tip {
            Some(tip) => self.repository.is_ancestor(pending.commit, tip)?,
            None => false,
        };
        if committed {
            self.resume_publishing(&session, &pending, user)?;
        }
        journal.finish()?;
        Ok(true)
    }

    /// Brings the files along that an interrupted call left behind.
    fn resume_publishing(&self, session: &SessionName, pending: &Pending, user: &mut dyn User) -> anyhow::Result<()> {
        let files = Move { from: pending.from, to: pending.to };
        let elsewhere;
        let repository = if pending.workspace == self.repository.workdir() {
            &self.repository
        } else if pending.workspace.exists() {
            elsewhere = Repository::open(&pending.workspace)?;
            &elsewhere
        } else {
            user.tell(Event::Warning(&format!(
                "`{}` is gone, so that a turn of `{session}` cannot be brought to it",
                pending.workspace.display()
            )));
            return Ok(());
        };
        let published = publish(repository, &files, &guard(&pending.operation, Overlap::PassOver))?;
        user.tell(Event::Note(&format!(
            "finished an interrupted turn of `{session}`: {}",
            crate::text::counted(published.written.len() + published.deleted.len(), "file")
        )));
        for path in &published.conflicts {
            user.tell(Event::Warning(&format!("`{}` was changed meanwhile and is left as it is", String::from_utf8_lossy(path))));
        }
        self.journal().keep_tip(session, pending.commit)?;
        self.store().discard_draft(session)
    }
}

/// The move of a session's ref.
pub struct Step {
    /// Where it must be.
    pub expected: Expected,
    /// Where it goes.
    pub new: CommitId,
    /// The workspace commit to which the user's files are brought, if they are.
    pub published: Option<CommitId>,
    /// The line in its log.
    pub log: String,
}

/// Brings the files along and makes it durable.
fn publish(repository: &Repository, files: &Move, guard: &Guard) -> anyhow::Result<Published> {
    let published = repository.publish(files.from, files.to, guard)?;
    sync(repository.workdir(), &[]).context("making your files durable")?;
    Ok(published)
}

/// Returns what a publication respects.
fn guard(operation: &str, overlap: Overlap) -> Guard {
    Guard { operation: operation.to_owned(), overlap, ..Guard::default() }
}

/// Returns the name of an operation.
fn operation(commit: CommitId) -> String {
    commit.to_string()[..12].to_owned()
}

/// Says why a session's ref did not move.
fn not_moved(session: &SessionName, error: MoveError) -> anyhow::Error {
    match error {
        MoveError::Moved { .. } => {
            anyhow::Error::new(error).context(format!("session `{session}` got another turn meanwhile; nothing was changed"))
        }
        MoveError::Store(error) => error,
    }
}
