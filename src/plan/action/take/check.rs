//! Validates a TAKE: its bytes exist, and the path is unchanged since the agent started.

use super::TakePath;
use super::parse::TAKE_HINT;
use crate::plan::action::Action;
use crate::plan::state::FileState;
use crate::plan::validate::simulated_files::Lookup;
use crate::plan::validate::{Mistake, Validator};
use crate::text::sanitize::sanitize_line;

pub(super) fn check_take(
    validator: &mut Validator<'_>,
    action: &Action,
    take: &TakePath,
) -> anyhow::Result<()> {
    let entry = validator.files.look_up(&take.path)?;
    let current = validator.files.state(&take.path)?;
    if let Some(mistake) = find_obstacle(take, &entry, current.as_ref()) {
        validator.refuse_unless_fixable(action, action.line, mistake);
    }

    let after = match state_after(validator, take) {
        Ok(after) => after,
        Err(message) => {
            // Not `miss`: no command can produce the bytes.
            validator.refuse(action, action.line, Mistake::new(message, TAKE_HINT));
            return Ok(());
        }
    };

    let collision = take
        .becomes
        .as_ref()
        .and_then(|_| validator.files.case_collisions.add(&take.path));
    let step = validator.step();
    step.case_collision = collision.map(|(_, other)| other);
    step.before = current.map(|state| state.bytes);
    if !step.wrong {
        step.after = after.as_ref().map(|state| state.bytes.clone());
        step.removed = after.is_none();
    }
    let is_gone = after.is_none();
    // Later actions see the result even if this one is rejected, so that they don't report
    // follow-up errors.
    validator.files.set_state(&take.path, after);
    if is_gone {
        validator.files.forget_name(&take.path)?;
    }
    Ok(())
}

fn find_obstacle(take: &TakePath, entry: &Lookup, current: Option<&FileState>) -> Option<Mistake> {
    let path = sanitize_line(take.path.as_str());
    // A link is an obstacle for other actions, but TAKE replaces it as a whole (P40).
    if let Some(obstacle) = entry.obstacle().filter(|_| current.is_none()) {
        let hint = "move it out of the way, or leave this action out";
        return Some(Mistake::new(format!("`{path}` {obstacle}"), hint));
    }

    let known_state = current.map(FileState::known_state);
    let change = match (&take.previous, &known_state) {
        (expected, actual) if expected == actual => return None,
        (None, _) => "is there now, and was not",
        (Some(_), None) => "is missing, and existed",
        (Some(_), Some(_)) => "is not what it was",
    };
    let message = format!("`{path}` {change} when this plan was made");
    let hint = "leave this action out, or restore the file and plan again";
    Some(Mistake::new(message, hint))
}

/// Returns the new state, or a message if the bytes are not available.
fn state_after(validator: &Validator<'_>, take: &TakePath) -> Result<Option<FileState>, String> {
    let Some(state) = &take.becomes else {
        return Ok(None);
    };
    let bytes = state.load_bytes(&|name| validator.files.facts.taken_bytes(name))?;
    Ok(Some(FileState {
        mode: state.mode,
        bytes,
    }))
}
