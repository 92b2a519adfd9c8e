//! The actions of a plan in groups: as they are counted, and as they run.

use std::collections::BTreeSet;

use crate::plan::Plan;
use crate::plan::action::shape::SummaryGroup;
use crate::plan::action::{ActionRow, ROWS};
use crate::workflow::user::ReviewRequest;

/// Actions of one row of the table.
pub(super) struct ActionGroup {
    /// The row.
    pub(super) row: &'static ActionRow,
    /// How many they are: `2 files`.
    pub(super) number: String,
    /// What is to be known of all of them, in brackets.
    pub(super) how: String,
    /// Their indices.
    pub(super) actions: Vec<usize>,
    /// What they are about, each once.
    pub(super) targets: Vec<String>,
}

/// Returns the actions by row, as far as there are some: what changes files and what runs first.
pub(super) fn by_row(proposal: &ReviewRequest<'_>) -> Vec<ActionGroup> {
    let plan = proposal.plan;
    let mut rows = ROWS.to_vec();
    rows.sort_by_key(|row| row.group);
    let of_row = |row: &'static ActionRow| {
        let actions = (0..plan.actions.len()).filter(|&at| plan.actions[at].kind.row() == row);
        group(proposal, actions.collect())
    };

    rows.into_iter().filter_map(of_row).collect()
}

/// Returns the actions in the order of the plan, those of one row that follow each other together.
pub(super) fn in_order(proposal: &ReviewRequest<'_>) -> Vec<ActionGroup> {
    let actions: Vec<usize> = (0..proposal.plan.actions.len()).collect();
    let row = |at: usize| proposal.plan.actions[at].kind.row();
    let runs = actions.chunk_by(|&one, &next| row(one) == row(next));
    let mut groups: Vec<ActionGroup> = runs
        .filter_map(|run| group(proposal, run.to_vec()))
        .collect();

    // How commands are confined is said once.
    let commands = groups.iter_mut().filter(|group| !group.how.is_empty());
    commands.skip(1).for_each(|group| group.how.clear());
    groups
}

/// Returns a group of actions of one row; nothing if there are none.
fn group(proposal: &ReviewRequest<'_>, actions: Vec<usize>) -> Option<ActionGroup> {
    let plan = proposal.plan;
    let row = plan.actions[*actions.first()?].kind.row();
    let number = number_of(plan, row, &actions);
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

/// Returns how many things the actions of a row are about: a file that two of them change is one.
fn number_of(plan: &Plan, row: &ActionRow, actions: &[usize]) -> usize {
    if !row.counts_targets {
        return actions.len();
    }
    let targets = actions.iter().map(|&at| plan.actions[at].kind.target());
    targets.collect::<BTreeSet<_>>().len()
}
