//! A plan under review: the proposal with the user's edits and switches.
//!
//! Pure except for `read_resource` and `validate`, which read the snapshot of the proposal.

use std::collections::{BTreeMap, BTreeSet};

use super::checklist::{Checklist, EditPair, Item, ItemPart};
use super::style::{StyledLine, Tone};
use super::summary;
use crate::plan::action::behavior::UserEdit;
use crate::plan::action::edit::Pair;
use crate::plan::action::execute::NETWORK;
use crate::plan::action::take::KEEP_BYTES;
use crate::plan::action::{Action, ActionKind};
use crate::plan::damage::action_damage;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::validate::Step;
use crate::plan::{Field, Plan, memo};
use crate::text::damage::Damage;
use crate::text::keep_bytes::{keep_bytes, unknown_character};
use crate::text::resource::Resource;
use crate::workflow::user::{Approved, ResourceContent, ReviewRequest};

/// In columns. Wider than any screen; the preview shows the whole text.
const MAX_LABEL: usize = 500;

const NOTHING_TO_KEEP: &str = "the plan changes no encoding, line ends or mode that can be kept";

const ONLY_FILES_KEEP_BYTES: &str = "only a file has bytes to keep";

/// An action without and with the bytes that the user keeps.
#[derive(Debug, Clone)]
struct BeforeKeeping {
    action: Action,
    /// With their switches.
    pairs: Vec<EditPair>,
    kept: Action,
}

#[derive(Debug, Clone)]
pub struct EditedPlan {
    /// The edited plan, including everything that is switched off.
    pub plan: Plan,
    proposed: Plan,
    /// Effect of each action, from the last validation that included it.
    pub steps: Vec<Step>,
    pub edited: BTreeSet<ItemPart>,
    /// EDITs whose bytes the user keeps, by index. CREATE and TAKE have a field for it.
    before_keeping: BTreeMap<usize, BeforeKeeping>,
    /// Items that no longer apply, because files changed during the review.
    pub misfits: BTreeSet<ItemPart>,
    /// Diagnostics of the last validation, each with the item that it is about.
    pub mistakes: Vec<(ItemPart, Diagnostic)>,
    /// Resources read so far for previews.
    pub resources: BTreeMap<Resource, ResourceContent>,
}

impl EditedPlan {
    pub fn new(proposal: &ReviewRequest<'_>) -> EditedPlan {
        let mut steps = proposal.simulation.steps.clone();
        steps.resize(proposal.plan.actions.len(), Step::default());
        EditedPlan {
            plan: proposal.plan.clone(),
            proposed: proposal.plan.clone(),
            steps,
            edited: BTreeSet::new(),
            before_keeping: BTreeMap::new(),
            misfits: BTreeSet::new(),
            mistakes: Vec::new(),
            resources: BTreeMap::new(),
        }
    }

    /// Returns all items of the checklist, switched on.
    pub fn items(&self) -> Vec<Item> {
        let memos = (0..self.plan.memos.len()).map(ItemPart::Memo);
        let actions = (0..self.plan.actions.len()).map(ItemPart::Action);
        memos.chain(actions).map(|part| self.item(part)).collect()
    }

    /// Returns one item, switched on.
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

    /// Replaces an action by the user's version.
    pub fn change(&mut self, index: usize, action: Action) {
        self.plan.actions[index] = action;
        self.edited.insert(ItemPart::Action(index));
    }

    /// Grants a command the network, or takes it back. Returns `false` if the action is not a command.
    pub fn switch_network(&mut self, index: usize) -> bool {
        let mut action = self.plan.actions[index].clone();
        let Some(execute) = action.kind.command_mut() else {
            return false;
        };
        execute.network = !execute.network;
        let is_granted = execute.network;
        set_flag(&mut action, NETWORK, is_granted);
        self.put(index, action);
        true
    }

    /// Takes a version of an action. The proposed one counts as not edited.
    fn put(&mut self, index: usize, action: Action) {
        match action == self.proposed.actions[index] {
            true => self.undo(ItemPart::Action(index)),
            false => self.change(index, action),
        }
    }

    /// Returns whether an action damages bytes that the user can keep.
    pub fn damages_bytes(&self, index: usize) -> bool {
        let damage = action_damage(&self.plan.actions[index], &self.steps[index]);
        damage.iter().any(Damage::is_of_bytes)
    }

    /// Keeps the bytes of a file that an action did not mean to change, or takes that back. Returns
    /// why it can't.
    pub fn keep_bytes(&mut self, item: &mut Item) -> Result<(), String> {
        let ItemPart::Action(index) = item.part else {
            return Err(ONLY_FILES_KEEP_BYTES.to_owned());
        };
        if let Some(before) = self.before_keeping.remove(&index)
            && before.kept == self.plan.actions[index]
        {
            self.put(index, before.action);
            self.renew(item, before.pairs);
            return Ok(());
        }

        let mut action = self.plan.actions[index].clone();
        let step = &self.steps[index];
        let (Some(before), Some(after)) = (&step.before, &step.after) else {
            return Err("there is no earlier version with bytes to keep".to_owned());
        };
        let kept = keep_bytes(before, after);
        let mode_damage = action.kind.mode_change().damage();
        let is_same = kept == *after && !mode_damage.is_some_and(|mode| mode.is_of_bytes());
        if let Some(keeps) = action.kind.keeps_bytes_mut() {
            if !*keeps {
                // It must be known how the old version writes each character.
                if let Some(character) = unknown_character(before, &kept) {
                    return Err(format!(
                        "the encoding of the file is unknown, and no line that stays shows how it writes `{character}`"
                    ));
                }
            }
            if !*keeps && is_same {
                return Err(NOTHING_TO_KEEP.to_owned());
            }
            *keeps = !*keeps;
            let is_kept = *keeps;
            set_flag(&mut action, KEEP_BYTES, is_kept);
            self.put(index, action);
            let pairs = std::mem::take(&mut item.pairs);
            self.renew(item, pairs);
            return Ok(());
        }

        if is_same {
            return Err(NOTHING_TO_KEEP.to_owned());
        }
        let kept = with_result(&action, before, kept).ok_or(ONLY_FILES_KEEP_BYTES)?;
        let before = BeforeKeeping {
            action,
            pairs: std::mem::take(&mut item.pairs),
            kept: kept.clone(),
        };
        self.before_keeping.insert(index, before);
        self.change(index, kept);
        *item = Item {
            on: item.on,
            ..self.item(item.part)
        };
        Ok(())
    }

