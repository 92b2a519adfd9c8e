//! Detail pane: the lines of a tab, the scroll position, and a search in them.

use super::tabs::TabLine;
use crate::ui::key::Key;
use crate::ui::search::{Search, SearchDirection};

/// Lines of a tab with a scroll position.
#[derive(Debug, Clone, Default)]
pub struct DetailPane {
    /// All lines.
    pub lines: Vec<TabLine>,
    /// Index of the first visible line.
    pub top: usize,
    /// Index of the selected line, in tabs with a cursor.
    pub cursor: usize,
    height: usize,
    search: Option<Search>,
}

impl DetailPane {
    /// Replaces the lines. Keeps the position if `is_same`.
    pub fn set_lines(&mut self, lines: Vec<TabLine>, is_same: bool) {
        self.lines = lines;
        if !is_same {
            (self.top, self.cursor) = (0, 0);
        }
        self.scroll(0);
    }

    /// Sets the number of visible lines.
    pub fn fit(&mut self, height: usize) {
        self.height = height.max(1);
        self.scroll(0);
    }

    /// Returns the visible lines with their indices.
    pub fn visible_lines(&self) -> impl Iterator<Item = (usize, &TabLine)> {
        let lines = self.lines.iter().enumerate();
        lines.skip(self.top).take(self.height)
    }

    /// Returns the number of lines in a page.
    pub fn page(&self) -> isize {
        self.height.saturating_sub(1).max(1) as isize
    }

    /// Returns the position as `last visible line/line count`.
    pub fn position(&self) -> String {
        let end = (self.top + self.height).min(self.lines.len());
        format!("{end}/{}", self.lines.len())
    }

    /// Scrolls and keeps the cursor visible.
    pub fn scroll(&mut self, by: isize) {
        let last = self.lines.len().saturating_sub(self.height);
        self.top = self.top.saturating_add_signed(by).min(last);
        let lowest = self.top + self.height.saturating_sub(1);
        self.cursor = self.cursor.clamp(self.top, lowest);
        self.cursor = self.cursor.min(self.lines.len().saturating_sub(1));
    }

    /// Moves the cursor and scrolls to keep it visible.
    pub fn step(&mut self, by: isize) {
        let last = self.lines.len().saturating_sub(1);
        self.cursor = self.cursor.saturating_add_signed(by).min(last);
        let lowest = self.cursor.saturating_sub(self.height.saturating_sub(1));
        self.top = self.top.clamp(lowest, self.cursor);
    }

    /// Returns the index of the file under the cursor.
    pub fn file(&self) -> Option<usize> {
        self.lines.get(self.cursor)?.file
    }

    /// Moves the cursor to the header of a file.
    pub fn go_to_file(&mut self, file: usize) {
        let is_head = |line: &TabLine| line.is_head && line.file == Some(file);
        if let Some(at) = self.lines.iter().position(is_head) {
            self.step(at as isize - self.cursor as isize);
        }
    }

    /// Opens the search prompt.
    pub fn begin_search(&mut self) {
        self.search = Some(Search::begin());
    }

    /// Returns the search while the user types it.
    pub fn open_search(&self) -> Option<&Search> {
        self.search
            .as_ref()
            .filter(|search| matches!(search, Search::Open(_)))
    }

    /// Handles a key at the search prompt. Returns the text if it has no match.
    pub fn type_in(&mut self, key: &Key) -> Option<String> {
        self.search = self.search.take().and_then(|search| search.press(key));
        match self.search {
            Some(Search::Submitted(_)) => self.find(SearchDirection::Here),
            _ => None,
        }
    }

    /// Moves to the next match. Returns the text if it has no match.
    pub fn find(&mut self, step: SearchDirection) -> Option<String> {
        let search = self.search.as_ref()?;
        let text = |at: usize| self.lines[at].line.text();
        match search.find((step, self.cursor), self.lines.len(), text) {
            Some(at) => {
                self.step(at as isize - self.cursor as isize);
                None
            }
            None => Some(search.text().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::style::StyledLine;

    #[track_caller]
    fn check(moves: &[(bool, isize)], expected: (usize, usize)) {
        let line = |n| TabLine::of(StyledLine::plain(&format!("line {n}")));
        let mut pane = DetailPane::default();
        pane.fit(4);
        pane.set_lines((0..10).map(line).collect(), false);
        for (is_step, by) in moves {
            match is_step {
                true => pane.step(*by),
                false => pane.scroll(*by),
            }
        }
        assert_eq!((pane.top, pane.cursor), expected, "{moves:?}");
    }

    #[test]
    fn the_cursor_is_on_the_screen() {
        check(&[(true, 3)], (0, 3));
        check(&[(true, 4)], (1, 4));
        check(&[(true, 99)], (6, 9));
        check(&[(true, 99), (true, -1)], (6, 8));
        check(&[(false, 2)], (2, 2));
        check(&[(false, 99), (false, -99)], (0, 3));
        check(&[(true, -1)], (0, 0));
    }

    #[test]
    fn a_text_is_searched_from_the_cursor_on() {
        let mut pane = DetailPane::default();
        let lines = ["one", "two", "one"].map(|text| TabLine::of(StyledLine::plain(text)));
        pane.set_lines(lines.to_vec(), false);
        pane.begin_search();
        for key in [Key::Char('O'), Key::Char('n'), Key::Char('e'), Key::Enter] {
            assert_eq!(pane.type_in(&key), None);
        }
        assert_eq!((pane.cursor, pane.find(SearchDirection::Next)), (0, None));
        assert_eq!(pane.cursor, 2);
        pane.set_lines(lines[1..2].to_vec(), false);
        assert_eq!(pane.find(SearchDirection::Next), Some("One".to_owned()));
    }
}
