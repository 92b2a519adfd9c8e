//! A proposal under the person's hands: the plan as changed so far, and what would run of it.
//!
//! Pure but for `revise`, which validates against the snapshot of the proposal.

use std::collections::BTreeSet;

use super::checklist::{Checklist, Item, Part};
use super::style::{Line, Tone};
use super::summary;
use crate::plan::Plan;
use crate::plan::action::edit::Pair;
use crate::plan::action::{Action, Kind};
use crate::plan::diagnostic::Diagnostic;
use crate::plan::validate::Step;
use crate::workflow::user::{Approved, Proposal};

/// The columns of a label; no screen shows more, and the preview has it whole.
const MAX_LABEL: usize = 500;

/// The plan as the person has it.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The plan with every pair, switched off or not.
    pub plan: Plan,
    /// What each action would do, by the newest validation in which it took part.
    pub steps: Vec<Step>,
    /// The actions whose content the person changed.
    pub edited: BTreeSet<usize>,
    /// Why things cannot run as they are, each with the action that it is about.
    pub mistakes: Vec<(usize, Diagnostic)>,
}

impl Draft {
    /// Returns the proposal, unchanged.
    pub fn new(proposal: &Proposal<'_>) -> Draft {
        let mut steps = proposal.simulation.steps.clone();
        steps.resize(proposal.plan.actions.len(), Step::default());
        Draft { plan: proposal.plan.clone(), steps, edited: BTreeSet::new(), mistakes: Vec::new() }
    }

    /// Returns the items of the checklist, all switched on.
    pub fn items(&self) -> Vec<Item> {
        let memos = self.plan.memos.iter().enumerate().map(|(at, memo)| Item::new(Part::Memo(at), summary::memo(memo), Vec::new()));
        let actions = (0..self.plan.actions.len()).map(|at| self.item(at));
        memos.chain(actions).collect()
    }

    /// Returns the item of an action, switched on.
    pub fn item(&self, index: usize) -> Item {
        let kind = &self.plan.actions[index].kind;
        let label = Line::of(Tone::Strong, &format!("{}:", kind.name())).with(Tone::Plain, &format!(" {}", kind.target()));
        let item = Item::new(Part::Action(index), label.cut(MAX_LABEL), pairs(kind));
        Item { modified: self.edited.contains(&index), ..item }
    }

    /// Takes an action as the person changed it.
    pub fn change(&mut self, index: usize, action: Action) {
        self.plan.actions[index] = action;
        self.edited.insert(index);
    }

    /// Returns what runs as the list is switched.
    pub fn approved(&self, list: &Checklist) -> Approved {
        let mut approved = Approved::all(&self.plan);
        let mut modified = self.edited.clone();
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
        for (at, diagnostic) in &self.mistakes {
            self.mark(list, *at, diagnostic);
        }
        Ok(())
    }

    /// Returns the action that a mistake is about; the first one that runs if it is about none.
    fn place(&self, running: &[usize], diagnostic: &Diagnostic) -> Option<usize> {
        let above = |at: &&usize| self.plan.actions[**at].line <= diagnostic.line;
        running.iter().rfind(above).or(running.first()).copied()
    }

    /// Marks the item, or the pair, that a mistake is about.
    fn mark(&self, list: &mut Checklist, at: usize, diagnostic: &Diagnostic) {
        let words = self.words(at, diagnostic);
        let Some(item) = list.items.iter_mut().find(|item| item.part == Part::Action(at)) else { return };
        let pair = match &self.plan.actions[at].kind {
            Kind::Edit(edit) => edit.pairs.iter().rposition(|pair| pair.line <= diagnostic.line),
            _ => None,
        };
        match pair.and_then(|pair| item.pairs.get_mut(pair)).filter(|pair| pair.on) {
            Some(pair) => pair.problem = Some(words),
            None => item.problem = Some(words),
        }
    }

    /// Returns what a mistake means to who switched something off or changed it.
    fn words(&self, at: usize, diagnostic: &Diagnostic) -> String {
        let kind = &self.plan.actions[at].kind;
        let what = diagnostic.message.lines().next().unwrap_or_default();
        let name = format!("{} {}", kind.name(), kind.target());
        if self.edited.contains(&at) {
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
