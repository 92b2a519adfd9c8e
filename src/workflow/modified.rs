//! What the user changed in a plan: as differences against the proposal, and as the plan that ran.

use crate::plan::Plan;
use crate::plan::action::Kind;
use crate::plan::render;
use crate::text::diff::unified;
use crate::workflow::user::Approved;

/// Returns a difference for each action that runs otherwise than proposed, by its index.
pub fn differences(proposed: &Plan, approved: &Approved) -> Vec<(usize, String)> {
    let pairs = proposed
        .actions
        .iter()
        .zip(&approved.plan.actions)
        .enumerate();
    let changed = pairs.filter(|(_, (before, after))| before != after);
    let alone = |plan: &Plan, index: usize| {
        render(&Plan {
            actions: vec![plan.actions[index].clone()],
            memos: Vec::new(),
            ..plan.clone()
        })
    };
    changed
        .map(|(index, _)| {
            (
                index,
                unified(
                    &alone(proposed, index),
                    &alone(&approved.plan, index),
                    ("proposed", "as run"),
                ),
            )
        })
        .collect()
}

/// Returns the text of what runs, where that is not the whole plan as proposed.
pub fn as_run(proposed: &Plan, approved: &Approved) -> Option<String> {
    if *approved == Approved::all(proposed) {
        return None;
    }
    let has_work = |kind: &Kind| !matches!(kind, Kind::Edit(edit) if edit.pairs.is_empty());
    let actions = approved
        .plan
        .actions
        .iter()
        .zip(&approved.actions)
        .filter(|(action, chosen)| **chosen && has_work(&action.kind));
    let memos = approved
        .plan
        .memos
        .iter()
        .zip(&approved.memos)
        .filter(|(_, chosen)| **chosen);
    Some(render(&Plan {
        actions: actions.map(|(action, _)| action.clone()).collect(),
        memos: memos.map(|(memo, _)| memo.clone()).collect(),
        ..approved.plan.clone()
    }))
}
