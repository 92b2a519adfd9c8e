//! Navigation in the checklist: cursor, pages, search, unfolding, and scrolling the preview.

use super::{Checklist, ChecklistCommand, ChecklistRow, Item};
use crate::ui::key::Key;
use crate::ui::search::{Search, SearchDirection};

impl Checklist {
    /// Handles a key that only moves. Ignores unknown keys.
    pub(super) fn navigate(&mut self, key: &Key) -> Option<ChecklistCommand> {
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

    pub(super) fn write_search(&mut self, key: &Key) {
        self.search = self.search.take().and_then(|search| search.press(key));
        if matches!(self.search, Some(Search::Submitted(_))) {
            self.find(SearchDirection::Here);
        }
        self.follow();
    }

    /// Scrolls until the cursor is visible.
    pub(super) fn follow(&mut self) {
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
        match search.find((step, self.cursor.min(rows.len())), rows.len(), |at| {
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
