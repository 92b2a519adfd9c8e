//! A proposal under the person's hands: the plan as changed so far, and what would run of it.
//!
//! Pure but for `revise`, which validates against the snapshot of the proposal.

use std::collections::{BTreeMap, BTreeSet};

use super::checklist::{Checklist, Item, Part};
use super::style::{Line, Tone};
use super::summary;
use crate::plan::Plan;
use crate::plan::action::edit::Pair;
use crate::plan::action::{Action, Kind};
use crate::plan::diagnostic::Diagnostic;
use crate::plan::memo;
use crate::plan::validate::Step;
use crate::text::resource::Resource;
use crate::workflow::user::{Approved, Proposal, Seen};

/// The columns of a label; no screen shows more, and the preview has it whole.
const MAX_LABEL: usize = 500;

/// The plan as the person has it.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The plan with every pair, switched off or not.
    pub plan: Plan,
    /// The plan as it was proposed.
    proposed: Plan,
    /// What each action would do, by the newest validation in which it took part.
    pub steps: Vec<Step>,
    /// What the person changed.
    pub edited: BTreeSet<Part>,
    /// Why things cannot run as they are, each with what it is about.
    pub mistakes: Vec<(Part, Diagnostic)>,
    /// What the resources have that were looked at.
    pub seen: BTreeMap<Resource, Seen>,
}

impl Draft {
    /// Returns the proposal, unchanged.
    pub fn new(proposal: &Proposal<'_>) -> Draft {
        let mut steps = proposal.simulation.steps.clone();
        steps.resize(proposal.plan.actions.len(), Step::default());
        Draft {
            plan: proposal.plan.clone(),
            proposed: proposal.plan.clone(),
            steps,
            edited: BTreeSet::new(),
            mistakes: Vec::new(),
            seen: BTreeMap::new(),
        }
    }

    /// Returns the items of the checklist, all switched on.
    pub fn items(&self) -> Vec<Item> {
        let memos = (0..self.plan.memos.len()).map(Part::Memo);
        let actions = (0..self.plan.actions.len()).map(Part::Action);
        memos.chain(actions).map(|part| self.item(part)).collect()
    }

    /// Returns an item, switched on.
    pub fn item(&self, part: Part) -> Item {
        let (label, pairs) = match part {
            Part::Memo(at) => (summary::memo(&self.plan.memos[at]), Vec::new()),
            Part::Action(at) => {
                let kind = &self.plan.actions[at].kind;
                let name = Line::of(Tone::Strong, &format!("{}:", kind.name()));
                (name.with(Tone::Plain, &format!(" {}", kind.target())), pairs(kind))
            }
        };
        Item { modified: self.edited.contains(&part), ..Item::new(part, label.cut(MAX_LABEL), pairs) }
    }

    /// Takes an action as the person changed it.
    pub fn change(&mut self, index: usize, action: Action) {
        self.plan.actions[index] = action;
        self.edited.insert(Part::Action(index));
    }

    /// Takes a memo as the person changed it.
    pub fn change_memo(&mut self, index: usize, memo: memo::Change) {
        self.plan.memos[index] = memo;
        self.edited.insert(Part::Memo(index));
    }

    /// Takes an item back to what was proposed.
    pub fn undo(&mut self, part: Part) {
        match part {
            Part::Memo(at) => self.plan.memos[at] = self.proposed.memos[at].clone(),
            Part::Action(at) => self.plan.actions[at] = self.proposed.actions[at].clone(),
        }
        self.edited.remove(&part);
    }

