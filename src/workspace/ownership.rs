//! Tells the turns that this user made or accepted from those of others.
//!
//! Turns of others arrive as refs. What this user recorded is in the git directory, which no fetch,
//! clone or import copies. The user's own turns can follow turns of others, so [`OwnTip::foreign`]
//! separates the two; only an adoption removes it. Without a record, all turns count as others'.

use crate::git::history;
use crate::git::object::CommitId;
use crate::session::journal::OwnTip;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::workspace::Checkout;

impl Checkout<'_> {
    /// The newest turn that another user made and this one did not accept. `tip` is the newest turn
    /// of the session.
    pub fn newest_foreign(&self, session: &SessionName, tip: CommitId) -> Option<CommitId> {
        match self.journal().own_tip(session) {
            Some(own) if own.turn == tip => own.foreign,
            _ => Some(tip),
        }
    }

    pub fn is_own_turn(&self, turn: &Turn) -> anyhow::Result<bool> {
        let tip = self.store().tip(&turn.session)?;
        let own = self.journal().own_tip(&turn.session);
        let Some(own) = own.filter(|own| own.turn == tip.commit) else {
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
        Ok(self.newest_foreign(&tip.session, tip.commit).is_none()
            && saved.is_none_or(|saved| own_drafts.contains(&saved.id)))
    }

    /// Records a turn that the user made, which accepts none before it. The record is also the copy
    /// from which recovery repairs a damaged ref.
    pub fn record_own(&self, session: &SessionName, turn: CommitId) -> anyhow::Result<()> {
        let journal = self.journal();
        let before = |turn| anyhow::Ok(Turn::read(self.repository, session, turn)?.previous);
        let foreign = match (before(turn)?, journal.own_tip(session)) {
            (None, _) => None,
            // The recorded turn is the one before, or another version of this one.
            (previous, Some(own))
                if previous == Some(own.turn)
                    || before(own.turn).is_ok_and(|before| before == previous) =>
            {
                own.foreign
            }
            (previous, _) => {
                // The user chose it for an earlier session of this name.
                journal.forget_model(session);
                previous
            }
        };
        Ok(journal.record_tip(session, OwnTip { turn, foreign })?)
    }

    /// Records a session that starts at `turn`. It is the user's as far as the turn is.
    pub fn record_branch(&self, turn: &Turn, name: &SessionName) -> anyhow::Result<()> {
        if self.is_own_turn(turn)? {
            let own = self.journal().own_tip(&turn.session);
            let foreign = own.and_then(|own| own.foreign);
            let turn = turn.commit;
            self.journal().record_tip(name, OwnTip { turn, foreign })?;
        }
        Ok(())
    }
}
