//! Carries a draft (plan, message, context lists) over a turn that does not use it, such as a
//! restore.

use crate::plan;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::ModelUse;
use crate::session::turn::Turn;
use crate::workflow::adopt::is_own_draft;
use crate::workflow::project::Project;

/// Returns the draft behind the newest turn. Ignores a draft of someone else's: this user has not
/// reviewed it.
pub fn waiting(project: &Project, tip: &Turn) -> anyhow::Result<Option<Draft>> {
    let draft = project.store().draft(tip)?;
    let is_kept = draft.commit.is_some() && is_own_draft(project, tip, &draft);
    Ok(is_kept.then_some(draft))
}

/// What of a turn in progress is carried over a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// All of it.
    Whole,
    /// The plan, the message and what the model answered, with the context that the restore brought.
    Answer,
}

/// Lets it wait behind the turn that was recorded since.
///
/// # Errors
/// If the repository cannot be read or written.
pub fn carry(project: &Project, before: &Turn, waiting: Draft) -> anyhow::Result<()> {
    let store = project.store();
    let tip = store.tip(&before.session)?;
    let fresh = store.draft(&tip)?;
    carry_behind(project, &tip, &fresh, waiting)
}

/// As [`carry`], for a restore; returns the title of the plan that waits, if one does. A turn in progress
/// that is nothing but a context waits no longer if the restore brought another one.
///
/// # Errors
/// As for [`carry`].
pub fn carry_over_restore(
    project: &Project,
    before: &Turn,
    mut waiting: Draft,
    carried: Carried,
) -> anyhow::Result<Option<String>> {
    let store = project.store();
    let tip = store.tip(&before.session)?;
    let fresh = store.draft(&tip)?;
    if carried == Carried::Answer {
        let is_context = !waiting.is_planned() && waiting.message().is_none();
        if is_context && waiting.meta.failure.is_none() {
            return Ok(None);
        }
        for name in [
            artifact::TURN_CONTEXT,
            artifact::SESSION_CONTEXT,
            artifact::SYSTEM_PROMPT,
        ] {
            let text = fresh.artifacts.text_or_empty(name);
            waiting.artifacts.put(name, text);
        }
        // The restore has recorded which requests are undone.
        waiting.artifacts.remove(artifact::REQUESTS);
    }

    let plan = waiting.artifacts.text_or_empty(artifact::PLAN);
    let title = waiting
        .is_planned()
        .then(|| plan::parse(&plan).0.title.clone());
    carry_behind(project, &tip, &fresh, waiting)?;
    Ok(title)
}

/// Saves a turn in progress in the place of the one that a turn prepared.
fn carry_behind(
    project: &Project,
    tip: &Turn,
    fresh: &Draft,
    waiting: Draft,
) -> anyhow::Result<()> {
    let mut draft = Draft {
        commit: fresh.commit,
        ..waiting
    };

    draft.meta.number = fresh.meta.number;
    draft.meta.parent_turn_id = fresh.meta.parent_turn_id;
    // The recorded turn has already accounted for the cost.
    draft.meta.spent = None;
    draft.meta.model = draft.meta.model.map(|model| ModelUse {
        asked: model.asked,
        answered: model.answered,
        cost: model.cost.map(|_| 0.0),
        ..ModelUse::default()
    });

    draft.begin();
    project.store().save_draft(tip, &mut draft)
}
