//! The user's files between two recorded states: snapshots, comparison, update, crash recovery.
//!
//! Knows sessions and turns, but neither plans nor models. Never prompts: events for the user are
//! [`notice::FilesNotice`] values. Functions that move refs or write files need the lock, which
//! [`transaction::Transaction`] holds.

pub mod changed;
pub mod complete;
pub mod draft_transfer;
pub mod drift;
pub mod file_move;
pub mod files_turn;
pub mod forced_files;
pub mod landing;
pub mod notice;
pub mod recover;
pub mod set_aside;
pub mod snapshot;
pub mod stack;
pub mod transaction;

use std::path::PathBuf;

use crate::git::history;
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::git::snapshot::limits::SnapshotLimits;
use crate::host::file::missing_git_dir;
use crate::host::lock::{Lock, LockError, patience};
use crate::session::journal::{Journal, OwnTip};
use crate::session::name::SessionName;
use crate::session::store::Store;
use crate::session::turn::Turn;

/// A checkout of the user's, with the rules for its snapshots.
pub struct Checkout<'a> {
    pub repository: &'a Repository,
    pub limits: SnapshotLimits,
    /// Parent directory of the session worktrees.
    pub worktrees: PathBuf,
}

impl<'a> Checkout<'a> {
    pub fn store(&self) -> Store<'a> {
        Store {
            repository: self.repository,
        }
    }

    pub fn journal(&self) -> Journal {
        Journal::new(&self.repository.teddy_dir())
    }

    /// Path of a private index of ours, by name.
    pub fn index(&self, name: &str) -> PathBuf {
        self.repository.teddy_dir().join("index").join(name)
    }

    /// Takes the lock under which refs move and the user's files change.
    pub fn lock(&self, command: &str) -> Result<Lock, LockError> {
        let dir = self.repository.teddy_dir();
        let lock = Lock::take(&dir, command, patience())?;
        // The user can have removed a linked worktree while its plan ran. Its objects cannot be read
        // without that directory, and would count as missing.
        let git = self.repository.git_dir();
        if !git.exists() {
            return Err(LockError::Unusable(dir.join("lock"), missing_git_dir(git)));
        }
        Ok(lock)
    }

    /// Locked while a plan's command runs in a session's worktree. `name` is that of the session or of
    /// its directory.
    pub fn commands_lock(&self, name: &str) -> PathBuf {
        let session = SessionName::from_dir_name(name)
            .map_or_else(|| name.to_owned(), |name| name.to_string());
        // `.lock` cannot collide with a session: git refuses ref names with that suffix.
        let locks = self.repository.teddy_dir().join("locks");
        locks.join(session).join("commands.lock")
    }
}

/// Distinguishes turns that this user made or accepted from turns of other users.
///
/// Turns of other users arrive as refs. The record of the user's own turns is in the git directory, and
/// no fetch, clone or import copies it. Own turns can follow turns of another user, so
/// [`OwnTip::foreign`] separates the two; only an adoption removes it. Without a record, no turn is the
/// user's.
impl Checkout<'_> {
    /// The newest turn that another user made and this one did not accept. `tip` is the newest turn
    /// of the session.
    pub fn newest_foreign(&self, session: &SessionName, tip: CommitId) -> Option<CommitId> {
        match self.journal().own_tip(session, tip) {
            Some(own) => own.foreign,
            None => Some(tip),
        }
    }

    pub fn is_own_turn(&self, turn: &Turn) -> anyhow::Result<bool> {
        let tip = self.store().tip(&turn.session)?;
        let Some(own) = self.journal().own_tip(&turn.session, tip.commit) else {
            return Ok(false);
        };
        if let Some(foreign) = own.foreign
            && turn.number() <= Turn::read(self.repository, &turn.session, foreign)?.number()
        {
            return Ok(false);
        }

        // A revision can name a turn of another session.
        let Some(back) = tip.number().checked_sub(turn.number()) else {
            return Ok(false);
        };
        Ok(history::first_parent(self.repository, tip.commit, back)? == turn.commit)
    }

    /// The context list of the turn in progress has only entries of this user.
    pub fn owns_context(&self, tip: &Turn) -> anyhow::Result<bool> {
        let own_drafts = self.journal().own_drafts(&tip.session);
        let saved = self.store().saved_draft(tip)?;
        let own = self.journal().own_tip(&tip.session, tip.commit);
        Ok(own == Some(OwnTip::of(tip.commit))
            && saved.is_none_or(|saved| own_drafts.contains(&saved.id)))
    }

    /// Records a turn as the user's. It does not accept the turns before it. `tip` is the newest turn
    /// of the session.
    ///
    /// Called before the ref moves, and keeps the record of `tip`: after a crash, the ref is at a
    /// recorded turn either way. Recovery repairs a damaged ref from this record.
    pub fn record_own(
        &self,
        session: &SessionName,
        turn: CommitId,
        tip: Option<CommitId>,
    ) -> anyhow::Result<()> {
        let journal = self.journal();
        let mut recorded = journal.read_tips(session)?.into_iter();
        let before = recorded.find(|own| Some(own.turn) == tip);
        let own = match (tip, before) {
            (_, Some(before)) => OwnTip { turn, ..before },
            (None, None) => OwnTip::of(turn),
            (foreign, None) => {
                // Drop the model: it was chosen for an earlier session with this name.
                journal.forget_model(session);
                OwnTip {
                    foreign,
                    ..OwnTip::of(turn)
                }
            }
        };
        let tips: Vec<OwnTip> = [own].into_iter().chain(before).collect();
        Ok(journal.record_tips(session, &tips)?)
    }

    /// Removes the record of a turn to which the ref did not move. A repair of the ref must not use
    /// it, because the turn's files were not applied.
    pub fn withdraw_own(&self, session: &SessionName, turn: CommitId) -> anyhow::Result<()> {
        let journal = self.journal();
        let mut tips = journal.read_tips(session)?;
        if !tips.iter().any(|own| own.turn == turn) {
            return Ok(());
        }
        tips.retain(|own| own.turn != turn);
        Ok(match tips.is_empty() {
            true => journal.forget_tip(session),
            false => journal.record_tips(session, &tips),
        }?)
    }

    /// Records a new session that starts at `turn`, if the turn is the user's. Called before the ref
    /// is created.
    pub fn record_branch(&self, turn: &Turn, name: &SessionName) -> anyhow::Result<()> {
        let tip = self.store().tip_id(&turn.session)?;
        if self.is_own_turn(turn)?
            && let Some(own) = self.journal().own_tip(&turn.session, tip)
        {
            let turn = turn.commit;
            self.journal()
                .record_tips(name, &[OwnTip { turn, ..own }])?;
        }
        Ok(())
    }
}
