//! Reads, saves and discards the turn in progress of a session.

use anyhow::Context as _;
use uuid::Uuid;

use crate::git::keep::protect;
use crate::git::keep::protect::MergePolicy;
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
    /// Returns the turn in progress: the saved draft, or a new one from the state that the newest
    /// turn prepared.
    pub fn draft(&self, tip: &Turn) -> anyhow::Result<Draft> {
        match self.saved_draft(tip)? {
            Some(commit) => self.read_draft(commit.id, commit.tree),
            None => self.fresh_draft(tip),
        }
    }

    /// Returns the commit of the saved draft, if there is one.
    pub fn saved_draft(&self, tip: &Turn) -> anyhow::Result<Option<Commit>> {
        if tip.session.remote().is_some() {
            return Ok(None);
        }
        let Some(id) = refs::read(self.repository, &tip.session.draft_reference())? else {
            return Ok(None);
        };
        let commit = self.repository.commit(id)?;
        // After a crash the ref can point at a draft of an older turn, which is obsolete, or at a
        // complete turn, which has a second parent.
        Ok((commit.parents == [tip.commit]).then_some(commit))
    }

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
            artifacts.insert(
                name,
                self.repository.file(tip.tree, &from)?.unwrap_or_default(),
            );
        }

        let rejected = tip.meta.status == Status::Rejected;
        let meta = Meta {
            parent_turn_id: Some(next.parent_turn_id),
            caller_turn_id: next.caller_turn_id,
            replans: match rejected {
                // A fetched turn can name any number.
                true => tip.meta.replans.saturating_add(1),
                false => 0,
            },
            ..Meta::of(Uuid::now_v7(), tip.number() + 1, Status::Ready, &next.agent)
        };
        Ok(Draft {
            artifacts,
            meta,
            commit: None,
        })
    }

    /// Saves the turn in progress durably. Fails if another process saved a draft concurrently.
    pub fn save_draft(&self, tip: &Turn, draft: &mut Draft) -> anyhow::Result<()> {
        let title = format!("Draft of turn {}", draft.meta.number);
        let new = NewTurn {
            session: &tip.session,
            title: &title,
            results: &[],
            artifacts: draft.artifacts.clone(),
            meta: &draft.meta,
            previous: Some(tip.commit),
            workspace: None,
            publication: None,
        };

        let commit = write_into(batch::begin_batch(self.repository), new)?;
        let name = tip.session.draft_reference();
        let stale = refs::read(self.repository, &name)?;
        let expected = match (draft.commit, stale) {
            (Some(saved), _) => Expected::At(saved),
            (None, Some(stale)) => Expected::At(stale),
            (None, None) => Expected::Absent,
        };

        // Before the ref moves, because a plan with an unrecorded origin does not run.
        Journal::new(&self.repository.teddy_dir()).record_draft(&tip.session, commit, stale)?;
        let protected = protect::protect_commits(
            self.repository,
            &[commit],
            &[tip.tree],
            MergePolicy::Separate,
        )?
        .context("`git gc` removed objects of the draft; try again")?;
        fault::point("before-draft-ref")?;
        refs::move_to(self.repository, (&name, expected), commit, "teddy: draft")?;

        // The answer was paid for, so it must survive a power cut.
        refs::sync(self.repository, &name)?;
        protect::release_protected(self.repository, &protected)?;
        draft.commit = Some(commit);
        Ok(())
    }

    /// Removes the turn in progress. Best effort: a draft that remains is older than the newest
    /// turn and is ignored.
    pub fn discard_draft(&self, session: &SessionName) {
        let name = session.draft_reference();
        if matches!(refs::read(self.repository, &name), Ok(Some(_))) {
            let tip = refs::read(self.repository, &session.reference())
                .ok()
                .flatten();
            // `discard` leaves a packed ref, because TeDDy takes no lock of git's. Pointing it at
            // the newest turn marks it as complete.
            // Removing a packed ref needs git's lock on `packed-refs`, which a crash could leave
            // behind. Move the ref to the newest turn instead, which marks the draft as complete.
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
