//! Writes the turn for an archive, so that it can be undone like any change of the user's files.

use crate::change::id::ChangeId;
use crate::git::object::CommitId;
use crate::git::refs::{self, Expected};
use crate::host::clock;
use crate::session::artifact;
use crate::session::meta::{Meta, Status, Workspace};
use crate::session::store::NewTurn;
use crate::session::turn::{Turn, archive_title};
use crate::workflow::project::Project;
use crate::workspace::complete::SessionMove;
use crate::workspace::file_move::FileMove;
use crate::workspace::snapshot;
use crate::workspace::snapshot::RecordedFiles;
use crate::workspace::stack::record::{Written, publish_turn};

pub(super) struct ArchiveTurn<'a> {
    pub id: &'a ChangeId,
    pub tip: &'a Turn,
    pub recorded: &'a RecordedFiles,
    pub files: &'a FileMove,
}

pub(super) fn write_archive_turn(
    project: &Project,
    writing: &ArchiveTurn<'_>,
) -> anyhow::Result<(SessionMove, Vec<String>)> {
    let ArchiveTurn {
        id,
        tip,
        recorded,
        files,
    } = writing;
    let mut draft = project.store().draft(tip)?;
    draft.archive_answer();
    draft.begin();
    let title = archive_title(id.as_str());
    let after = snapshot::advance(
        &project.repository,
        recorded.commit,
        files.to,
        &format!("{title}\n\nTeddy-Session: {}\n", tip.session),
    )?;
    let time = Some(clock::now().timestamp().to_string());
    let worktree = project.repository.worktree_name();
    let workspace = Workspace {
        worktree,
        branch: Some(refs::branch_or_head(&project.repository)?),
        before: recorded.commit,
        after,
        synced: true,
        overlaps: Vec::new(),
    };

    let published = publish_turn(&project.repository, tip, &workspace, Some(files.to))?;
    let meta = Meta {
        parent_turn_id: draft.meta.parent_turn_id,
        started: time.clone(),
        ended: time,
        workspace: Some(workspace),
        not_captured: recorded.not_captured.clone(),
        spent: draft.meta.spent,
        ..Meta::of(
            draft.meta.turn_id,
            draft.meta.number,
            Status::Executed,
            &draft.meta.agent,
        )
    };

    let summary = files.lines(&project.repository)?;
    let mut artifacts = draft.lasting_artifacts();
    artifacts.insert(artifact::REPORT, render_archive_report(&title, &summary));
    tip.hand_on(&project.repository, meta.turn_id, &mut artifacts)?;
    let commit = project.store().write(NewTurn {
        session: &tip.session,
        title: &title,
        results: &summary,
        artifacts,
        meta: &meta,
        previous: Some(tip.commit),
        workspace: Some(after),
        publication: published.id,
    })?;

    Ok((archive_move(tip, commit, published), summary))
}

fn archive_move(tip: &Turn, commit: CommitId, published: Written) -> SessionMove {
    SessionMove {
        expected: Expected::At(tip.commit),
        new: commit,
        published,
        log: "teddy: archive".to_owned(),
        anyway: false,
        overwrite: false,
    }
}

fn render_archive_report(title: &str, summary: &[String]) -> String {
    let lines: String = summary
        .iter()
        .map(|line| format!("- {}\n", crate::text::sanitize::sanitize_line(line)))
        .collect();
    format!(
        "# Execution Report: {title}\n- **Overall Status:** Success 🟢\n\n## Changed Files\n\n{lines}"
    )
}
