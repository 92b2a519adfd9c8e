//! Carries a draft (plan, message, context lists) over a turn that does not use it, such as a
//! restore.

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

/// Saves the draft behind the turn that was recorded since.
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
    // The recorded turn has already accounted for the cost.
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
