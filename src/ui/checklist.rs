//! Second tier of the review: which memos, actions and pairs run. A pure state machine from a key
//! to a new state and a command.
//!
//! It knows only labels and switches. [`super::draft`] knows what they stand for, and
//! [`super::draw`] renders them.

use super::key::Key;
use super::list::List;
use super::style::StyledLine;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checklist {
    /// Memos first, then actions.
    pub items: Vec<Item>,
    pub list: List,
    /// Position in the preview of the selected row.
    pub preview: List,
}

/// The part of the plan that an item stands for.
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
    pub part: ItemPart,
    pub label: StyledLine,
    pub on: bool,
    /// Pairs of an EDIT that has more than one.
    pub pairs: Vec<EditPair>,
    /// Whether the pairs are shown.
    pub open: bool,
    /// Whether the user edited it.
    pub modified: bool,
    /// Why it can't run with the current switches.
    pub problem: Option<String>,
}

/// One FIND and REPLACE pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditPair {
    pub label: StyledLine,
    pub on: bool,
    /// Why it can't be applied.
    pub problem: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChecklistRow {
    /// Heading above the memos.
    Memos,
    /// Heading above the actions.
    Actions,
    Item(usize),
    /// A pair, by the indices of its item and itself.
    Pair(usize, usize),
}

/// Command that a key returns to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecklistCommand {
    /// Run everything that is switched on.
    Run,
    Back,
    /// Decline the plan.
    Skip,
    /// Leave the review; the plan waits.
    Quit,
    /// Like `Quit`, and interrupt the program.
    Interrupt,
    /// Switches changed: the plan needs to be validated again.
    Changed,
    /// Preview or edit an item.
    Edit(usize),
    /// Change the path of a CREATE.
    EditPath(usize),
    /// Restore an item to the proposal.
    Undo(usize),
    /// Show the preview of the row on a full screen.
    Preview,
    /// Grant the command of this item the network, or take it back.
    Network(usize),
    /// Keep the bytes that an item did not mean to change, or take it back.
    KeepBytes(usize),
    KeepAllBytes,
    /// Show the differences, for comments.
    Comment,
    /// Show the keys.
    Help,
}

impl Checklist {
    /// Returns a list with the cursor on the first item.
    pub fn new(items: Vec<Item>) -> Checklist {
        let mut list = Checklist {
            items,
            preview: List::text(),
            ..Checklist::default()
        };
        list.list.resize(list.rows().len());
        // Row 0 is a heading.
        list.list.go_to(1);
        list
    }

    /// Returns all rows, except pairs of items that are folded.
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

    /// Returns the row under the cursor.
    pub fn row(&self) -> Option<ChecklistRow> {
        self.rows().get(self.list.cursor()).copied()
    }

    /// Returns the index of the item under the cursor, or of the pair's item.
    pub fn current(&self) -> Option<usize> {
        match self.row()? {
            ChecklistRow::Item(index) | ChecklistRow::Pair(index, _) => Some(index),
            ChecklistRow::Memos | ChecklistRow::Actions => None,
        }
    }

    /// Returns the first reason why the plan can't run with the current switches.
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

    pub fn press(&mut self, key: &Key) -> Option<ChecklistCommand> {
        let rows = self.rows();
        let before = self.row();
        let (list, items) = (&mut self.list, &self.items);
        list.resize(rows.len());
        let command = match list.press(key, |at| label(items, rows[at])) {
            true => None,
            false => self.command(key),
        };

        self.list.resize(self.rows().len());
        // The preview shows another item now: start at its top.
        if self.row() != before {
            self.preview.restart(0);
        }
        command
    }

