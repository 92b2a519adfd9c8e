//! A proposal under the person's hands: the plan as changed so far, and what would run of it.
//!
//! Pure but for `look` and `judge`, which ask the snapshot of the proposal.

mod judgement;

use std::collections::{BTreeMap, BTreeSet};

use super::checklist::{Checklist, Item, ItemPart};
use super::style::{StyledLine, Tone};
use super::summary;
use crate::plan::Plan;
use crate::plan::action::edit::Pair;
use crate::plan::action::{Action, ActionKind};
use crate::plan::diagnostic::Diagnostic;
use crate::plan::memo;
use crate::plan::validate::Step;
use crate::text::resource::Resource;
use crate::workflow::user::{Approved, ResourceContent, ReviewRequest};

/// The columns of a label; no screen shows more, and the preview has it whole.
const MAX_LABEL: usize = 500;

/// The plan as the person has it.
#[derive(Debug, Clone)]
pub struct EditedPlan {
    /// The plan with every pair, switched off or not.
    pub plan: Plan,
    /// The plan as it was proposed.
    proposed: Plan,
    /// What each action would do, by the newest validation in which it took part.
    pub steps: Vec<Step>,
    /// What the person changed.
    pub edited: BTreeSet<ItemPart>,
    /// What no longer fits the files, since they changed under the review.
    pub misfits: BTreeSet<ItemPart>,
    /// Why things cannot run as they are, each with what it is about.
    pub mistakes: Vec<(ItemPart, Diagnostic)>,
    /// What the resources have that were looked at.
    pub seen: BTreeMap<Resource, ResourceContent>,
}

impl EditedPlan {
    /// Returns the proposal, unchanged.
    pub fn new(proposal: &ReviewRequest<'_>) -> EditedPlan {
        let mut steps = proposal.simulation.steps.clone();
        steps.resize(proposal.plan.actions.len(), Step::default());
        EditedPlan {
            plan: proposal.plan.clone(),
            proposed: proposal.plan.clone(),
            steps,
            edited: BTreeSet::new(),
            misfits: BTreeSet::new(),
            mistakes: Vec::new(),
            seen: BTreeMap::new(),
        }
    }

    /// Returns the items of the checklist, all switched on.
    pub fn items(&self) -> Vec<Item> {
        let memos = (0..self.plan.memos.len()).map(ItemPart::Memo);
        let actions = (0..self.plan.actions.len()).map(ItemPart::Action);
        memos.chain(actions).map(|part| self.item(part)).collect()
    }

    /// Returns an item, switched on.
    pub fn item(&self, part: ItemPart) -> Item {
        let (label, pairs) = match part {
            ItemPart::Memo(at) => (summary::memo(&self.plan.memos[at]), Vec::new()),
            ItemPart::Action(at) => {
                let kind = &self.plan.actions[at].kind;
                let name = StyledLine::of(Tone::Strong, &format!("{}:", kind.name()));
                (
                    name.with(Tone::Plain, &format!(" {}", kind.target())),
                    pairs(kind),
                )
            }
        };
        Item {
            modified: self.edited.contains(&part),
            ..Item::new(part, label.cut(MAX_LABEL), pairs)
        }
    }

    /// Takes an action as the person changed it.
    pub fn change(&mut self, index: usize, action: Action) {
        self.plan.actions[index] = action;
        self.edited.insert(ItemPart::Action(index));
    }

    /// Takes a memo as the person changed it.
    pub fn change_memo(&mut self, index: usize, memo: memo::MemoChange) {
        self.plan.memos[index] = memo;
        self.edited.insert(ItemPart::Memo(index));
    }

    /// Takes an item back to what was proposed.
    pub fn undo(&mut self, part: ItemPart) {
        match part {
            ItemPart::Memo(at) => self.plan.memos[at] = self.proposed.memos[at].clone(),
            ItemPart::Action(at) => self.plan.actions[at] = self.proposed.actions[at].clone(),
        }
        self.edited.remove(&part);
    }

