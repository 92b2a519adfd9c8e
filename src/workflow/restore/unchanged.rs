//! Detects restores that change nothing. They are not recorded.

use super::record::RestoreTurn;
use crate::session::artifact;
use crate::session::meta::RestoreCommand;
use crate::session::turn::{Turn, in_next};
use crate::workflow::context::requests;
use crate::workflow::project::Project;
use crate::workspace::drift::find_unapplied;

/// Returns whether a restore would change no file, turn or context. An undo or redo always changes the
/// position in the session.
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

    let stripped = writing.strip_waiting_message(&draft);
    let now = requests::requests(project, tip, &stripped)?.write();
    let then = requests::requests_back_at(project, (tip, &stripped), turn)?.write();
    let [current, there] = [tip.next(repository)?, turn.next(repository)?];
    Ok(now == then
        && current.agent == there.agent
        && current.caller_turn_id == there.caller_turn_id)
}
