//! Second tier of the review: which memos, actions and pairs run. A pure state machine from a key
//! to a new state and a command.
//!
//! It knows only labels and switches. [`super::draft`] knows what they stand for, and
//! [`super::draw`] renders them.

use super::key::Key;
use super::search::Search;
use super::style::StyledLine;
use crate::ui::search::SearchDirection;

/// State of the checklist.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checklist {
    /// Memos first, then actions.
    pub items: Vec<Item>,
    /// Index of the selected row.
    pub cursor: usize,
    /// Index of the first visible row.
    pub top: usize,
    /// Number of visible rows.
    pub height: usize,
    /// Index of the first visible line of the preview.
    pub scroll: usize,
    /// Maximum of `scroll`.
    pub max_scroll: usize,
    /// Current search.
    pub search: Option<Search>,
    /// Message shown until the next key.
    pub notice: Option<String>,
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
    /// The memo or action.
    pub part: ItemPart,
    /// Displayed text.
    pub label: StyledLine,
    /// Whether it is switched on.
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
    /// Displayed text.
    pub label: StyledLine,
    /// Whether it is switched on.
    pub on: bool,
    /// Why it can't be applied.
    pub problem: Option<String>,
}

/// A row of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChecklistRow {
    /// Heading above the memos.
    Memos,
    /// Heading above the actions.
    Actions,
    /// An item, by its index.
    Item(usize),
    /// A pair, by the indices of its item and itself.
    Pair(usize, usize),
}

/// Command that a key returns to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecklistCommand {
    /// Run everything that is switched on.
    Run,
    /// Return to the summary.
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
    /// Show the differences, for comments.
    Comment,
    /// Show the keys.
    Help,
    /// Suspend the program.
    Suspend,
}

impl Checklist {
    /// Returns a list with the cursor on the first item.
    pub fn new(items: Vec<Item>) -> Checklist {
        Checklist {
            items,
            // Row 0 is a heading.
            cursor: 1,
            height: 1,
            ..Checklist::default()
        }
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
        self.rows().get(self.cursor).copied()
    }

    /// Returns the index of the item under the cursor, or of the pair's item.
    pub fn current(&self) -> Option<usize> {
        match self.row()? {
            ChecklistRow::Item(index) | ChecklistRow::Pair(index, _) => Some(index),
            ChecklistRow::Memos | ChecklistRow::Actions => None,
        }
    }