    /// Shows an item as it is now, with these switches of its pairs.
    fn renew(&self, item: &mut Item, pairs: Vec<EditPair>) {
        *item = Item {
            on: item.on,
            pairs,
            ..self.item(item.part)
        };
    }

    /// Replaces a memo by the user's version.
    pub fn change_memo(&mut self, index: usize, memo: memo::MemoChange) {
        self.plan.memos[index] = memo;
        self.edited.insert(ItemPart::Memo(index));
    }

    /// Restores an item to the proposal.
    pub fn undo(&mut self, part: ItemPart) {
        match part {
            ItemPart::Memo(at) => self.plan.memos[at] = self.proposed.memos[at].clone(),
            ItemPart::Action(at) => self.plan.actions[at] = self.proposed.actions[at].clone(),
        }
        self.edited.remove(&part);
    }

    /// Applies edits and switches from an earlier approval of the same plan.
    pub fn take_over(&mut self, earlier: &Approved, list: &mut Checklist) {
        // A different number of actions or memos means that it was another plan.
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
                    let adopted = &earlier.plan.actions[at];
                    // Pairs missing from the approved EDIT were only switched off. Anything else is
                    // an edit.
                    if !switched(&self.plan.actions[at].kind, &adopted.kind, item)
                        && *adopted != self.plan.actions[at]
                    {
                        self.change(at, adopted.clone());
                        *item = self.item(item.part);
                    }

                    item.on = earlier.actions[at];
                }
            }
        }
    }

    /// Reads the resource of an action for the preview, once.
    pub fn read_resource(
        &mut self,
        part: ItemPart,
        proposal: &ReviewRequest<'_>,
    ) -> anyhow::Result<()> {
        let ItemPart::Action(at) = part else {
            return Ok(());
        };
        let Some(resource) = self.plan.actions[at].kind.resource() else {
            return Ok(());
        };
        if !self.resources.contains_key(resource) {
            let resource_content = (proposal.read_resource)(resource)?;
            self.resources.insert(resource.clone(), resource_content);
        }

        Ok(())
    }

    /// Returns the plan without everything that is switched off.
    pub fn running_plan(&self, list: &Checklist) -> Plan {
        without_disabled(&self.approved(list)).0
    }

    /// Returns the edited plan with its switches.
    pub fn approved(&self, list: &Checklist) -> Approved {
        let mut approved = Approved::all(&self.plan);
        let edited = self.edited.iter().filter_map(|part| match part {
            ItemPart::Action(at) => Some(*at),
            ItemPart::Memo(_) => None,
        });
        let mut modified: BTreeSet<usize> = edited.collect();
        for item in &list.items {
            match item.part {
                ItemPart::Memo(at) => approved.memos[at] = item.on,
                ItemPart::Action(at) => {
                    approved.actions[at] = item.on;
                    // Dropping a pair changes the action itself, so it counts as modified.
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

/// Returns the action with another result. `None` if it has no file, or one that is not text.
fn with_result(action: &Action, before: &[u8], after: Vec<u8>) -> Option<Action> {
    let before = std::str::from_utf8(before).ok()?;
    let after = String::from_utf8(after).ok()?;
    let edit = UserEdit::FinalVersion { before, after };
    Some(Action {
        kind: action.kind.edited(edit)?,
        ..action.clone()
    })
}

/// Sets a field that is `true` or missing.
fn set_flag(action: &mut Action, key: &str, is_set: bool) {
    action.fields.retain(|field| field.key != key);
    action
        .fields
        .extend(is_set.then(|| Field::new(key, "true")));
}

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

/// Returns the first line on each side that differs.
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

/// Switches off the pairs that the approved EDIT lacks. Returns `false` if it was changed in
/// another way.
fn switched(proposed: &ActionKind, adopted: &ActionKind, item: &mut Item) -> bool {
    let (Some(proposed), Some(adopted)) = (proposed.pairs(), adopted.pairs()) else {
        return false;
    };
    let mut adopted = adopted.iter().peekable();
    let is_on = |pair| adopted.next_if_eq(&pair).is_some();
    let switches: Vec<bool> = proposed.iter().map(is_on).collect();
    if item.pairs.is_empty() || adopted.next().is_some() {
        return false;
    }

    for (pair, is_on) in item.pairs.iter_mut().zip(switches) {
        pair.on = is_on;
    }
    true
}

fn drop_pairs(action: &mut Action, item: &Item) {
    if let Some(pairs) = action.kind.pairs_mut() {
        let mut switches = item.pairs.iter().map(|pair| pair.on);
        pairs.retain(|_| switches.next().unwrap_or(true));
    }
}

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
            // An action that was not touched fails only because of others.
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
fn without_disabled(approved: &Approved) -> (Plan, Vec<usize>) {
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

#[cfg(test)]
mod tests;
