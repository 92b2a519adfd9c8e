//! Renders what the user changed in a plan: diffs against the proposal, and the plan that ran.

use crate::plan::Plan;
use crate::plan::action::{Action, ActionKind};
use crate::plan::render;
use crate::plan::run::file_difference;
use crate::plan::validate::{Simulation, Step};
use crate::session::report::Modification;
use crate::text::diff::unified;
use crate::workflow::user::Approved;

/// Returns the proposal for each changed action, by index: the proposed change of the file if both
/// versions write the same one, else a diff of the two actions.
pub fn modifications(
    proposed: &Plan,
    approved: &Approved,
    simulation: &Simulation,
) -> Vec<(usize, Modification)> {
    let pairs = proposed
        .actions
        .iter()
        .zip(&approved.plan.actions)
        .enumerate();
    let changed = pairs.filter(|(_, (before, after))| before != after);
    changed
        .map(|(index, (before, after))| {
            let same_file = before.kind.target() == after.kind.target();
            let file = proposed_file(&before.kind, simulation.step(index)).filter(|_| same_file);
            let action = || Modification::Action(diff_action(&proposed.actions, approved, index));
            (index, file.map_or_else(action, Modification::File))
        })
        .collect()
}

fn proposed_file(kind: &ActionKind, step: &Step) -> Option<String> {
    let path = kind.path()?;
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let (before, after) = (step.before.as_ref().map(text), text(step.after.as_ref()?));
    let change = file_difference(path, before.as_deref(), &after);
    (!step.provisional && !change.is_empty()).then_some(change)
}

fn diff_action(proposed: &[Action], approved: &Approved, index: usize) -> String {
    let alone = |actions: &[Action]| {
        render(&Plan {
            actions: vec![actions[index].clone()],
            memos: Vec::new(),
            ..approved.plan.clone()
        })
    };
    unified(
        &alone(proposed),
        &alone(&approved.plan.actions),
        ("proposed", "as run"),
    )
}

/// Text of the plan that runs; `None` if that is the complete proposal.
pub fn render_as_run(proposed: &Plan, approved: &Approved) -> Option<String> {
    if *approved == Approved::all(proposed) {
        return None;
    }

    Some(render(&Plan {
        actions: approved.running().cloned().collect(),
        memos: approved.memos().cloned().collect(),
        ..approved.plan.clone()
    }))
}