    /// Takes over what was approved earlier of the same plan: the person's changes here, their
    /// switches in the list.
    pub fn take_over(&mut self, earlier: &Approved, list: &mut Checklist) {
        if (earlier.plan.actions.len(), earlier.plan.memos.len())
            != (self.plan.actions.len(), self.plan.memos.len())
        {
            return;
        }
        for item in &mut list.items {
            match item.part {
                ItemPart::Memo(at) => {
                    if earlier.plan.memos[at] != self.plan.memos[at] {
                        self.change_memo(at, earlier.plan.memos[at].clone());
                        *item = self.item(item.part);
                    }
                    item.on = earlier.memos[at];
                }
                ItemPart::Action(at) => {
                    let taken = &earlier.plan.actions[at];
                    if !switched(&self.plan.actions[at].kind, &taken.kind, item)
                        && *taken != self.plan.actions[at]
                    {
                        self.change(at, taken.clone());
                        *item = self.item(item.part);
                    }

                    item.on = earlier.actions[at];
                }
            }
        }
    }

    /// Looks at the resource of an action, once.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn look(&mut self, part: ItemPart, proposal: &ReviewRequest<'_>) -> anyhow::Result<()> {
        let ItemPart::Action(at) = part else {
            return Ok(());
        };
        let Some(resource) = self.plan.actions[at].kind.resource() else {
            return Ok(());
        };
        if !self.seen.contains_key(resource) {
            let seen = (proposal.look)(resource)?;
            self.seen.insert(resource.clone(), seen);
        }

        Ok(())
    }

    /// Returns the plan that runs as the list is switched, without what is switched off.
    pub fn running_plan(&self, list: &Checklist) -> Plan {
        judgement::running(&self.approved(list)).0
    }

    /// Returns what runs as the list is switched.
    pub fn approved(&self, list: &Checklist) -> Approved {
        let mut approved = Approved::all(&self.plan);
        let mut modified: BTreeSet<usize> = self
            .edited
            .iter()
            .filter_map(|part| {
                if let ItemPart::Action(at) = part {
                    Some(*at)
                } else {
                    None
                }
            })
            .collect();
        for item in &list.items {
            match item.part {
                ItemPart::Memo(at) => approved.memos[at] = item.on,
                ItemPart::Action(at) => {
                    approved.actions[at] = item.on;
                    if item.on && !item.is_whole() {
                        drop_pairs(&mut approved.plan.actions[at], item);
                        modified.insert(at);
                    }
                }
            }
        }

        approved.modified = modified.into_iter().collect();
        approved
    }
}

/// Returns the labels of the pairs, where there is more than one.
fn pairs(kind: &ActionKind) -> Vec<StyledLine> {
    let pairs = kind.pairs().filter(|pairs| pairs.len() > 1);
    let label = |(at, pair): (usize, &Pair)| {
        let (find, replace) = first_difference(pair);
        let number = StyledLine::of(Tone::Faint, &format!("{}. ", at + 1));
        number
            .with(Tone::Removed, find)
            .with(Tone::Plain, " → ")
            .with(Tone::Added, replace)
            .cut(MAX_LABEL)
    };

    let pairs = pairs.unwrap_or_default().iter();
    pairs.enumerate().map(label).collect()
}

/// Returns the first line of each side in which they differ.
fn first_difference(pair: &Pair) -> (&str, &str) {
    let (mut find, mut replace) = (pair.find.lines(), pair.replace.lines());
    loop {
        match (find.next(), replace.next()) {
            (Some(one), Some(other)) if one == other => {}
            (one, other) => {
                return (
                    one.map_or("(nothing)", str::trim),
                    other.map_or("(nothing)", str::trim),
                );
            }
        }
    }
}

/// Switches the pairs off that an EDIT had lost when it was approved; says whether that is all that
/// became of it.
fn switched(proposed: &ActionKind, taken: &ActionKind, item: &mut Item) -> bool {
    let (Some(proposed), Some(taken)) = (proposed.pairs(), taken.pairs()) else {
        return false;
    };
    if item.pairs.is_empty() || taken.iter().any(|pair| !proposed.contains(pair)) {
        return false;
    }

    item.pairs
        .iter_mut()
        .zip(proposed)
        .for_each(|(switch, pair)| switch.on = taken.contains(pair));
    true
}

/// Takes the pairs that are switched off out of an EDIT.
fn drop_pairs(action: &mut Action, item: &Item) {
    if let Some(pairs) = action.kind.pairs_mut() {
        let mut switches = item.pairs.iter().map(|pair| pair.on);
        pairs.retain(|_| switches.next().unwrap_or(true));
    }
}

#[cfg(test)]
mod tests;
