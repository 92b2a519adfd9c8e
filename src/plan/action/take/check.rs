//! Validates a TAKE: its bytes exist, and the path is unchanged since the agent started.

use super::TakePath;
use super::parse::HINT;
use crate::plan::action::Action;
use crate::plan::state::FileState;
use crate::plan::validate::world::Found;
use crate::plan::validate::{Judge, Mistake};
use crate::text::visible::visible;

pub(super) fn check(judge: &mut Judge<'_>, action: &Action, take: &TakePath) -> anyhow::Result<()> {
    let found = judge.world.look(&take.path)?;
    let there = judge.world.state(&take.path)?;
    if let Some(mistake) = in_the_way(take, &found, there.as_ref()) {
        judge.miss(action, action.line, mistake);
    }

    let after = match after(judge, take) {
        Ok(after) => after,
        Err(message) => {
            // Not `miss`: no command can produce the bytes.
            judge.refuse(action, action.line, Mistake::new(message, HINT));
            return Ok(());
        }
    };

    let twin = take
        .becomes
        .as_ref()
        .and_then(|_| judge.world.twins.add(&take.path));
    let step = judge.step();
    step.twin = twin.map(|(_, other)| other);
    step.before = there.map(|state| state.content);
    if !step.wrong {
        step.after = after.as_ref().map(|state| state.content.clone());
        step.removed = after.is_none();
    }
    let is_gone = after.is_none();
    // Later actions see the result even if this one is rejected, so that they don't report
    // follow-up errors.
    judge.world.take(&take.path, after);
    if is_gone {
        judge.world.forget_name(&take.path)?;
    }
    Ok(())
}

fn in_the_way(take: &TakePath, found: &Found, there: Option<&FileState>) -> Option<Mistake> {
    let path = visible(take.path.as_str());
    // A link is an obstacle for other actions, but TAKE replaces it as a whole (P40).
    if let Some(obstacle) = found.obstacle().filter(|_| there.is_none()) {
        let hint = "move it out of the way, or leave this action out";
        return Some(Mistake::new(format!("`{path}` {obstacle}"), hint));
    }

    let known = there.map(FileState::known);
    let what = match (&take.was, &known) {
        (was, there) if was == there => return None,
        (None, _) => "is there now, and was not",
        (Some(_), None) => "was deleted",
        (Some(_), Some(_)) => "is not what it was",
    };
    let message = format!("`{path}` {what} when this plan was made");
    let hint = "leave this action out, or restore the file and plan again";
    Some(Mistake::new(message, hint))
}

/// Returns the new state, or a message if the bytes are not available.
fn after(judge: &Judge<'_>, take: &TakePath) -> Result<Option<FileState>, String> {
    let Some(state) = &take.becomes else {
        return Ok(None);
    };
    let content = state.content(&|name| judge.world.facts.taken(name))?;
    Ok(Some(FileState {
        mode: state.mode,
        content,
    }))
}
