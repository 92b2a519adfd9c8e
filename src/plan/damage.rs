//! Damage that a plan does to files, as its simulation shows it.

use std::collections::BTreeMap;

use super::Plan;
use super::action::Action;
use super::validate::{Simulation, Step};
use crate::text::damage::{Damage, FileChange, damage_to_files};

/// Damage to a file, with the last action on the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanDamage {
    pub action: usize,
    pub path: String,
    pub damage: Damage,
}

/// Returns the damage by a whole plan. Several actions on a file count as one change.
pub fn plan_damage(plan: &Plan, simulation: &Simulation) -> Vec<PlanDamage> {
    let mut at_path: BTreeMap<&str, usize> = BTreeMap::new();
    let mut files: Vec<FileChange<'_>> = Vec::new();
    let mut last_actions: Vec<usize> = Vec::new();
    for (index, action) in plan.actions.iter().enumerate() {
        let Some(change) = change_by(action, simulation.step(index)) else {
            continue;
        };
        if let Some(&at) = at_path.get(change.path) {
            let first = &mut files[at];
            first.after = change.after;
            first.mode = change.mode.or(first.mode.take());
            last_actions[at] = index;
        } else {
            at_path.insert(change.path, files.len());
            files.push(change);
            last_actions.push(index);
        }
    }
    let found = damage_to_files(&files).into_iter();
    found
        .map(|(at, damage)| PlanDamage {
            action: last_actions[at],
            path: files[at].path.to_owned(),
            damage,
        })
        .collect()
}

/// Returns the damage by one action, without renames.
pub fn action_damage(action: &Action, step: &Step) -> Vec<Damage> {
    let change = change_by(action, step);
    let found = change.map(|change| damage_to_files(&[change]));
    let found = found.unwrap_or_default().into_iter();
    found.map(|(_, damage)| damage).collect()
}

/// `None` if the action changes no file, or its result is unknown.
fn change_by<'a>(action: &'a Action, step: &'a Step) -> Option<FileChange<'a>> {
    let path = action.kind.path()?;
    (step.after.is_some() || step.removed).then(|| FileChange {
        path: path.as_str(),
        before: step.before.as_deref(),
        after: step.after.as_deref(),
        mode: action.kind.mode_damage(),
        facts: step.facts,
    })
}
