//! The turn in progress of a session: read, begun, saved and given up.

use anyhow::Context as _;
use uuid::Uuid;

use crate::git::keep::hold;
use crate::git::keep::hold::Older;
use crate::git::object::batch;
use crate::git::object::{Commit, CommitId};
use crate::git::refs::{self, Expected};
use crate::host::fault;
use crate::session::artifact::{self, Artifacts};
use crate::session::draft::Draft;
use crate::session::journal::Journal;
use crate::session::meta::{self, Meta, Status};
use crate::session::name::SessionName;
use crate::session::turn::Turn;

use super::{NewTurn, Store, write_into};

impl Store<'_> {
    /// Returns the turn in progress: the saved draft, or what the newest turn prepared.
    ///
    /// # Errors
    /// Where the repository cannot be read.
    pub fn draft(&self, tip: &Turn) -> anyhow::Result<Draft> {
        match self.saved_draft(tip)? {
            Some(commit) => self.read_draft(commit.id, commit.tree),
            None => self.fresh_draft(tip),
        }
    }

    /// Returns the commit of the turn in progress, if it was saved.
    ///
    /// # Errors
    /// Where the repository cannot be read.
    pub fn saved_draft(&self, tip: &Turn) -> anyhow::Result<Option<Commit>> {
        if tip.session.remote().is_some() {
            return Ok(None);
        }
        let Some(id) = refs::read(self.repository, &tip.session.draft_reference())? else {
            return Ok(None);
        };
        let commit = self.repository.commit(id)?;
        // A draft of an older turn is what a crash left behind its ref; it is done with. A turn
        // has a second parent.
        Ok((commit.parents == [tip.commit]).then_some(commit))
    }

    /// Reads a saved draft.
    fn read_draft(&self, id: CommitId, tree: crate::git::object::TreeId) -> anyhow::Result<Draft> {
        let mut artifacts = Artifacts(self.repository.files(tree)?);
        let text = artifacts
            .text(artifact::META)
            .with_context(|| format!("the draft {id} has no `{}`", artifact::META))?;
        let meta =
            meta::read(&text).with_context(|| format!("`{}` of the draft {id}", artifact::META))?;
        artifacts.remove(artifact::META);

        Ok(Draft {
            artifacts,
            meta,
            commit: Some(id),
        })
    }

    /// Makes the first state of the turn after the newest one.
    fn fresh_draft(&self, tip: &Turn) -> anyhow::Result<Draft> {
        let next = tip.next(self.repository)?;
        let mut artifacts = Artifacts::default();
        for (name, from) in [
            (
                artifact::TURN_CONTEXT,
                format!("{}{}", artifact::NEXT, artifact::TURN_CONTEXT),
            ),
            (
                artifact::SYSTEM_PROMPT,
                format!("{}{}", artifact::NEXT, artifact::SYSTEM_PROMPT),
            ),
            (
                artifact::SESSION_CONTEXT,
                artifact::SESSION_CONTEXT.to_owned(),
            ),
        ] {
            artifacts.put(
                name,
                self.repository.file(tip.tree, &from)?.unwrap_or_default(),
            );
        }

        let rejected = tip.meta.status == Status::Rejected;
        let meta = Meta {
            parent_turn_id: Some(next.parent_turn_id),
            caller_turn_id: next.caller_turn_id,
            replans: if rejected { tip.meta.replans + 1 } else { 0 },
            ..Meta::of(Uuid::now_v7(), tip.number() + 1, Status::Ready, &next.agent)
        };
        Ok(Draft {
            artifacts,
            meta,
            commit: None,
        })
    }

    /// Saves the turn in progress, so that it outlives this process.
    ///
    /// # Errors
    /// Where someone else saved one meanwhile, or the repository cannot be written.
    pub fn save_draft(&self, tip: &Turn, draft: &mut Draft) -> anyhow::Result<()> {
        let title = format!("Draft of turn {}", draft.meta.number);
        let new = NewTurn {
            session: &tip.session,
            title: &title,
            done: &[],
            artifacts: draft.artifacts.clone(),
            meta: &draft.meta,
            previous: Some(tip.commit),
            workspace: None,
            publication: None,
        };

        let commit = write_into(batch::batch(self.repository), new)?;
        let name = tip.session.draft_reference();
        let stale = refs::read(self.repository, &name)?;
        let expected = match (draft.commit, stale) {
            (Some(saved), _) => Expected::At(saved),
            (None, Some(stale)) => Expected::At(stale),
            (None, None) => Expected::Absent,
        };

        // Before the ref: a plan whose origin is not noted does not run.
        Journal::new(&self.repository.teddy_dir()).keep_draft(&tip.session, commit, stale)?;
        let held = hold::hold(self.repository, &[commit], &[tip.tree], Older::Stay)?
            .context("`git gc` removed objects of the draft; try again")?;
        fault::point("before-draft-ref")?;
        refs::move_to(self.repository, (&name, expected), commit, "teddy: draft")?;

        // An answer that was paid for must not go with a power cut.
        refs::sync(self.repository, &name)?;
        hold::settle(self.repository, &held)?;
        draft.commit = Some(commit);
        Ok(())
    }

    /// Removes the turn in progress, whoever saved it. One that cannot be removed is that of an
    /// older turn from now on and counts as none; one that git has packed points at the newest turn
    /// instead, as it takes no lock of git's.
    pub fn discard_draft(&self, session: &SessionName) {
        let name = session.draft_reference();
        if matches!(refs::read(self.repository, &name), Ok(Some(_))) {
            let tip = refs::read(self.repository, &session.reference())
                .ok()
                .flatten();
            let _ = match (refs::discard(self.repository, &name), tip) {
                (Ok(false), Some(tip)) => {
                    refs::move_to(self.repository, (&name, Expected::Any), tip, "teddy: done")
                }
                _ => Ok(()),
            };
            Journal::new(&self.repository.teddy_dir()).forget_draft(session);
        }
    }
}
