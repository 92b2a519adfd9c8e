//! Tier 2: which memos, actions and pairs run. A pure state machine `(state, key) -> (state, act)`.
//!
//! It knows labels and switches alone; what they stand for is `draft`'s, how it looks is `draw`'s.

mod motion;

use super::key::Key;
use super::search::Search;
use super::style::StyledLine;

/// The whole state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checklist {
    /// Memos first, then actions.
    pub items: Vec<Item>,
    /// The row of the cursor.
    pub cursor: usize,
    /// The first row on the screen.
    pub top: usize,
    /// Rows on the screen.
    pub height: usize,
    /// The first line of the preview on the screen.
    pub scroll: usize,
    /// How far the preview can be scrolled.
    pub max_scroll: usize,
    /// What is searched for.
    pub search: Option<Search>,
    /// Something to say once.
    pub notice: Option<String>,
}

/// What an item stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemPart {
    /// A memo, by its index in the plan.
    Memo(usize),
    /// An action, by its index in the plan.
    Action(usize),
}

/// A memo or an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What it stands for.
    pub part: ItemPart,
    /// Its text.
    pub label: StyledLine,
    /// Whether it runs.
    pub on: bool,
    /// The pairs of an EDIT that has more than one.
    pub pairs: Vec<EditPair>,
    /// Whether the pairs are shown.
    pub open: bool,
    /// Whether the person changed its content.
    pub modified: bool,
    /// Why it cannot run as things are switched.
    pub problem: Option<String>,
}

/// One FIND and REPLACE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditPair {
    /// Its text.
    pub label: StyledLine,
    /// Whether it is applied.
    pub on: bool,
    /// Why it cannot be.
    pub problem: Option<String>,
}

/// A row of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChecklistRow {
    /// The heading above the memos.
    Memos,
    /// The heading above the actions.
    Actions,
    /// An item, by its index.
    Item(usize),
    /// A pair of an item.
    Pair(usize, usize),
}

/// What a key asks for besides another state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecklistCommand {
    /// Run what is switched on.
    Run,
    /// Back to the summary.
    Leave,
    /// Switches changed: what depends on them is to be judged anew.
    Changed,
    /// Preview or edit an item.
    Edit(usize),
    /// Take an item back to what was proposed.
    Undo(usize),
    /// Show the preview of the row on a full screen.
    View,
    /// Show the keys.
    Help,
    /// Stop the program for a while.
    Suspend,
}

impl Checklist {
    /// Returns a list with everything as the items say, the cursor on the first item.
    pub fn new(items: Vec<Item>) -> Checklist {
        Checklist {
            items,
            cursor: 1,
            height: 1,
            ..Checklist::default()
        }
    }

    /// Returns every row that is shown.
    pub fn rows(&self) -> Vec<ChecklistRow> {
        let mut rows = Vec::with_capacity(self.items.len() + 2);
        let first_action = self
            .items
            .iter()
            .position(|item| matches!(item.part, ItemPart::Action(_)));
        if first_action != Some(0) && !self.items.is_empty() {
            rows.push(ChecklistRow::Memos);
        }

        for (index, item) in self.items.iter().enumerate() {
            if first_action == Some(index) {
                rows.push(ChecklistRow::Actions);
            }
            rows.push(ChecklistRow::Item(index));
            if item.open {
                rows.extend((0..item.pairs.len()).map(|pair| ChecklistRow::Pair(index, pair)));
            }
        }

        rows
    }

    /// Returns the row of the cursor.
    pub fn row(&self) -> Option<ChecklistRow> {
        self.rows().get(self.cursor).copied()
    }

    /// Returns the index of the item at the cursor or around it.
    pub fn current(&self) -> Option<usize> {
        match self.row()? {
            ChecklistRow::Item(index) | ChecklistRow::Pair(index, _) => Some(index),
            ChecklistRow::Memos | ChecklistRow::Actions => None,
        }
    }

    /// Fits the list to a screen and a preview.
    #[must_use]
    pub fn fit(mut self, height: usize, max_scroll: usize) -> Checklist {
        (self.height, self.max_scroll) = (height.max(1), max_scroll);
        self.scroll = self.scroll.min(max_scroll);
        self.follow();
        self
    }

    /// Returns the first reason why nothing can run as things are switched.
    pub fn problem(&self) -> Option<&str> {
        let problems = self.items.iter().filter(|item| item.on).flat_map(|item| {
            let pairs = item
                .pairs
                .iter()
                .filter(|pair| pair.on)
                .filter_map(|pair| pair.problem.as_deref());
            item.problem.as_deref().into_iter().chain(pairs)
        });
        problems.into_iter().next()
    }

