//! Validates an edited plan and finds out what prevents it from running.

use super::EditedPlan;
use crate::plan::Plan;
use crate::plan::diagnostic::Diagnostic;
use crate::ui::checklist::{Checklist, Item, ItemPart};
use crate::workflow::user::{Approved, ReviewRequest};

impl EditedPlan {
    /// Validates what is switched on, marks items that can't run, and updates the effect of each
    /// action.
    pub fn validate(
        &mut self,
        list: &mut Checklist,
        proposal: &ReviewRequest<'_>,
    ) -> anyhow::Result<()> {
        let (plan, positions) = without_disabled(&self.approved(list));
        let simulation = (proposal.revise)(&plan)?;
        for (step, &at) in simulation.steps.into_iter().zip(&positions) {
            self.steps[at] = step;
        }

        for item in &mut list.items {
            item.problem = None;
            item.pairs.iter_mut().for_each(|pair| pair.problem = None);
        }

        self.mistakes = simulation
            .diagnostics
            .into_iter()
            .filter_map(|found| Some((self.locate(&positions, &found)?, found)))
            .collect();
        for (part, diagnostic) in &self.mistakes {
            self.mark(list, *part, diagnostic);
        }

        Ok(())
    }

    /// Switches off everything that no longer applies to the current files, and what depends on it.
    /// Returns a reason for each.
    pub fn leave_out_misfits(
        &mut self,
        list: &mut Checklist,
        proposal: &ReviewRequest<'_>,
    ) -> anyhow::Result<Vec<String>> {
        let mut reported = Vec::new();
        loop {
            self.validate(list, proposal)?;
            let mistakes = self.mistakes.clone();
            // Each round switches off at least one item or pair, so this terminates. The filter
            // does so as a side effect.
            let removed: Vec<&(ItemPart, Diagnostic)> = mistakes
                .iter()
                .filter(|(part, _)| list.items.iter_mut().any(|item| switch_off(item, *part)))
                .collect();
            if removed.is_empty() {
                return Ok(reported);
            }

            for (part, diagnostic) in removed {
                self.misfits.insert(*part);
                reported.push(describe_misfit(diagnostic));
            }
        }
    }

    /// Item that a diagnostic is about. Defaults to the first running action.
    fn locate(&self, running: &[usize], diagnostic: &Diagnostic) -> Option<ItemPart> {
        let memo = self
            .plan
            .memos
            .iter()
            .position(|memo| memo.line == diagnostic.line && diagnostic.action.is_empty());
        let above = |at: &&usize| self.plan.actions[**at].line <= diagnostic.line;
        let action = || running.iter().rfind(above).or(running.first()).copied();

        memo.map(ItemPart::Memo)
            .or_else(|| action().map(ItemPart::Action))
    }

    fn mark(&self, list: &mut Checklist, part: ItemPart, diagnostic: &Diagnostic) {
        let message = self.describe(part, diagnostic);
        let Some(item) = list.items.iter_mut().find(|item| item.part == part) else {
            return;
        };
        let pair = match part {
            ItemPart::Action(at) => self.plan.actions[at].kind.pairs().and_then(|pairs| {
                let mut lines = pairs.iter().map(|pair| pair.line);
                lines.rposition(|line| line <= diagnostic.line)
            }),
            ItemPart::Memo(_) => None,
        };

        match pair
            .and_then(|pair| item.pairs.get_mut(pair))
            .filter(|pair| pair.on)
        {
            Some(pair) => pair.problem = Some(message),
            None => item.problem = Some(message),
        }
    }

    /// Message for the user. An action that was not touched fails only because of others.
    fn describe(&self, part: ItemPart, diagnostic: &Diagnostic) -> String {
        let message = diagnostic.message.lines().next().unwrap_or_default();
        let ItemPart::Action(at) = part else {
            return message.to_owned();
        };
        let kind = &self.plan.actions[at].kind;
        let name = format!("{} {}", kind.name(), kind.target());

        if self.edited.contains(&part) || self.misfits.contains(&part) {
            format!("{name}: {message}")
        } else {
            format!("{name} depends on what is switched off or changed: {message}")
        }
    }
}

/// Switches off the marked pairs, or else the item. Returns whether the item was on.
fn switch_off(item: &mut Item, part: ItemPart) -> bool {
    if item.part != part || !item.on {
        return false;
    }

    let failing = item.pairs.iter_mut().filter(|pair| pair.problem.is_some());
    let pairs = failing.map(|pair| pair.on = false).count();
    if item.problem.is_some() || pairs == 0 || item.pairs.iter().all(|pair| !pair.on) {
        item.on = false;
    }
    true
}

fn describe_misfit(diagnostic: &Diagnostic) -> String {
    let why = diagnostic.message.lines().next().unwrap_or_default();
    let action_name = Some(diagnostic.action.as_str()).filter(|action| !action.is_empty());
    format!("{}: {why}", action_name.unwrap_or("memos"))
}

/// Returns the plan without what is switched off, and the original index of each remaining action.
pub(super) fn without_disabled(approved: &Approved) -> (Plan, Vec<usize>) {
    let mut plan = approved.plan.clone();
    let positions: Vec<usize> = (0..plan.actions.len())
        .filter(|&at| approved.actions[at])
        .collect();
    let mut actions = approved.actions.iter();
    plan.actions.retain(|_| *actions.next().unwrap_or(&true));
    let mut memos = approved.memos.iter();

    plan.memos.retain(|_| *memos.next().unwrap_or(&true));
    (plan, positions)
}
