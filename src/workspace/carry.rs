//! A draft that waits for the next turn, carried over a turn that takes no part in it: a plan, a
//! message, context lists.

use crate::session::draft::Draft;
use crate::session::meta::ModelUse;
use crate::session::turn::Turn;
use crate::workspace::Checkout;

/// Returns the draft behind the newest turn; `None` if another user made it: this one never saw it.
pub fn waiting(checkout: &Checkout<'_>, tip: &Turn) -> anyhow::Result<Option<Draft>> {
    let draft = checkout.store().draft(tip)?;
    let own = checkout.journal().own_drafts(&tip.session);
    let is_kept = draft.commit.is_some_and(|commit| own.contains(&commit));
    Ok(is_kept.then_some(draft))
}

/// Saves a draft behind the turn that was recorded since.
pub fn carry(checkout: &Checkout<'_>, before: &Turn, waiting: Draft) -> anyhow::Result<()> {
    let store = checkout.store();
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