    /// Takes a key.
    pub fn press(mut self, key: &Key) -> (Checklist, Option<ChecklistCommand>) {
        self.notice = None;
        if matches!(self.search, Some(Search::Open(_))) {
            self.write_search(key);
            return (self, None);
        }

        let before = self.row();
        let act = match key {
            Key::Char('s') => self.run(),
            Key::Char('q') | Key::Esc | Key::Ctrl('c' | 'd') | Key::Closed => {
                Some(ChecklistCommand::Leave)
            }
            Key::Char('p' | 'e') => self.edit(),
            Key::Char('u') => self.undo(),
            Key::Char('v') => Some(ChecklistCommand::View),
            Key::Char('?') => Some(ChecklistCommand::Help),
            Key::Ctrl('z') => Some(ChecklistCommand::Suspend),
            Key::Char(' ') | Key::Enter => self.toggle(),
            Key::Char('a') => self.toggle_all(),
            other => self.motion(other),
        };

        if self.row() != before {
            self.scroll = 0;
        }

        self.follow();
        (self, act)
    }

    /// Runs, unless something would go wrong.
    fn run(&mut self) -> Option<ChecklistCommand> {
        let Some(problem) = self.problem() else {
            return Some(ChecklistCommand::Run);
        };
        self.notice = Some(format!("cannot run: {problem}"));
        None
    }

    /// Asks for the preview of the item at the cursor.
    fn edit(&mut self) -> Option<ChecklistCommand> {
        let current = self.current();
        if current.is_none() {
            self.notice = Some("move to a memo or an action first".to_owned());
        }
        current.map(ChecklistCommand::Edit)
    }

    /// Asks for the proposal of the item at the cursor.
    fn undo(&mut self) -> Option<ChecklistCommand> {
        let current = self.current().filter(|&index| self.items[index].modified);
        if current.is_none() {
            self.notice = Some("there is nothing to take back here".to_owned());
        }
        current.map(ChecklistCommand::Undo)
    }

    /// Switches what the cursor is on.
    fn toggle(&mut self) -> Option<ChecklistCommand> {
        match self.row()? {
            ChecklistRow::Memos => self.toggle_where(|part| matches!(part, ItemPart::Memo(_))),
            ChecklistRow::Actions => self.toggle_where(|part| matches!(part, ItemPart::Action(_))),
            ChecklistRow::Item(index) => self.items[index].switch_to_other(),
            ChecklistRow::Pair(index, pair) => self.items[index].switch_pair(pair),
        }
        Some(ChecklistCommand::Changed)
    }

    /// Switches everything on; off, if everything is on.
    fn toggle_all(&mut self) -> Option<ChecklistCommand> {
        self.toggle_where(|_| true);
        Some(ChecklistCommand::Changed)
    }

    /// Switches some items on; off, if all of them are on.
    fn toggle_where(&mut self, chosen: impl Fn(ItemPart) -> bool) {
        let on = !self
            .items
            .iter()
            .filter(|item| chosen(item.part))
            .all(Item::is_whole);
        self.items
            .iter_mut()
            .filter(|item| chosen(item.part))
            .for_each(|item| item.switch(on));
    }
}

impl Item {
    /// Returns an item that runs.
    pub fn new(part: ItemPart, label: StyledLine, pairs: Vec<StyledLine>) -> Item {
        let pairs = pairs
            .into_iter()
            .map(|label| EditPair {
                label,
                on: true,
                problem: None,
            })
            .collect();
        Item {
            part,
            label,
            on: true,
            pairs,
            open: false,
            modified: false,
            problem: None,
        }
    }

    /// Tells whether it runs with all of its pairs.
    pub fn is_whole(&self) -> bool {
        self.on && self.pairs.iter().all(|pair| pair.on)
    }

    /// Switches it and all of its pairs.
    fn switch(&mut self, on: bool) {
        self.on = on;
        self.pairs.iter_mut().for_each(|pair| pair.on = on);
    }

    /// Switches it; its pairs keep their switches unless that leaves nothing to do.
    fn switch_to_other(&mut self) {
        self.on = !self.on;
        if self.on && self.pairs.iter().all(|pair| !pair.on) {
            self.switch(true);
        }
    }

    /// Switches a pair; an EDIT without pairs does not run.
    fn switch_pair(&mut self, index: usize) {
        if !self.on {
            self.pairs.iter_mut().for_each(|pair| pair.on = false);
        }
        self.pairs[index].on = !self.pairs[index].on;
        self.on = self.pairs.iter().any(|pair| pair.on);
    }
}

#[cfg(test)]
mod tests;
