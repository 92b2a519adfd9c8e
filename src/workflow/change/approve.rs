//! The step `approve`: the user overrides a challenge or review and gives a reason for the record.

use super::challenge::require_usable;
use super::{ChangeStep, allow, now};
use crate::change::entry::ChangeEntry;
use crate::change::error::ChangeError;
use crate::change::id::ChangeId;
use crate::change::phase::{ChangeEvent as Happened, ChangePhase};
use crate::change::store::Change;
use crate::change::tasks;
use crate::workflow::change;
use crate::workflow::change::open_change;
use crate::workflow::hint::error_with_hint;
use crate::workflow::project::Project;
use crate::workflow::user::User;

/// Approves a change despite its verdict, or without one.
pub fn approve(
    project: &Project,
    id: &ChangeId,
    reason: &str,
    user: &mut dyn User,
) -> anyhow::Result<Change> {
    let reason = reason.trim();
    let _lock = change::lock_change(project, id, "approve")?;
    project.recover(user)?;
    let mut change = open_change(project, id)?;
    allow(&change, Happened::Approve, "approve")?;

    if reason.is_empty() {
        return Err(error_with_hint(
            "an approval against a verdict needs a reason",
            format!("`teddy change approve {id} --reason '<why>'` says it"),
        ));
    }

    require_usable(id, &change.documents, user)?;
    if change.state.phase == ChangePhase::Implementing {
        let open = tasks::read(change.documents.text(tasks::FILE))
            .iter()
            .filter(|task| !task.is_done)
            .count();
        anyhow::ensure!(
            open == 0,
            ChangeError::OpenTasks {
                id: id.clone(),
                open
            }
        );
    }

    change.state.seal(&change.documents, &now());
    let about = if change.state.phase == ChangePhase::Implementing {
        "review"
    } else {
        "challenge"
    };

    let reason = crate::text::redaction::redact(reason).into_owned();
    let lines = reason.lines().map(str::to_owned).collect();
    let entry = ChangeEntry {
        about: Some(about.to_owned()),
        reason: Some(reason.clone()),
        ..ChangeEntry::of("approve", &now())
    };
    let title = format!(
        "Approve in place of the {about}: {}",
        reason.lines().next().unwrap_or_default()
    );

    change::save(
        project,
        &mut change,
        ChangeStep {
            event: Happened::Approve,
            command: "approve",
            entry,
            title,
            lines,
        },
    )?;
    Ok(change)
}
