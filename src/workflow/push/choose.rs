//! Chooses the record to push: complete, or redacted like the one that the remote already has.

use crate::git::object::CommitId;
use crate::git::object::batch::{Batch, begin_batch};
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
        remote_tip: Option<CommitId>,
    ) -> anyhow::Result<ChosenRecord<'a>> {
        let Some(remote_tip) = remote_tip else {
            return self.build_record(turns, self.redact);
        };
        if self.redact.is_some() {
            let chosen = self.build_record(turns, self.redact)?;
            let is_plain =
                || Ok::<_, anyhow::Error>(self.build_record(turns, None)?.has(remote_tip));
            if !chosen.has(remote_tip) && is_plain()? {
                return Err(PushError::Unredacted {
                    remote: self.remote.clone(),
                    name: self.target(&turns[0].session),
                }
                .into());
            }
            return Ok(chosen);
        }

        let existing = self.holding(turns, remote_tip)?;
        existing.map_or_else(|| self.build_record(turns, None), Ok)
    }

    /// Like [`Sender::choose`], for turns with their code. `None` if the session goes as it is.
    pub(super) fn choose_code(
        &self,
        turns: &[Turn],
        remote_tip: Option<CommitId>,
    ) -> anyhow::Result<Option<ChosenRecord<'a>>> {
        let is_plain =
            remote_tip.is_some_and(|remote_tip| turns.iter().any(|turn| turn.commit == remote_tip));
        if self.redact.is_some() && is_plain {
            return Err(PushError::Unredacted {
                remote: self.remote.clone(),
                name: self.target(&turns[0].session),
            }
            .into());
        }
        if let Some(kinds) = self.redact {
            return self.made_with(turns, kinds, true).map(Some);
        }

        let Some(remote_tip) = remote_tip.filter(|_| !is_plain) else {
            return Ok(None);
        };
        for kinds in variants() {
            let record = self.made_with(turns, kinds, true)?;
            if record.has(remote_tip) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Returns the variant of the record that contains a commit, trying all redactions.
    pub(super) fn holding(
        &self,
        turns: &[Turn],
        commit: CommitId,
    ) -> anyhow::Result<Option<ChosenRecord<'a>>> {
        for kinds in std::iter::once(None).chain(variants().map(Some)) {
            let candidate = self.build_record(turns, kinds)?;
            if candidate.has(commit) {
                return Ok(Some(candidate));
            }
        }
        Ok(None)
    }

    pub(super) fn build_record(
        &self,
        turns: &[Turn],
        kinds: Option<LeakKinds>,
    ) -> anyhow::Result<ChosenRecord<'a>> {
        match kinds {
            None => Ok(ChosenRecord {
                record: record(&self.project.repository, turns)?,
                batch: begin_batch(&self.project.repository),
                redacted: None,
            }),
            Some(kinds) => self.made_with(turns, kinds, false),
        }
    }

    fn made_with(
        &self,
        turns: &[Turn],
        kinds: LeakKinds,
        keeps_code: bool,
    ) -> anyhow::Result<ChosenRecord<'a>> {
        let repository = &self.project.repository;
        let batch = begin_batch(repository);
        let redaction = Redaction {
            kinds,
            home: self.home.clone(),
            keeps_code,
        };
        Ok(ChosenRecord {
            record: redacted(repository, turns, &redaction, &batch)?,
            batch,
            redacted: Some(kinds),
        })
    }
}

/// Returns what a redaction can cover.
fn variants() -> impl Iterator<Item = LeakKinds> {
    let only = |keys| LeakKinds { keys, paths: !keys };
    [LeakKinds::ALL, only(true), only(false)].into_iter()
}

impl ChosenRecord<'_> {
    fn has(&self, commit: CommitId) -> bool {
        self.record.number_of(commit).is_some()
    }
}
