//! What the user changed in a plan: as differences against the proposal, and as the plan that ran.

use crate::plan::Plan;
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
    Some(render(&Plan {
        actions: approved.running().cloned().collect(),
        memos: approved.memos().cloned().collect(),
        ..approved.plan.clone()
    }))
}