    /// Fits the list to the number of visible rows, and the preview to its scroll limit.
    #[must_use]
    pub fn fit(mut self, height: usize, max_scroll: usize) -> Checklist {
        (self.height, self.max_scroll) = (height.max(1), max_scroll);
        self.scroll = self.scroll.min(max_scroll);
        self.follow();
        self
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

    /// Handles a key.
    pub fn press(mut self, key: &Key) -> (Checklist, Option<ChecklistCommand>) {
        self.notice = None;
        if matches!(self.search, Some(Search::Open(_))) {
            self.write_search(key);
            return (self, None);
        }

        let before = self.row();
        let act = match key {
            Key::Char('a') | Key::Enter => self.run(),
            Key::Char('s') => Some(ChecklistCommand::Skip),
            Key::Char('m') | Key::Esc => Some(ChecklistCommand::Back),
            Key::Char('q') | Key::Ctrl('d') | Key::Terminate => Some(ChecklistCommand::Quit),
            Key::Ctrl('c') => Some(ChecklistCommand::Interrupt),
            Key::Char('p' | 'e') => self.edit(),
            Key::Char('f') => self.current_item().map(ChecklistCommand::EditPath),
            Key::Char('u') => self.undo(),
            Key::Char('i') => self.current().map(ChecklistCommand::Network),
            Key::Char('B') => self.current_item().map(ChecklistCommand::KeepBytes),
            Key::Char('c') => Some(ChecklistCommand::Comment),
            Key::Char('v') => Some(ChecklistCommand::Preview),
            Key::Char('?') => Some(ChecklistCommand::Help),
            Key::Ctrl('z') => Some(ChecklistCommand::Suspend),
            Key::Char(' ') => self.toggle(),
            Key::Char('*') => self.toggle_all(),
            other => self.navigate(other),
        };

        // The preview shows another item now: start at its top.
        if self.row() != before {
            self.scroll = 0;
        }

        self.follow();
        (self, act)
    }

    fn run(&mut self) -> Option<ChecklistCommand> {
        let Some(problem) = self.problem() else {
            return Some(ChecklistCommand::Run);
        };
        self.notice = Some(format!("cannot run: {problem}"));
        None
    }

    fn edit(&mut self) -> Option<ChecklistCommand> {
        self.current_item().map(ChecklistCommand::Edit)
    }

    fn current_item(&mut self) -> Option<usize> {
        let current = self.current();
        if current.is_none() {
            self.notice = Some("move to a memo or an action first".to_owned());
        }
        current
    }

    fn undo(&mut self) -> Option<ChecklistCommand> {
        let current = self.current().filter(|&index| self.items[index].modified);
        if current.is_none() {
            self.notice = Some("there is nothing to take back here".to_owned());
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

    fn toggle_all(&mut self) -> Option<ChecklistCommand> {
        self.toggle_where(|_| true);
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
    /// Handles a key that only moves. Ignores unknown keys.
    fn navigate(&mut self, key: &Key) -> Option<ChecklistCommand> {
        let page = self.height.saturating_sub(1).max(1) as isize;
        match key {
            Key::Up | Key::Char('k') => self.move_by(-1),
            Key::Down | Key::Char('j') => self.move_by(1),
            Key::PageUp => self.move_by(-page),
            Key::PageDown => self.move_by(page),
            Key::Home | Key::Char('g') => self.cursor = 0,
            Key::End | Key::Char('G') => self.move_by(isize::MAX / 2),
            Key::Char('J') => self.scroll = (self.scroll + 1).min(self.max_scroll),
            Key::Char('K') => self.scroll = self.scroll.saturating_sub(1),
            Key::Tab => self.open(None),
            Key::Right | Key::Char('l') => self.open(Some(true)),
            Key::Left | Key::Char('h') => self.open(Some(false)),
            Key::Char('/') => self.search = Some(Search::begin()),
            Key::Char('n') => self.find(SearchDirection::Next),
            Key::Char('N') => self.find(SearchDirection::Previous),
            _ => {}
        }

        None
    }

    fn write_search(&mut self, key: &Key) {
        self.search = self.search.take().and_then(|search| search.press(key));
        if matches!(self.search, Some(Search::Submitted(_))) {
            self.find(SearchDirection::Here);
        }
        self.follow();
    }

    /// Scrolls until the cursor is visible.
    fn follow(&mut self) {
        let rows = self.rows().len();
        self.cursor = self.cursor.min(rows.saturating_sub(1));
        self.top = self.top.min(rows.saturating_sub(self.height));
        if self.cursor < self.top {
            self.top = self.cursor;
        }

        if self.cursor >= self.top + self.height {
            self.top = self.cursor + 1 - self.height;
        }
    }

    fn move_by(&mut self, by: isize) {
        self.cursor = self
            .cursor
            .saturating_add_signed(by)
            .min(self.rows().len().saturating_sub(1));
    }

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
            self.cursor = self
                .rows()
                .iter()
                .position(|&row| row == ChecklistRow::Item(index))
                .unwrap_or(0);
        }
    }

    fn find(&mut self, step: SearchDirection) {
        let Some(search) = &self.search else { return };
        let rows = self.rows();
        match search.find(step, self.cursor.min(rows.len()), rows.len(), |at| {
            self.label(rows[at])
        }) {
            Some(at) => self.cursor = at,
            None => self.notice = Some(format!("`{}` is not in the list", search.text())),
        }
    }

    fn label(&self, row: ChecklistRow) -> String {
        match row {
            ChecklistRow::Memos | ChecklistRow::Actions => String::new(),
            ChecklistRow::Item(index) => self
                .items
                .get(index)
                .map(|Item { label, .. }| label.text())
                .unwrap_or_default(),
            ChecklistRow::Pair(index, pair) => self.items[index].pairs[pair].label.text(),
        }
    }
}

#[cfg(test)]
mod tests;
