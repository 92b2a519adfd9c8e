//! Damage that a plan does to files, as its simulation shows it.

use std::collections::BTreeMap;

use super::Plan;
use super::action::Action;
use super::state::ModeChange;
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
    // For each file, the change of its mode and the last action on it.
    let mut changes: Vec<(ModeChange, usize)> = Vec::new();
    for (index, action) in plan.actions.iter().enumerate() {
        let Some(change) = change_by(action, simulation.step(index)) else {
            continue;
        };
        let mode = action.kind.mode_change();
        if let Some(&at) = at_path.get(change.path) {
            changes[at] = (changes[at].0.then(mode), index);
            files[at].after = change.after;
            files[at].mode = changes[at].0.damage();
        } else {
            at_path.insert(change.path, files.len());
            files.push(change);
            changes.push((mode, index));
        }
    }
    let found = damage_to_files(&files).into_iter();
    found
        .map(|(at, damage)| PlanDamage {
            action: changes[at].1,
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
        mode: action.kind.mode_change().damage(),
        facts: step.facts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::action::ActionKind;
    use crate::plan::action::take::{TakePath, TakenState};
    use crate::plan::state::{Imprint, KnownState, StateMode};
    use crate::text::path::RepoPath;

    /// Takes `a` from mode to mode, each time with other bytes.
    #[track_caller]
    fn check(modes: &[StateMode], expected: &[Damage]) {
        let take = |pair: &[StateMode]| Action {
            line: 1,
            fields: Vec::new(),
            kind: ActionKind::TakePath(TakePath {
                path: RepoPath::parse("a").unwrap(),
                becomes: Some(TakenState {
                    mode: pair[1],
                    artifact: "taken/01".to_owned(),
                    imprint: Imprint::of(b"x"),
                }),
                previous: Some(KnownState {
                    mode: pair[0],
                    imprint: Imprint::of(b"x"),
                }),
                keep_bytes: false,
            }),
        };
        let plan = Plan {
            actions: modes.windows(2).map(take).collect(),
            ..Plan::default()
        };
        let step = Step {
            before: Some(b"x".to_vec()),
            after: Some(b"x".to_vec()),
            ..Step::default()
        };
        let simulation = Simulation {
            steps: vec![step; plan.actions.len()],
            ..Simulation::default()
        };
        let found = plan_damage(&plan, &simulation).into_iter();
        let found: Vec<Damage> = found.map(|found| found.damage).collect();
        assert_eq!(found, expected, "{modes:?}");
    }

    /// Regression: only the last action counted.
    #[test]
    fn the_mode_changes_of_all_actions_are_combined() {
        use StateMode::{Executable, Link, Plain};
        check(&[Plain, Executable], &[Damage::BecomesExecutable]);
        check(&[Plain, Executable, Plain], &[]);
        check(&[Plain, Link, Executable], &[Damage::BecomesExecutable]);
        check(&[Link, Plain, Executable], &[Damage::LinkReplaced]);
    }
}
