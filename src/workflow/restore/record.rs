//! The turn that records a restore.

use super::apply::RestoredFiles;
use super::{OnOverlap, RestoreOptions, RestoreTarget};
use crate::project::Project;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::{RestoreCommand, Status};
use crate::session::publication::{Publication, Stack};
use crate::session::turn::{Turn, in_next};
use crate::workflow::context::requests;
use crate::workspace::complete::SessionMove;
use crate::workspace::drift::find_unapplied;
use crate::workspace::files_turn::FilesTurn;
use crate::workspace::fit::FileMove;
use crate::workspace::fit::find_conflict_markers;
use crate::workspace::snapshot::RecordedFiles;
use crate::workspace::stack::PatchId;
use crate::workspace::stack::record::{Author, Recorder, Written};

pub(super) struct RestoreTurn<'a> {
    pub goal: &'a RestoreTarget<'a>,
    pub recorded: &'a RecordedFiles,
    pub files: &'a FileMove,
    pub restored: &'a RestoredFiles,
    pub options: &'a RestoreOptions,
    /// The turn in progress continues after this one and keeps its requests.
    pub waits: bool,
}

impl RestoreTurn<'_> {
    /// Without paths at which the user's side was kept.
    pub(super) fn target(&self) -> Stack<PatchId> {
        if self.is_wholly_exact() {
            return self.goal.stack.clone();
        }
        let mut target = Stack::default();
        for (path, top) in self.goal.plan.ends() {
            target.set(path, top);
        }
        target
    }

    /// The requests of a waiting turn do not belong to the restore.
    pub(super) fn strip_waiting_message(&self, draft: &Draft) -> Draft {
        let mut stripped = draft.clone();
        if self.waits {
            stripped.artifacts.remove(artifact::USER_PROMPT);
        }
        stripped
    }

    fn is_wholly_exact(&self) -> bool {
        self.options.on_overlap == OnOverlap::Exact && self.options.paths.is_empty()
    }
}

pub(super) fn write_restore_turn(
    project: &Project,
    tip: &Turn,
    writing: &RestoreTurn<'_>,
) -> anyhow::Result<SessionMove> {
    let RestoreTurn {
        goal,
        recorded,
        files,
        options,
        ..
    } = writing;
    let repository = &project.repository;
    let from = if options.files_only { tip } else { goal.turn };
    let stripped = writing.strip_waiting_message(&project.store().own_draft(tip)?);
    let requests = requests::requests_back_at(project, tip, &stripped, from)?;

    let mut turn = FilesTurn::begin(repository, tip, Status::Restored, recorded)?;
    turn.set_files(&goal.title, recorded.commit, files.to)?;
    turn.meta.restored = Some(goal.restored.clone());
    turn.continue_from(from)?;
    if options.files_only {
        turn.keep_context_edits();
    }
    turn.artifacts
        .insert(&in_next(artifact::REQUESTS), requests.write());
    let summary = files.lines(repository)?;
    let report = render_restore_report(&goal.title, &summary);
    turn.artifacts.insert(artifact::REPORT, report);

    let published = publish_restore(writing, tip)?;
    let log = format!("teddy: restore turn {}", goal.turn.number());
    Ok(SessionMove {
        overwrite: options.on_overlap.replaces(),
        ..turn.finish(&goal.title, &summary, published, log)?
    })
}

fn publish_restore(writing: &RestoreTurn<'_>, tip: &Turn) -> anyhow::Result<Written> {
    let RestoreTurn {
        goal,
        files,
        restored,
        ..
    } = writing;
    let planner = &goal.planner;
    let mut recorder = Recorder::new(planner.stacks);
    let mut target = writing.target();
    if !writing.is_wholly_exact() {
        for (path, series) in &restored.stopped {
            target.set(path, recorder.top(path, series)?);
        }
    }

    let mut suspects: Vec<Vec<u8>> = restored.overlaps.iter().cloned().collect();
    if let Some((_, last)) = planner.stacks.last()? {
        suspects.extend(last.marked);
    }

    suspects.sort();
    suspects.dedup();
    let author = Author {
        session: tip.session.as_str(),
        turn: tip.number() + 1,
    };
    let publication = Publication {
        target: Some(recorder.publish_stack(&target)?),
        marked: find_conflict_markers(planner.repository, files.to, &suspects)?,
        ..recorder.publication(author, planner.current)?
    };

    recorder.write(&publication, files.to)
}

fn render_restore_report(title: &str, summary: &[String]) -> String {
    let mut text = format!(
        "# Execution Report: {title}\n- **Overall Status:** Restored 🟢\n\n## Changed Files\n\n"
    );
    summary.iter().for_each(|line| {
        text.push_str(&format!(
            "- {}\n",
            crate::text::sanitize::sanitize_line(line)
        ))
    });
    if summary.is_empty() {
        text.push_str("*(No file had to change.)*\n");
    }

    text
}

/// No file, turn or context would change. An undo or redo always changes the position in the
/// session.
pub(super) fn changes_nothing(
    project: &Project,
    tip: &Turn,
    writing: &RestoreTurn<'_>,
) -> anyhow::Result<bool> {
    let RestoreTurn {
        goal,
        files,
        restored,
        options,
        recorded,
        ..
    } = writing;
    let stacks = goal.planner.stacks;
    let is_restore = goal.restored.by == RestoreCommand::Restore;
    if !is_restore || files.from != files.to || !restored.stopped.is_empty() {
        return Ok(false);
    }

    let is_same_stack = stacks.last()?.is_some() && writing.target() == *goal.planner.current;
    if !is_same_stack {
        return Ok(false);
    }

    let is_brought = find_unapplied(&project.checkout(), stacks, tip, &|| Ok(recorded.tree))?;
    Ok(is_brought.is_none() && (options.files_only || has_same_context(project, tip, writing)?))
}

fn has_same_context(
    project: &Project,
    tip: &Turn,
    writing: &RestoreTurn<'_>,
) -> anyhow::Result<bool> {
    let (repository, turn) = (&project.repository, writing.goal.turn);
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

    let stripped = writing.strip_waiting_message(&draft);
    let now = requests::requests(project, tip, &stripped)?.write();
    let then = requests::requests_back_at(project, tip, &stripped, turn)?.write();
    let [current, there] = [tip.next(repository)?, turn.next(repository)?];
    Ok(now == then
        && current.agent == there.agent
        && current.caller_turn_id == there.caller_turn_id)
}
