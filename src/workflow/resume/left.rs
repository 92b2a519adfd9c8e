//! What a turn leaves to do: whether the model would go on by itself.

use crate::plan;
use crate::session::artifact;
use crate::session::meta::Status;
use crate::session::turn::Turn;
use crate::workflow::project::Project;

/// What a turn leaves to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeftToDo {
    /// The model has only looked, handed over, or met a failure: it goes on without further words.
    Work,
    /// Its plan was rejected as often as may be: a person may let it try again.
    Retry,
    /// Nothing that the model knows of.
    Nothing,
}

/// Returns what the newest turn of a session leaves to do, as it is recorded.
///
/// # Errors
/// Where the repository cannot be read.
pub(super) fn left_to_do(project: &Project, tip: &Turn) -> anyhow::Result<LeftToDo> {
    if tip.meta.question {
        return Ok(LeftToDo::Nothing);
    }

    Ok(match tip.meta.status {
        Status::Failed => LeftToDo::Work,
        Status::Rejected => LeftToDo::Retry,
        Status::Executed if !has_worked(project, tip)? => LeftToDo::Work,
        _ => LeftToDo::Nothing,
    })
}

/// Returns whether the plan of a turn, as it ran, could change files and handed over to nobody.
fn has_worked(project: &Project, tip: &Turn) -> anyhow::Result<bool> {
    let approved = tip.text(&project.repository, artifact::APPROVED)?;
    let text = match approved {
        Some(text) => text,
        None => tip
            .text(&project.repository, artifact::PLAN)?
            .unwrap_or_default(),
    };

    let (plan, _) = plan::parse(&text);
    let mut kinds = plan.actions.iter().map(|action| &action.kind);
    let hands_over = kinds.clone().any(|kind| kind.hands_over());
    Ok(!hands_over && kinds.any(|kind| kind.changes_files()))
}
