//! A turn without a plan: a restore, a pick, a landing, recorded work, an archived change.
//!
//! It moves the user's files from one recorded state to another. The session's prompt and context
//! lists stay, and a waiting answer of the model is archived in it. Another user's draft is left behind.

use crate::git::object::{CommitId, TreeId};
use crate::git::refs::{self, Expected};
use crate::git::repository::Repository;
use crate::host::clock;
use crate::session::artifact::{self, Artifacts};
use crate::session::draft::Draft;
use crate::session::meta::{Meta, Status, Workspace};
use crate::session::store::{NewTurn, Store};
use crate::session::turn::{Turn, commit_subject, in_next};
use crate::text::sanitize::sanitize_line;
use crate::workspace::complete::SessionMove;
use crate::workspace::snapshot::{self, RecordedFiles};
use crate::workspace::stack::record::Written;

pub struct FilesTurn<'a> {
    pub draft: Draft,
    pub meta: Meta,
    pub artifacts: Artifacts,
    repository: &'a Repository,
    tip: &'a Turn,
}

impl<'a> FilesTurn<'a> {
    /// `recorded` is the snapshot on which the turn builds.
    pub fn begin(
        repository: &'a Repository,
        tip: &'a Turn,
        status: Status,
        recorded: &RecordedFiles,
    ) -> anyhow::Result<FilesTurn<'a>> {
        let mut draft = Store { repository }.own_draft(tip)?;
        draft.archive_answer();
        draft.begin();
        // Not what was noted of a model's answer that waits, or never came.
        let waiting = &draft.meta;
        let meta = Meta {
            parent_turn_id: waiting.parent_turn_id,
            caller_turn_id: waiting.caller_turn_id,
            started: waiting.started.clone(),
            spent: waiting.spent,
            not_captured: recorded.not_captured.clone(),
            ..Meta::of(waiting.turn_id, waiting.number, status, &waiting.agent)
        };
        Ok(FilesTurn {
            artifacts: draft.lasting_artifacts(),
            draft,
            meta,
            repository,
            tip,
        })
    }

    pub fn set_files(
        &mut self,
        title: &str,
        before: CommitId,
        after: TreeId,
    ) -> anyhow::Result<Workspace> {
        let subject = commit_subject(title);
        let message = format!("{subject}\n\nTeddy-Session: {}\n", self.tip.session);
        let workspace = Workspace {
            worktree: self.repository.worktree_name(),
            branch: Some(refs::branch_or_head(self.repository)?),
            before,
            after: snapshot::advance(self.repository, before, after, &message)?,
            synced: true,
            overlaps: Vec::new(),
        };
        self.meta.workspace = Some(workspace.clone());
        Ok(workspace)
    }

    /// Has the next turn begin with what `turn` left for it.
    pub fn continue_from(&mut self, turn: &Turn) -> anyhow::Result<()> {
        turn.hand_on(self.repository, self.meta.turn_id, &mut self.artifacts)
    }

    pub fn keep_context_edits(&mut self) {
        for name in [artifact::TURN_CONTEXT, artifact::SYSTEM_PROMPT] {
            let text = self.draft.artifacts.text_or_empty(name);
            self.artifacts.insert(&in_next(name), text);
        }
    }

    /// Writes the turn with its report. The session's ref does not move yet.
    pub fn finish(
        mut self,
        title: &str,
        results: &[String],
        published: Written,
        log: String,
    ) -> anyhow::Result<SessionMove> {
        self.meta.ended = Some(clock::stamp());
        let report = render_report(title, &self.meta, results);
        self.artifacts.insert(artifact::REPORT, report);
        let store = Store {
            repository: self.repository,
        };
        let commit = store.write(NewTurn {
            session: &self.tip.session,
            title,
            results,
            artifacts: self.artifacts,
            workspace: self.meta.workspace.as_ref().map(|files| files.after),
            meta: &self.meta,
            previous: Some(self.tip.commit),
            publication: published.id,
        })?;
        Ok(SessionMove {
            expected: Expected::At(self.tip.commit),
            new: commit,
            published,
            log,
            anyway: false,
            overwrite: false,
        })
    }
}

fn render_report(title: &str, meta: &Meta, lines: &[String]) -> String {
    let (status, section) = match meta.status {
        Status::Landed => ("Landed", "Commits"),
        Status::Picked => ("Picked", "Changed Files"),
        Status::Recorded => ("Recorded", "Changed Files"),
        Status::Restored => ("Restored", "Changed Files"),
        _ => ("Success", "Changed Files"),
    };
    let title = sanitize_line(title);
    let mut text = format!("# Execution Report: {title}\n- **Overall Status:** {status} 🟢\n");
    if let Some(work) = &meta.recorded {
        if let Some(by) = &work.by {
            text.push_str(&format!("- **Done by:** {}\n", sanitize_line(by)));
        }
        if let Some(code) = work.exit_code {
            text.push_str(&format!("- **Exit Code:** {code}\n"));
        }
        for note in &work.notes {
            text.push_str(&format!("- **Note:** {}\n", sanitize_line(note)));
        }
    }

    text.push_str(&format!("\n## {section}\n\n"));
    for line in lines {
        text.push_str(&format!("- {}\n", sanitize_line(line)));
    }
    match (lines, meta.status) {
        ([], Status::Recorded) => text.push_str("*(No file changed.)*\n"),
        ([], Status::Restored) => text.push_str("*(No file had to change.)*\n"),
        _ => {}
    }
    text
}