    /// Takes over what was approved earlier of the same plan: the person's changes here, their switches in the list.
    pub fn take_over(&mut self, earlier: &Approved, list: &mut Checklist) {
        if (earlier.plan.actions.len(), earlier.plan.memos.len()) != (self.plan.actions.len(), self.plan.memos.len()) {
            return;
        }
        for item in &mut list.items {
            match item.part {
                Part::Memo(at) => {
                    if earlier.plan.memos[at] != self.plan.memos[at] {
                        self.change_memo(at, earlier.plan.memos[at].clone());
                        *item = self.item(item.part);
                    }
                    item.on = earlier.memos[at];
                }
                Part::Action(at) => {
                    let taken = &earlier.plan.actions[at];
                    if !switched(&self.plan.actions[at].kind, &taken.kind, item) && *taken != self.plan.actions[at] {
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
    pub fn look(&mut self, part: Part, proposal: &Proposal<'_>) -> anyhow::Result<()> {
        let Part::Action(at) = part else { return Ok(()) };
        let resource = match &self.plan.actions[at].kind {
            Kind::Read(read) => &read.resource,
            Kind::Prune(prune) => &prune.resource,
            _ => return Ok(()),
        };
        if !self.seen.contains_key(resource) {
            let seen = (proposal.look)(resource)?;
            self.seen.insert(resource.clone(), seen);
        }
        Ok(())
    }

    /// Returns what runs as the list is switched.
    pub fn approved(&self, list: &Checklist) -> Approved {
        let mut approved = Approved::all(&self.plan);
        let mut modified: BTreeSet<usize> =
            self.edited.iter().filter_map(|part| if let Part::Action(at) = part { Some(*at) } else { None }).collect();
        for item in &list.items {
            match item.part {
                Part::Memo(at) => approved.memos[at] = item.on,
                Part::Action(at) => {
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

    /// Validates what is switched on, marks what cannot run, and takes over what each action would do.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn judge(&mut self, list: &mut Checklist, proposal: &Proposal<'_>) -> anyhow::Result<()> {
        let (plan, places) = running(&self.approved(list));
        let simulation = (proposal.revise)(&plan)?;
        for (step, &at) in simulation.steps.into_iter().zip(&places) {
            self.steps[at] = step;
        }
        for item in &mut list.items {
            item.problem = None;
            item.pairs.iter_mut().for_each(|pair| pair.problem = None);
        }
        self.mistakes = simulation.diagnostics.into_iter().filter_map(|found| Some((self.place(&places, &found)?, found))).collect();
        for (part, diagnostic) in &self.mistakes {
            self.mark(list, *part, diagnostic);
        }
        Ok(())
    }

    /// Returns what a mistake is about; the first action that runs if it is about none.
    fn place(&self, running: &[usize], diagnostic: &Diagnostic) -> Option<Part> {
        let memo = self.plan.memos.iter().position(|memo| memo.line == diagnostic.line && diagnostic.action.is_empty());
        let above = |at: &&usize| self.plan.actions[**at].line <= diagnostic.line;
        let action = || running.iter().rfind(above).or(running.first()).copied();
        memo.map(Part::Memo).or_else(|| action().map(Part::Action))
    }

    /// Marks the item, or the pair, that a mistake is about.
    fn mark(&self, list: &mut Checklist, part: Part, diagnostic: &Diagnostic) {
        let words = self.words(part, diagnostic);
        let Some(item) = list.items.iter_mut().find(|item| item.part == part) else { return };
        let pair = match part {
            Part::Action(at) => match &self.plan.actions[at].kind {
                Kind::Edit(edit) => edit.pairs.iter().rposition(|pair| pair.line <= diagnostic.line),
                _ => None,
            },
            Part::Memo(_) => None,
        };
        match pair.and_then(|pair| item.pairs.get_mut(pair)).filter(|pair| pair.on) {
            Some(pair) => pair.problem = Some(words),
            None => item.problem = Some(words),
        }
    }

    /// Returns what a mistake means to who switched something off or changed it.
    fn words(&self, part: Part, diagnostic: &Diagnostic) -> String {
        let what = diagnostic.message.lines().next().unwrap_or_default();
        let Part::Action(at) = part else { return what.to_owned() };
        let kind = &self.plan.actions[at].kind;
        let name = format!("{} {}", kind.name(), kind.target());
        if self.edited.contains(&part) {
            format!("{name}: {what}")
        } else {
            format!("{name} depends on what is switched off or changed: {what}")
        }
    }
}

/// Returns the labels of the pairs, where there is more than one.
fn pairs(kind: &Kind) -> Vec<Line> {
    let Kind::Edit(edit) = kind else { return Vec::new() };
    if edit.pairs.len() < 2 {
        return Vec::new();
    }
    let label = |(at, pair): (usize, &Pair)| {
        let (find, replace) = first_difference(pair);
        let number = Line::of(Tone::Faint, &format!("{}. ", at + 1));
        number.with(Tone::Removed, find).with(Tone::Plain, " → ").with(Tone::Added, replace).cut(MAX_LABEL)
    };
    edit.pairs.iter().enumerate().map(label).collect()
}

/// Returns the first line of each side in which they differ.
fn first_difference(pair: &Pair) -> (&str, &str) {
    let (mut find, mut replace) = (pair.find.lines(), pair.replace.lines());
    loop {
        match (find.next(), replace.next()) {
            (Some(one), Some(other)) if one == other => {}
            (one, other) => return (one.map_or("(nothing)", str::trim), other.map_or("(nothing)", str::trim)),
        }
    }
}

/// Switches the pairs off that an EDIT had lost when it was approved; says whether that is all that became of it.
fn switched(proposed: &Kind, taken: &Kind, item: &mut Item) -> bool {
    let (Kind::Edit(proposed), Kind::Edit(taken)) = (proposed, taken) else { return false };
    if item.pairs.is_empty() || taken.pairs.iter().any(|pair| !proposed.pairs.contains(pair)) {
        return false;
    }
    item.pairs.iter_mut().zip(&proposed.pairs).for_each(|(switch, pair)| switch.on = taken.pairs.contains(pair));
    true
}

/// Takes the pairs that are switched off out of an EDIT.
fn drop_pairs(action: &mut Action, item: &Item) {
    if let Kind::Edit(edit) = &mut action.kind {
        let mut switches = item.pairs.iter().map(|pair| pair.on);
        edit.pairs.retain(|_| switches.next().unwrap_or(true));
    }
}

/// Returns the plan without what is switched off, and for each action of it its index in the whole plan.
fn running(approved: &Approved) -> (Plan, Vec<usize>) {
    let mut plan = approved.plan.clone();
    let places: Vec<usize> = (0..plan.actions.len()).filter(|&at| approved.actions[at]).collect();
    let mut actions = approved.actions.iter();
    plan.actions.retain(|_| *actions.next().unwrap_or(&true));
    let mut memos = approved.memos.iter();
    plan.memos.retain(|_| *memos.next().unwrap_or(&true));
    (plan, places)
}

#[cfg(test)]
mod tests {
    use super::super::key::Key;
    use super::super::sample;
    use super::*;

    /// Presses keys on the list of the seed's example and judges it.
    fn judged(keys: &[Key]) -> (Draft, Checklist) {
        let sample = sample::bootstrap();
        let proposal = sample.proposal();
        let mut draft = Draft::new(&proposal);
        let mut list = keys.iter().fold(Checklist::new(draft.items()).fit(20, 0), |list, key| list.press(key).0);
        draft.judge(&mut list, &proposal).unwrap();
        (draft, list)
    }

    #[test]
    fn an_untouched_list_approves_the_plan_as_it_is() {
        let (draft, list) = judged(&[]);
        assert_eq!(draft.approved(&list), Approved::all(&sample::bootstrap().plan));
    }

    #[test]
    fn a_pair_that_needs_a_switched_off_pair_says_so() {
        let (draft, list) = judged(&[Key::Down, Key::Down, Key::Down, Key::Right, Key::Down, Key::Char(' ')]);
        let edit = &list.items[2];
        let problem = "EDIT pyproject.toml depends on what is switched off or changed: FIND is not in `pyproject.toml`";
        assert_eq!(edit.pairs.iter().map(|pair| pair.problem.as_deref()).collect::<Vec<_>>(), [None, Some(problem)]);
        assert_eq!(list.problem(), Some(problem));
        let approved = draft.approved(&list);
        assert_eq!(approved.modified, [1]);
        let Kind::Edit(edit) = &approved.plan.actions[1].kind else { panic!("an EDIT stays one") };
        assert_eq!(edit.pairs.len(), 1);
    }

    #[test]
    fn a_changed_memo_is_approved_as_changed() {
        let sample = sample::bootstrap();
        let proposal = sample.proposal();
        let mut draft = Draft::new(&proposal);
        let mut list = Checklist::new(draft.items());
        let mine = memo::Change { text: "Mine.".to_owned(), ..draft.plan.memos[0].clone() };
        draft.change_memo(0, mine.clone());
        list.items[0] = draft.item(Part::Memo(0));
        draft.judge(&mut list, &proposal).unwrap();
        assert_eq!((list.items[0].modified, list.problem()), (true, None));
        assert_eq!(draft.approved(&list).plan.memos, [mine]);
    }

    #[test]
    fn a_memo_that_cannot_be_changed_so_is_marked_itself() {
        let sample = sample::bootstrap();
        let proposal = sample.proposal();
        let mut draft = Draft::new(&proposal);
        let mut list = Checklist::new(draft.items());
        draft.change_memo(0, memo::Change { verb: memo::Verb::Remove, ..draft.plan.memos[0].clone() });
        draft.judge(&mut list, &proposal).unwrap();
        let problem = "there is no such memo: `All new components must have a core.py file.`";
        assert_eq!(list.items[0].problem.as_deref(), Some(problem));
        assert!(list.items[1..].iter().all(|item| item.problem.is_none()));
    }

    #[test]
    fn what_was_approved_before_is_taken_over_into_the_next_review() {
        let (mut draft, mut list) =
            judged(&[Key::Char(' '), Key::Down, Key::Down, Key::Down, Key::Right, Key::Down, Key::Down, Key::Char(' ')]);
        draft.change(3, Action { kind: sample::execute("mine\n"), ..draft.plan.actions[3].clone() });
        list.items[4] = draft.item(Part::Action(3));
        let approved = draft.approved(&list);
        let sample = sample::bootstrap();
        let mut next = Draft::new(&sample.proposal());
        let mut items = Checklist::new(next.items());
        next.take_over(&approved, &mut items);
        assert_eq!(
            items.items.iter().map(|item| (item.on, item.modified)).collect::<Vec<_>>(),
            [(false, false), (true, false), (true, false), (true, false), (true, true), (true, false)]
        );
        assert_eq!(items.items[2].pairs.iter().map(|pair| pair.on).collect::<Vec<_>>(), [true, false]);
        assert_eq!(next.approved(&items), approved);
    }

    #[test]
    fn what_is_switched_off_stays_in_the_plan_but_does_not_run() {
        let (draft, list) = judged(&[Key::Char(' '), Key::Down, Key::Down, Key::Char(' ')]);
        let approved = draft.approved(&list);
        assert_eq!(approved.memos, [false]);
        assert_eq!(approved.actions, [false, true, true, true, true]);
        assert_eq!(approved.plan, sample::bootstrap().plan);
        assert_eq!(approved.modified, Vec::<usize>::new());
    }

    #[test]
    fn an_edit_of_a_file_whose_create_is_off_is_marked() {
        let sample = sample::chain();
        let proposal = sample.proposal();
        let mut draft = Draft::new(&proposal);
        let mut list = Checklist::new(draft.items()).fit(20, 0).press(&Key::Char(' ')).0;
        draft.judge(&mut list, &proposal).unwrap();
        let problems: Vec<Option<&str>> = list.items.iter().map(|item| item.problem.as_deref()).collect();
        assert_eq!(problems, [None, Some("EDIT a depends on what is switched off or changed: there is no file `a`")]);
    }

    #[test]
    fn a_changed_action_is_judged_again_and_approved_as_changed() {
        let sample = sample::chain();
        let proposal = sample.proposal();
        let mut draft = Draft::new(&proposal);
        let mut list = Checklist::new(draft.items());
        draft.change(0, Action { kind: sample::create("b", "x\n"), ..draft.plan.actions[0].clone() });
        draft.judge(&mut list, &proposal).unwrap();
        assert!(list.problem().is_some_and(|problem| problem.contains("there is no file `a`")), "{list:?}");
        draft.change(0, Action { kind: sample::create("a", "x\nz\n"), ..draft.plan.actions[0].clone() });
        draft.judge(&mut list, &proposal).unwrap();
        assert_eq!((list.problem(), draft.mistakes.as_slice()), (None, [].as_slice()));
        let approved = draft.approved(&list);
        assert_eq!((&approved.plan, approved.modified), (&draft.plan, vec![0]));
        assert_eq!(draft.steps[1].after.as_deref(), Some(b"y\nz\n".as_slice()));
    }
}
