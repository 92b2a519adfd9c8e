//! Groups the actions of a plan, by kind or in plan order.

use std::collections::BTreeSet;

use crate::plan::Plan;
use crate::plan::action::shape::SummaryGroup;
use crate::plan::action::{ActionRow, ROWS};
use crate::workflow::user::ReviewRequest;

pub(super) struct ActionGroup {
    pub(super) row: &'static ActionRow,
    /// Count with unit, such as `2 files`.
    pub(super) number: String,
    /// The confinement of commands, in parentheses.
    pub(super) how: String,
    /// Indices in the plan.
    pub(super) actions: Vec<usize>,
    /// Without duplicates.
    pub(super) targets: Vec<String>,
}

/// Groups all actions by kind. File changes and commands come first.
pub(super) fn group_by_kind(proposal: &ReviewRequest<'_>) -> Vec<ActionGroup> {
    let plan = proposal.plan;
    let mut rows = ROWS.to_vec();
    rows.sort_by_key(|row| row.group);
    let of_row = |row: &'static ActionRow| {
        let actions = (0..plan.actions.len()).filter(|&at| plan.actions[at].kind.row() == row);
        action_group(proposal, actions.collect())
    };

    rows.into_iter().filter_map(of_row).collect()
}

/// Groups consecutive actions of the same kind, in plan order.
pub(super) fn group_in_order(proposal: &ReviewRequest<'_>) -> Vec<ActionGroup> {
    let actions: Vec<usize> = (0..proposal.plan.actions.len()).collect();
    let row = |at: usize| proposal.plan.actions[at].kind.row();
    let runs = actions.chunk_by(|&one, &next| row(one) == row(next));
    let mut groups: Vec<ActionGroup> = runs
        .filter_map(|run| action_group(proposal, run.to_vec()))
        .collect();

    // Mention the confinement only once.
    let commands = groups.iter_mut().filter(|group| !group.how.is_empty());
    commands.skip(1).for_each(|group| group.how.clear());
    groups
}

/// `None` if there are no actions.
fn action_group(proposal: &ReviewRequest<'_>, actions: Vec<usize>) -> Option<ActionGroup> {
    let plan = proposal.plan;
    let row = plan.actions[*actions.first()?].kind.row();
    let number = count_actions(plan, row, &actions);
    let (one, many) = row.unit;
    let mut targets: Vec<String> = Vec::new();
    for at in &actions {
        let target = plan.actions[*at].kind.target();
        if !targets.contains(&target) {
            targets.push(target);
        }
    }

    Some(ActionGroup {
        row,
        number: format!("{number} {}", if number == 1 { one } else { many }),
        how: match row.group {
            SummaryGroup::Commands => format!(" ({})", proposal.confinement),
            _ => String::new(),
        },
        actions,
        targets,
    })
}

/// Two actions on the same file count once.
fn count_actions(plan: &Plan, row: &ActionRow, actions: &[usize]) -> usize {
    if !row.counts_targets {
        return actions.len();
    }
    let targets = actions.iter().map(|&at| plan.actions[at].kind.target());
    targets.collect::<BTreeSet<_>>().len()
}
