//! The turn that records a restore.

use super::{Aim, Wish};
use crate::git::object::CommitId;
use crate::host::clock;
use crate::session::artifact;
use crate::session::meta::{Meta, Restored, Status, Workspace};
use crate::session::store::NewTurn;
use crate::session::turn::{Turn, in_next};
use crate::workflow::complete::Move;
use crate::workflow::project::Project;
use crate::workflow::workspace::Recorded;

/// What the turn of a restore is written from.
pub(super) struct Writing<'a> {
    /// Where it goes.
    pub aim: &'a Aim<'a>,
    /// The user's files before.
    pub recorded: &'a Recorded,
    /// What happens to them.
    pub files: &'a Move,
    /// What was wanted.
    pub wish: &'a Wish,
}

/// Writes the turn that records a restore.
pub(super) fn write(
    project: &Project,
    tip: &Turn,
    writing: &Writing<'_>,
) -> anyhow::Result<(CommitId, CommitId)> {
    let Writing {
        aim,
        recorded,
        files,
        wish,
    } = writing;
    let repository = &project.repository;
    let mut draft = project.store().draft(tip)?;
    let from = if wish.files_only { tip } else { aim.turn };
    let requests = project.requests_back_at((tip, &draft), from)?;
    draft.begin();
    let title = format!(
        "Restore turn {}: {}",
        aim.turn.number(),
        aim.turn.title.trim_start_matches("Restore ")
    );
    let after = project.advance(
        recorded.commit,
        files.to,
        &format!("{title}\n\nTeddy-Session: {}\n", tip.session),
    )?;
    let restored = Restored {
        turn: aim.turn.number(),
        by: aim.by,
        redo: aim.redo.clone(),
    };
    let workspace = Workspace {
        worktree: repository.worktree_name(),
        before: recorded.commit,
        after,
        synced: true,
        overlaps: Vec::new(),
    };
    let meta = Meta {
        status: Status::Restored,
        ended: Some(clock::stamp()),
        workspace: Some(workspace),
        restored: Some(restored),
        not_captured: recorded.not_captured.clone(),
        replans: 0,
        model: None,
        repair: None,
        ..draft.meta.clone()
    };
    let mut artifacts = draft.standing();
    from.hand_on(repository, meta.turn_id, &mut artifacts)?;
    artifacts.put(&in_next(artifact::REQUESTS), requests.write());
    let done = files.lines(repository)?;
    artifacts.put(artifact::REPORT, report(&title, &done));
    let new = NewTurn {
        session: &tip.session,
        title: &title,
        done: &done,
        artifacts,
        meta: &meta,
        previous: Some(tip.commit),
        workspace: Some(after),
    };
    Ok((project.store().write(new)?, after))
}

/// Writes the report of a restore.
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
