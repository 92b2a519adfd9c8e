//! The turn that records a restore.

use super::bring::RestoredFiles;
use super::{Aim, OnOverlap, RestoreOptions};
use crate::git::object::CommitId;
use crate::git::refs;
use crate::host::clock;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::message::subject;
use crate::session::meta::{Meta, Status, Workspace};
use crate::session::publication::{Publication, Stack};
use crate::session::store::NewTurn;
use crate::session::turn::{Turn, in_next};
use crate::workflow::context::requests;
use crate::workflow::project::Project;
use crate::workspace::file_move::FileMove;
use crate::workspace::marks::marked;
use crate::workspace::snapshot;
use crate::workspace::snapshot::RecordedFiles;
use crate::workspace::stack::PatchId;
use crate::workspace::stack::record::{Author, Recorder, Written};

/// Contents of the turn that records a restore.
pub(super) struct RestoreTurn<'a> {
    pub aim: &'a Aim<'a>,
    pub recorded: &'a RecordedFiles,
    pub files: &'a FileMove,
    pub brought: &'a RestoredFiles,
    pub wish: &'a RestoreOptions,
    /// Whether the turn in progress continues after this one and keeps its requests.
    pub waits: bool,
}

impl RestoreTurn<'_> {
    /// Returns the applied patches at the end, without paths at which the user's side was kept.
    pub(super) fn target(&self) -> Stack<PatchId> {
        if self.is_wholly_exact() {
            return self.aim.wanted.clone();
        }
        let mut target = Stack::default();
        for (path, top) in self.aim.way.ends() {
            target.set(path, top);
        }
        target
    }

    /// Returns the turn in progress if its requests belong to the restore.
    pub(super) fn said(&self, draft: &Draft) -> Draft {
        let mut said = draft.clone();
        if self.waits {
            said.artifacts.remove(artifact::USER_PROMPT);
        }
        said
    }

    fn is_wholly_exact(&self) -> bool {
        self.wish.on_overlap == OnOverlap::Exact && self.wish.paths.is_empty()
    }
}

/// Writes the turn that records a restore, and its publication.
pub(super) fn write(
    project: &Project,
    tip: &Turn,
    writing: &RestoreTurn<'_>,
) -> anyhow::Result<(CommitId, Written)> {
    let RestoreTurn {
        aim,
        recorded,
        files,
        wish,
        ..
    } = writing;
    let repository = &project.repository;
    let mut draft = project.store().draft(tip)?;
    let from = if wish.files_only { tip } else { aim.turn };
    let said = writing.said(&draft);
    let requests = requests::requests_back_at(project, (tip, &said), from)?;

    draft.set_answer_aside();
    draft.begin();
    let after = snapshot::advance(
        &project.repository,
        recorded.commit,
        files.to,
        &format!(
            "{}\n\nTeddy-Session: {}\n",
            subject(&aim.title),
            tip.session
        ),
    )?;
    let workspace = Workspace {
        worktree: repository.worktree_name(),
        branch: Some(refs::branch_or_head(repository)?),
        before: recorded.commit,
        after,
        synced: true,
        overlaps: Vec::new(),
    };

    let meta = Meta {
        status: Status::Restored,
        ended: Some(clock::stamp()),
        workspace: Some(workspace),
        restored: Some(aim.restored.clone()),
        not_captured: recorded.not_captured.clone(),
        replans: 0,
        model: None,
        repair: None,
        ..draft.meta.clone()
    };
    let mut artifacts = draft.standing();
    from.hand_on(repository, meta.turn_id, &mut artifacts)?;
    if wish.files_only {
        // Edits of the context since the newest turn stay.
        for name in [artifact::TURN_CONTEXT, artifact::SYSTEM_PROMPT] {
            artifacts.put(&in_next(name), draft.artifacts.text_or_empty(name));
        }
    }
    artifacts.put(&in_next(artifact::REQUESTS), requests.write());
    let done = files.lines(repository)?;

    artifacts.put(artifact::REPORT, report(&aim.title, &done));

    let published = publish(writing, tip)?;
    let new = NewTurn {
        session: &tip.session,
        title: &aim.title,
        done: &done,
        artifacts,
        meta: &meta,
        previous: Some(tip.commit),
        workspace: Some(after),
        publication: published.id,
    };
    Ok((project.store().write(new)?, published))
}

fn publish(writing: &RestoreTurn<'_>, tip: &Turn) -> anyhow::Result<Written> {
    let RestoreTurn {
        aim,
        files,
        brought,
        ..
    } = writing;
    let planner = &aim.planner;
    let mut recorder = Recorder::new(planner.stacks);
    let mut target = writing.target();
    if !writing.is_wholly_exact() {
        for (path, series) in &brought.stopped {
            target.set(path, recorder.top(path, series)?);
        }
    }

    let mut suspects: Vec<Vec<u8>> = brought.overlaps.iter().cloned().collect();
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
        target: Some(recorder.settle(&target)?),
        marked: marked(planner.repository, files.to, &suspects)?,
        ..recorder.publication(author, planner.here)?
    };

    recorder.write(&publication, files.to)
}

fn report(title: &str, done: &[String]) -> String {
    let mut text = format!(
        "# Execution Report: {title}\n- **Overall Status:** Restored 🟢\n\n## Changed Files\n\n"
    );
    done.iter()
        .for_each(|line| text.push_str(&format!("- {}\n", crate::text::visible::visible(line))));
    if done.is_empty() {
        text.push_str("*(No file had to change.)*\n");
    }

    text
}
