//! Decides whether a model would continue after a turn without a new message.

use crate::plan;
use crate::session::artifact;
use crate::session::meta::Status;
use crate::session::turn::Turn;
use crate::workflow::project::Project;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RemainingWork {
    /// The model only read, handed over or failed. It continues by itself.
    Work,
    /// Its plan was rejected too often. The user can let it try again.
    Retry,
    Nothing,
}

pub(super) fn remaining_work(project: &Project, tip: &Turn) -> anyhow::Result<RemainingWork> {
    if tip.meta.question {
        return Ok(RemainingWork::Nothing);
    }

    Ok(match tip.meta.status {
        Status::Failed => RemainingWork::Work,
        Status::Rejected => RemainingWork::Retry,
        Status::Executed if !plan_changed_files(project, tip)? => RemainingWork::Work,
        _ => RemainingWork::Nothing,
    })
}

/// Returns `true` if the plan, as it ran, could change files and did not hand over.
fn plan_changed_files(project: &Project, tip: &Turn) -> anyhow::Result<bool> {
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
