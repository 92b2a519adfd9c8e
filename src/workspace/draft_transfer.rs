//! Carries a draft (plan, message, context lists) over a turn that does not use it, such as a
//! restore. A draft that another user made is left behind.

use super::Checkout;
use crate::plan;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::ModelUse;
use crate::session::turn::Turn;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferScope {
    Whole,
    /// The plan, the message and the model's answer, with the context of the restore.
    Answer,
}

/// `None` if another user made the draft: this one never saw it.
pub fn waiting(checkout: &Checkout<'_>, tip: &Turn) -> anyhow::Result<Option<Draft>> {
    let draft = checkout.store().draft(tip)?;
    let is_own = checkout.journal().owns_draft(&tip.session, &draft);
    Ok((draft.commit.is_some() && is_own).then_some(draft))
}

/// The title of a waiting plan that another user made.
pub fn foreign_plan(checkout: &Checkout<'_>, tip: &Turn) -> anyhow::Result<Option<String>> {
    let draft = checkout.store().draft(tip)?;
    let is_own = checkout.journal().owns_draft(&tip.session, &draft);
    let plan = draft.artifacts.text_or_empty(artifact::PLAN);
    Ok((draft.is_planned() && !is_own).then(|| plan::parse(&plan).0.title))
}

/// Returns `false` without saving if the draft has only a context and the restore has another one.
pub fn transfer(
    checkout: &Checkout<'_>,
    before: &Turn,
    mut waiting: Draft,
    scope: TransferScope,
) -> anyhow::Result<bool> {
    let tip = checkout.store().tip(&before.session)?;
    let fresh = checkout.store().draft(&tip)?;
    if scope == TransferScope::Answer {
        let is_context = !waiting.is_planned() && waiting.message().is_none();
        if is_context && waiting.meta.failure.is_none() {
            return Ok(false);
        }
        for name in [
            artifact::TURN_CONTEXT,
            artifact::SESSION_CONTEXT,
            artifact::SYSTEM_PROMPT,
        ] {
            let text = fresh.artifacts.text_or_empty(name);
            waiting.artifacts.insert(name, text);
        }
        // The restore has recorded which requests are undone.
        waiting.artifacts.remove(artifact::REQUESTS);
    }

    let mut draft = Draft {
        commit: fresh.commit,
        ..waiting
    };

    draft.meta.number = fresh.meta.number;
    draft.meta.parent_turn_id = fresh.meta.parent_turn_id;
    // The recorded turn has already accounted for the cost.
    draft.meta.spent = None;
    draft.meta.model = draft.meta.model.map(ModelUse::accounted);
    draft.begin();
    checkout.store().save_draft(&tip, &mut draft)?;
    Ok(true)
}
