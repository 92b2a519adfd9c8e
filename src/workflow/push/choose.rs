//! Chooses the record to push: complete, or redacted like the one that the remote already has.

use crate::git::object::CommitId;
use crate::git::object::batch::{Batch, batch};
use crate::session::record::{Record, Redaction, record, redacted};
use crate::session::turn::Turn;
use crate::text::leak::LeakKinds;

use super::error::PushError;
use super::preview::Sender;

pub(super) struct ChosenRecord<'a> {
    pub(super) record: Record,
    pub(super) batch: Batch<'a>,
    pub(super) redacted: Option<LeakKinds>,
}

impl<'a> Sender<'a, '_> {
    /// Returns the record that continues the remote's, or the requested one if the remote has none.
    /// Fails if redaction is requested and the remote has the unredacted record.
    pub(super) fn choose(
        &self,
        turns: &[Turn],
        there: Option<CommitId>,
    ) -> anyhow::Result<ChosenRecord<'a>> {
        let Some(there) = there else {
            return self.made(turns, self.redact);
        };
        if self.redact.is_some() {
            let chosen = self.made(turns, self.redact)?;
            let is_plain = || Ok::<_, anyhow::Error>(self.made(turns, None)?.has(there));
            if !chosen.has(there) && is_plain()? {
                return Err(PushError::Unredacted {
                    remote: self.remote.clone(),
                    name: self.target(&turns[0].session),
                }
                .into());
            }
            return Ok(chosen);
        }

        let found = self.holding(turns, there)?;
        found.map_or_else(|| self.made(turns, None), Ok)
    }

    /// Returns the variant of the record that contains a commit, trying all redactions.
    pub(super) fn holding(
        &self,
        turns: &[Turn],
        commit: CommitId,
    ) -> anyhow::Result<Option<ChosenRecord<'a>>> {
        let only = |keys| LeakKinds { keys, paths: !keys };
        for kinds in [
            None,
            Some(LeakKinds::ALL),
            Some(only(true)),
            Some(only(false)),
        ] {
            let made = self.made(turns, kinds)?;
            if made.has(commit) {
                return Ok(Some(made));
            }
        }
        Ok(None)
    }

    pub(super) fn made(
        &self,
        turns: &[Turn],
        kinds: Option<LeakKinds>,
    ) -> anyhow::Result<ChosenRecord<'a>> {
        let repository = &self.project.repository;
        let batch = batch(repository);
        let made = match kinds {
            None => record(repository, turns)?,
            Some(kinds) => {
                let home = self.home.clone();
                redacted(repository, turns, &Redaction { kinds, home }, &batch)?
            }
        };
        Ok(ChosenRecord {
            record: made,
            batch,
            redacted: kinds,
        })
    }
}

impl ChosenRecord<'_> {
    fn has(&self, commit: CommitId) -> bool {
        self.record.number_of(commit).is_some()
    }
}
