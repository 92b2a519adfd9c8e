//! What waits for the next turn, carried over a turn that takes no part in it: a plan, a message,
//! context lists.

use crate::session::draft::Draft;
use crate::session::meta::ModelUse;
use crate::session::turn::Turn;
use crate::workflow::adopt::is_own_draft;
use crate::workflow::project::Project;

/// Returns what waits behind the newest turn. What somebody else made does not count: nobody here
/// has looked at it.
///
/// # Errors
/// If the repository cannot be read.
pub fn waiting(project: &Project, tip: &Turn) -> anyhow::Result<Option<Draft>> {
    let draft = project.store().draft(tip)?;
    let is_kept = draft.commit.is_some() && is_own_draft(project, tip, &draft);
    Ok(is_kept.then_some(draft))
}

/// Lets it wait behind the turn that was recorded since.
///
/// # Errors
/// If the repository cannot be read or written.
pub fn carry(project: &Project, before: &Turn, waiting: Draft) -> anyhow::Result<()> {
    let store = project.store();
    let tip = store.tip(&before.session)?;
    let fresh = store.draft(&tip)?;
    let mut draft = Draft {
        commit: fresh.commit,
        ..waiting
    };

    draft.meta.number = fresh.meta.number;
    draft.meta.parent_turn_id = fresh.meta.parent_turn_id;
    // The turn that was recorded has paid for it.
    draft.meta.spent = None;
    draft.meta.model = draft.meta.model.map(|model| ModelUse {
        asked: model.asked,
        answered: model.answered,
        cost: model.cost.map(|_| 0.0),
        ..ModelUse::default()
    });

    draft.begin();
    store.save_draft(&tip, &mut draft)
}
