//! The turn that records a restore.

use super::apply::FittedRestore;
use super::restore_plan::OnOverlap;
use crate::git::object::CommitId;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::{RestoreCommand, Status};
use crate::session::publication::{Publication, Stack};
use crate::session::turn::in_next;
use crate::workflow::context::requests;
use crate::workspace::complete::SessionMove;
use crate::workspace::drift::find_unapplied;
use crate::workspace::file_move::find_conflict_markers;
use crate::workspace::files_turn::FilesTurn;
use crate::workspace::stack::record::{Recorder, Written, publication};

impl FittedRestore<'_> {
    /// Writes the turn. The session's ref does not move yet.
    pub(super) fn write(&self) -> anyhow::Result<SessionMove> {
        let (restore, options) = (self.restore, self.restore.options);
        let (project, tip) = (restore.session.project, restore.tip());
        let repository = &project.repository;
        let from = match options.files_only {
            true => tip,
            false => &restore.turn,
        };
        let stripped = self.strip_waiting_message(&project.store().own_draft(tip)?);
        let requests = requests::requests_back_at(project, tip, &stripped, from)?;

        let mut turn = FilesTurn::begin(repository, tip, Status::Restored, &self.recorded)?;
        turn.set_files(&restore.title, self.recorded.commit, self.files.to)?;
        turn.meta.restored = Some(restore.restored.clone());
        turn.continue_from(from)?;
        if options.files_only {
            turn.keep_context_edits();
        }
        turn.artifacts
            .insert(&in_next(artifact::REQUESTS), requests.write());
        let summary = self.files.lines(repository)?;

        let log = format!("teddy: restore turn {}", restore.turn.number());
        Ok(SessionMove {
            overwrite: options.on_overlap.replaces(),
            ..turn.finish(&restore.title, &summary, self.publish()?, log)?
        })
    }

    /// No file, turn or context would change. An undo or redo always changes the position in the
    /// session.
    pub(super) fn changes_nothing(&self) -> anyhow::Result<bool> {
        let (restore, files) = (self.restore, &self.files);
        let (project, stacks) = (restore.session.project, &restore.session.stacks);
        let is_restore = restore.restored.by == RestoreCommand::Restore;
        if !is_restore || files.from != files.to {
            return Ok(false);
        }

        // A path that keeps the user's side is one on which the stacks differ.
        let is_same_stack = stacks.last()?.is_some() && self.end() == restore.current;
        if !is_same_stack {
            return Ok(false);
        }

        let now = || Ok(self.recorded.tree);
        let unapplied = find_unapplied(&project.checkout(), stacks, restore.tip(), &now)?;
        Ok(unapplied.is_none() && (restore.options.files_only || self.has_same_context()?))
    }

    fn publish(&self) -> anyhow::Result<Written> {
        let (restore, stacks) = (self.restore, &self.restore.session.stacks);
        let repository = &restore.session.project.repository;
        let mut recorder = Recorder::new(stacks);
        let mut target = self.end();
        if !self.is_wholly_exact() {
            for (path, series) in &self.restored.stopped {
                target.set(path, recorder.top(path, series)?);
            }
        }

        let mut suspects: Vec<Vec<u8>> = self.restored.overlaps.iter().cloned().collect();
        if let Some((_, last)) = stacks.last()? {
            suspects.extend(last.marked);
        }

        suspects.sort();
        suspects.dedup();
        let tip = restore.tip();
        let below = restore.current.clone();
        let publication = Publication {
            target: Some(target),
            marked: find_conflict_markers(repository, self.files.to, &suspects)?,
            ..publication(tip.session.as_str(), tip.number() + 1, below)
        };

        recorder.write(&publication, self.files.to)
    }

    /// Without paths at which the user's side was kept.
    fn end(&self) -> Stack<CommitId> {
        match self.is_wholly_exact() {
            true => self.restore.stack.clone(),
            false => self.restore.end(),
        }
    }

    fn is_wholly_exact(&self) -> bool {
        let options = self.restore.options;
        options.on_overlap == OnOverlap::Exact && options.paths.is_empty()
    }

    /// The requests of a waiting turn do not belong to the restore.
    fn strip_waiting_message(&self, draft: &Draft) -> Draft {
        let mut stripped = draft.clone();
        if self.waiting.is_some() {
            stripped.artifacts.remove(artifact::USER_PROMPT);
        }
        stripped
    }

    fn has_same_context(&self) -> anyhow::Result<bool> {
        let (project, turn, tip) = (
            self.restore.session.project,
            &self.restore.turn,
            self.restore.tip(),
        );
        let repository = &project.repository;
        let draft = project.store().own_draft(tip)?;
        for name in [artifact::TURN_CONTEXT, artifact::SYSTEM_PROMPT] {
            let target = turn.text(repository, &in_next(name))?.unwrap_or_default();
            if draft.artifacts.text_or_empty(name) != target {
                return Ok(false);
            }
        }

        for name in [artifact::QUESTION, artifact::CONCLUSION] {
            if tip.text(repository, &in_next(name))? != turn.text(repository, &in_next(name))? {
                return Ok(false);
            }
        }

        let stripped = self.strip_waiting_message(&draft);
        let now = requests::requests(project, tip, &stripped)?.write();
        let then = requests::requests_back_at(project, tip, &stripped, turn)?.write();
        let [current, there] = [tip.next(repository)?, turn.next(repository)?];
        Ok(now == then
            && current.agent == there.agent
            && current.caller_turn_id == there.caller_turn_id)
    }
}
