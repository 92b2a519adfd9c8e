//! Detects restores that change nothing. They are not recorded.

use super::record::RestoreTurn;
use crate::session::artifact;
use crate::session::meta::RestoreCommand;
use crate::session::turn::{Turn, in_next};
use crate::workflow::context::requests;
use crate::workflow::project::Project;
use crate::workspace::drift::not_brought;

/// Returns whether a restore would change no file, turn or context. An undo or redo always changes the
/// position in the session.
pub(super) fn changes_nothing(
    project: &Project,
    tip: &Turn,
    writing: &RestoreTurn<'_>,
) -> anyhow::Result<bool> {
    let RestoreTurn {
        aim,
        files,
        brought,
        wish,
        recorded,
        ..
    } = writing;
    let stacks = aim.planner.stacks;
    let is_restore = aim.restored.by == RestoreCommand::Restore;
    if !is_restore || files.from != files.to || !brought.stopped.is_empty() {
        return Ok(false);
    }

    let is_same_stack = stacks.last()?.is_some() && writing.target() == *aim.planner.here;
    if !is_same_stack {
        return Ok(false);
    }

    let is_brought = not_brought(&project.checkout(), stacks, tip, &|| Ok(recorded.tree))?;
    Ok(is_brought.is_none() && (wish.files_only || has_same_context(project, tip, writing)?))
}

fn has_same_context(
    project: &Project,
    tip: &Turn,
    writing: &RestoreTurn<'_>,
) -> anyhow::Result<bool> {
    let (repository, turn) = (&project.repository, writing.aim.turn);
    let draft = project.store().draft(tip)?;
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

    let said = writing.said(&draft);
    let now = requests::requests(project, tip, &said)?.write();
    let then = requests::requests_back_at(project, (tip, &said), turn)?.write();
    let [here, there] = [tip.next(repository)?, turn.next(repository)?];
    Ok(now == then && here.agent == there.agent && here.caller_turn_id == there.caller_turn_id)
}