    fn command(&mut self, key: &Key) -> Option<ChecklistCommand> {
        match key {
            Key::Char('a') | Key::Enter => return self.run(),
            Key::Char('s') => return Some(ChecklistCommand::Skip),
            Key::Char('m') | Key::Esc => return Some(ChecklistCommand::Back),
            Key::Char('q') | Key::Ctrl('d') | Key::Terminate => {
                return Some(ChecklistCommand::Quit);
            }
            Key::Ctrl('c') => return Some(ChecklistCommand::Interrupt),
            Key::Char('p' | 'e') => return self.current_item().map(ChecklistCommand::Edit),
            Key::Char('f') => return self.current_item().map(ChecklistCommand::EditPath),
            Key::Char('u') => return self.undo(),
            Key::Char('i') => return self.current().map(ChecklistCommand::Network),
            Key::Char('B') if self.row() == Some(ChecklistRow::Actions) => {
                return Some(ChecklistCommand::KeepAllBytes);
            }
            Key::Char('B') => return self.current_item().map(ChecklistCommand::KeepBytes),
            Key::Char('c') => return Some(ChecklistCommand::Comment),
            Key::Char('v') => return Some(ChecklistCommand::Preview),
            Key::Char('?') => return Some(ChecklistCommand::Help),
            Key::Char(' ') => return self.toggle(),
            Key::Char('*') => {
                self.toggle_where(|_| true);
                return Some(ChecklistCommand::Changed);
            }
            Key::Char('J') => self.preview.scroll(1),
            Key::Char('K') => self.preview.scroll(-1),
            Key::Tab => self.open(None),
            Key::Right | Key::Char('l') => self.open(Some(true)),
            Key::Left | Key::Char('h') => self.open(Some(false)),
            _ => {}
        }
        None
    }

    fn run(&mut self) -> Option<ChecklistCommand> {
        let Some(problem) = self.problem() else {
            return Some(ChecklistCommand::Run);
        };
        self.list.notice = Some(format!("cannot run: {problem}"));
        None
    }

    fn current_item(&mut self) -> Option<usize> {
        let current = self.current();
        if current.is_none() {
            self.list.notice = Some("move to a memo or an action first".to_owned());
        }
        current
    }

    fn undo(&mut self) -> Option<ChecklistCommand> {
        let current = self.current().filter(|&index| self.items[index].modified);
        if current.is_none() {
            self.list.notice = Some("there is nothing to take back here".to_owned());
        }
        current.map(ChecklistCommand::Undo)
    }

    fn toggle(&mut self) -> Option<ChecklistCommand> {
        match self.row()? {
            ChecklistRow::Memos => self.toggle_where(|part| matches!(part, ItemPart::Memo(_))),
            ChecklistRow::Actions => self.toggle_where(|part| matches!(part, ItemPart::Action(_))),
            ChecklistRow::Item(index) => self.items[index].switch_to_other(),
            ChecklistRow::Pair(index, pair) => self.items[index].switch_pair(pair),
        }
        Some(ChecklistCommand::Changed)
    }

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
    /// Returns an item with everything switched on.
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

    /// Returns whether the item and all of its pairs are switched on.
    pub fn is_whole(&self) -> bool {
        self.on && self.pairs.iter().all(|pair| pair.on)
    }

    fn switch(&mut self, on: bool) {
        self.on = on;
        self.pairs.iter_mut().for_each(|pair| pair.on = on);
    }

    /// Pairs keep their switches, unless all of them are off: an EDIT needs at least one.
    fn switch_to_other(&mut self) {
        self.on = !self.on;
        if self.on && self.pairs.iter().all(|pair| !pair.on) {
            self.switch(true);
        }
    }

    /// Switching on a pair of an item that is off runs that pair alone. The last pair switched off
    /// turns the item off.
    fn switch_pair(&mut self, index: usize) {
        if !self.on {
            self.pairs.iter_mut().for_each(|pair| pair.on = false);
        }
        self.pairs[index].on = !self.pairs[index].on;
        self.on = self.pairs.iter().any(|pair| pair.on);
    }
}

impl Checklist {
    /// Folds or unfolds the pairs of the item. `None` toggles.
    fn open(&mut self, requested: Option<bool>) {
        let Some(index) = self.current() else { return };
        if self.items[index].pairs.is_empty() {
            return;
        }

        let open = requested.unwrap_or(!self.items[index].open);
        self.items[index].open = open;
        // The row of the pair is gone: move to its item.
        if !open {
            let mut rows = self.rows().into_iter();
            let at = rows.position(|row| row == ChecklistRow::Item(index));
            self.list.go_to(at.unwrap_or(0));
        }
    }
}

fn label(items: &[Item], row: ChecklistRow) -> String {
    match row {
        ChecklistRow::Memos | ChecklistRow::Actions => String::new(),
        ChecklistRow::Item(index) => items[index].label.text(),
        ChecklistRow::Pair(index, pair) => items[index].pairs[pair].label.text(),
    }
}

#[cfg(test)]
mod tests;
